"""Refuses answers that cannot become a project, before a file is written.

It only refuses: the answers take their final form in cookiecutter.json and the templates,
so `--accept-hooks no` gives the same project.
"""

import json
import re
import sys
import unicodedata

# `tojson` escapes every quote within a string, so no answer can end this raw string
# or be taken for code.
ANSWERS = json.loads(r"""{{ cookiecutter | tojson }}""")
# What was asked for before cookiecutter ran Jinja over it. Only cookiecutter itself tells.
ARGUMENTS = json.loads(r"""{{ (_cookiecutter if _cookiecutter is defined else {}) | tojson }}""")

# A function's name may have 64 characters. CloudFormation makes it of the stack's name (the
# slug, with "-prod" in that environment), the longest logical id and 13 characters of its
# own, and cuts the stack's name when that is too long. A slug within this limit is never cut.
SLUG_LIMIT = 64 - len("-prod") - len("-DeadLetterFunction-") - 13
# Together at most 1,024 bytes, which is what the Description of a stack may have.
TEXT_LIMITS = {"project_name": 50, "description": 200}
ARCHITECTURES = ("x86_64", "arm64")
# What makes text around it read in another order than it is written.
EMBEDDINGS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def refused_slug(slug: str) -> str | None:
    """Why `slug` can be no stack name (and folder), or None."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*", slug) and len(slug) <= SLUG_LIMIT:
        return None
    return (
        f"cannot be a stack name: {slug!a}; use a letter, then letters, digits and single "
        f"hyphens, at most {SLUG_LIMIT} characters, such as jobs-api"
    )


def refused_text(text: str, asked: str, limit: int) -> str | None:
    """Why `text`, given as `asked`, cannot stand in YAML, TOML and Markdown, or None."""
    if asked != text and any("{" + second in asked for second in ("{", "%", "#")):
        return "cookiecutter runs Jinja in arguments; type double braces at the prompt instead"
    if not text.strip():
        return f"is empty; use 1 to {limit} characters"
    if len(text) > limit:
        return f"has {len(text)} characters; use 1 to {limit}"
    for character in text:
        # Controls, halves of a character, and what ends a line or does not exist in YAML.
        category = unicodedata.category(character)
        embeds = unicodedata.bidirectional(character) in EMBEDDINGS
        if category in ("Cc", "Cs", "Zl", "Zp") or embeds or character in "\ufffe\uffff":
            return f"has a line break or control character, {character!a}; use one line of text"
    return None


def refused_architecture(answer: object) -> str | None:
    """Why `answer` names no processor, or None. A command line gives it as text."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            answer = {"value": [answer]}
    if answer in [{"value": [name]} for name in ARCHITECTURES]:
        return None
    return 'use {"value": ["x86_64"]} or {"value": ["arm64"]}'


def main() -> int:
    """Print the first refusal on stderr, one line; return the exit status."""
    reasons = {"project": refused_slug(str(ANSWERS["__project_asked"]))}
    for question, limit in TEXT_LIMITS.items():
        text = str(ANSWERS[question])
        reasons[question] = refused_text(text, str(ARGUMENTS.get(question, text)), limit)
    reasons["architectures"] = refused_architecture(ANSWERS["architectures"])
    for question, reason in reasons.items():
        if reason:
            print(f"{question}: {reason}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
