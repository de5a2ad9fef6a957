"""Check the English of Markdown files with Harper, offline, and name each fault's file and line.

What Harper knows nothing of, such as the terms of AWS, is in an exceptions file: see `Exceptions`.
https://writewithharper.com
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.support import tools
from tests.helpers.support.machine import CACHE, run

_NAME = re.compile(r"\w+[A-Z]")
"""A capital within a word makes it a name or an abbreviation: JobsTable, KMS."""
_MARK = Path(__file__).with_name("mark.py")
_CLEAN = CACHE / "grammar-clean"
"""Holds an empty file for each text without a fault, so that Harper does not read it again."""


@dataclass(frozen=True)
class Exceptions:
    """The words that are right, the rules that do not apply, and the passages that may stand.

    A file in TOML: `words`, a list; `rules`, each with the reason why it is off; `accepted`, each
    a passage with the reason why it is right; what Harper marks within it is no fault.
    """

    words: tuple[str, ...]
    rules: Mapping[str, str]
    accepted: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> "Exceptions":
        """Read an exceptions file."""
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls(tuple(data["words"]), data["rules"], data["accepted"])

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where the accepted passages are in a text; a line break is a space."""
        return [
            found.span()
            for passage in self.accepted
            for found in re.finditer(r"\s+".join(map(re.escape, passage.split())), text)
        ]


@dataclass(frozen=True)
class Fault:
    """A passage that Harper marks; printed as file:line, message and suggestion."""

    path: Path
    line: int
    rule: str
    passage: str
    message: str
    suggestions: tuple[str, ...]

    def __str__(self) -> str:
        told = f'{self.path}:{self.line}: "{self.passage}": {self.message} [{self.rule}]'
        suggestions = " or ".join(f'"{text}"' for text in self.suggestions if text)
        return f"{told} Suggestion: {suggestions}." if suggestions else told


def check(paths: Iterable[Path], exceptions: Exceptions) -> list[Fault]:
    """Return the faults of Markdown files. Raises SetupError when Harper cannot be installed."""
    pins = tools.requirements("harper").read_text(encoding="utf-8")
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    marks = {path: _CLEAN / _digest(pins, repr(exceptions), text) for path, text in texts.items()}
    changed = [path for path in texts if not marks[path].exists()]
    faults = []
    for path, lints in zip(changed, _lint([texts[p] for p in changed], exceptions), strict=True):
        found = _faults(path, texts[path], lints, exceptions)
        if not found:
            _CLEAN.mkdir(parents=True, exist_ok=True)
            marks[path].touch()
        faults += found
    return faults


def _lint(texts: list[str], exceptions: Exceptions) -> list[list[dict[str, Any]]]:
    """Return what Harper marks in each text."""
    if not texts:
        return []
    asked = {"words": exceptions.words, "rules_off": [*exceptions.rules], "texts": texts}
    python = tools.scripts("harper") / "python"
    found: list[list[dict[str, Any]]] = json.loads(
        run(python, _MARK, stdin=json.dumps(asked)).stdout
    )
    return found


def _faults(
    path: Path, text: str, lints: list[dict[str, Any]], exceptions: Exceptions
) -> list[Fault]:
    """Return what Harper marks in one text outside of accepted passages, in its order."""
    places = exceptions.places(text)
    return [
        Fault(
            path,
            text.count("\n", 0, lint["start"]) + 1,
            lint["rule"],
            " ".join(text[lint["start"] : lint["end"]].split()),
            lint["message"],
            tuple(lint["suggestions"]),
        )
        for lint in sorted(lints, key=lambda lint: int(lint["start"]))
        if not (lint["rule"] == "SpellCheck" and _NAME.match(text, lint["start"]))
        if not any(start <= lint["start"] and lint["end"] <= end for start, end in places)
    ]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
