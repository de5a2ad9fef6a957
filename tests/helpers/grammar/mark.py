"""Mark faults in English texts with Harper. Runs in Harper's own environment: see `check`.

Reads {"words": [...], "rules_off": [...], "texts": [...]} as JSON from stdin. Writes one list for
each text: {"rule", "message", "start", "end", "suggestions"}, with positions in characters.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harper import Language, Linter, get_default_lint_config


def main() -> int:
    """Mark the texts; return the exit status."""
    asked = json.load(sys.stdin)
    known = get_default_lint_config()
    if unknown := [rule for rule in asked["rules_off"] if rule not in known]:
        print(f"Harper has no rule {unknown[0]}. Remove it from the exceptions.", file=sys.stderr)
        return 1
    rules = {**known, **dict.fromkeys(asked["rules_off"], False)}

    def mark(texts: list[str]) -> list[list[dict[str, Any]]]:
        linter = Linter()  # one for each thread; it releases Python's lock while it works
        linter.set_lint_config(rules)
        linter.import_words(asked["words"])
        return [marks(linter, text) for text in texts]

    texts = asked["texts"]
    found: list[list[dict[str, Any]]] = [[] for _ in texts]
    with ThreadPoolExecutor() as pool:
        found[::2], found[1::2] = pool.map(mark, (texts[::2], texts[1::2]))
    json.dump(found, sys.stdout)
    return 0


def marks(linter: Linter, text: str) -> list[dict[str, Any]]:
    """Return the marks in one Markdown text."""
    return [
        {
            "rule": rule,
            "message": lint.message,
            "start": lint.span.start,
            "end": lint.span.end,
            "suggestions": [suggestion.replacement_text for suggestion in lint.suggestions],
        }
        for rule, lints in linter.organized_lints(text, language=Language.MARKDOWN).items()
        for lint in lints
    ]


if __name__ == "__main__":
    sys.exit(main())
