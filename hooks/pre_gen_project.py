"""Reject answers that cannot make a project, before any file is written.

This hook changes no answer. cookiecutter.json and the templates give the answers their final form,
so `--accept-hooks no` generates the same project.
"""

import json
import re
import sys
import unicodedata

# `tojson` escapes every quote within a string, so no answer can end this raw string
# and run as code.
ANSWERS = json.loads(r"""{{ cookiecutter | tojson }}""")
# The answers before cookiecutter rendered them with Jinja. Only cookiecutter provides them.
ARGUMENTS = json.loads(r"""{{ (_cookiecutter if _cookiecutter is defined else {}) | tojson }}""")

# A function's name has at most 64 characters. CloudFormation composes it of the stack's name (the
# slug, with "-prod" in that environment), the logical id and 13 characters of its own. It cuts
# stack names that are too long. It never cuts a slug within this limit.
SLUG_LIMIT = 64 - len("-prod") - len("-DeadLetterFunction-") - 13
# Together at most 1,024 bytes: CloudFormation's limit for the Description of a stack.
TEXT_LIMITS = {"project_name": 50, "description": 200}
ARCHITECTURES = ("x86_64", "arm64")
# Characters that change the order in which the text around them is displayed.
EMBEDDINGS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def refused_slug(slug: str) -> str | None:
    """Return why `slug` is not a valid stack and folder name, or None."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*", slug) and len(slug) <= SLUG_LIMIT:
        return None
    return (
        f"{slug!a} is not a valid stack name; use a letter, then letters, digits and single "
        f"hyphens, at most {SLUG_LIMIT} characters, such as jobs-api"
    )


def refused_text(text: str, asked: str, limit: int) -> str | None:
    """Return why YAML, TOML and Markdown cannot hold `text`, typed as `asked`, or None."""
    if asked != text and any("{" + second in asked for second in ("{", "%", "#")):
        return "cookiecutter renders arguments with Jinja; type braces at the prompt instead"
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
    """Return why `answer` names no processor, or None. A command line passes it as text."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            answer = {"value": [answer]}
    if answer in [{"value": [name]} for name in ARCHITECTURES]:
        return None
    return 'is not a known processor; use {"value": ["x86_64"]} or {"value": ["arm64"]}'


def main() -> int:
    """Print the first error on stderr, in one line; return the exit status."""
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
