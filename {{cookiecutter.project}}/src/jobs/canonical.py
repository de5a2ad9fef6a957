"""JSON values as one canonical text, to store and to compare."""

import hashlib
import json
import re
from itertools import accumulate
from typing import Any

MAX_DEPTH = 100
"""Levels of nested brackets. Python's parser recurses, and a later reader may have less stack."""

_NO_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*"|[^][{}"]+')


def canonical(value: Any) -> str:
    """Return the one JSON text of `value`: names sorted, no spaces.

    Raises:
        ValueError, TypeError, RecursionError: it is no JSON value, or nested too deeply.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    steps = (1 if bracket in "[{" else -1 for bracket in _NO_BRACKETS.sub("", text))
    if max(accumulate(steps), default=0) > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return text


def fingerprint(text: str) -> str:
    """Return the hash of a canonical text: two payloads with one key must have the same."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
