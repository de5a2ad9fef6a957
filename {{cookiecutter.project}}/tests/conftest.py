"""What all suites need: payloads that the API accepts."""

import json
import os
from collections.abc import Iterator

import pytest

from tests import samples
from web.payload import parse_payload
from web.problems import Problem

# Tests reach this machine without a proxy. Some clients read only one of the two names.
for name in ("NO_PROXY", "no_proxy"):
    os.environ[name] = f"127.0.0.1,{os.environ.get(name, '')}".rstrip(",")

MAY_BE_NONE = ("SLOW", "ENDLESS", "TRANSIENT", "POISON", "PERMANENT", "APPROVAL", "DEADLINE")


def pytest_sessionstart() -> None:
    """Say at once that the samples are not those of the schema, not a hundred times."""
    for name, payload in _accepted():
        try:
            parse_payload(json.dumps(payload).encode())
        except Problem as problem:
            raise pytest.UsageError(
                f"samples.{name} breaks src/payload.schema.json: {problem.detail}"
                ' Change tests/samples.py as well; see "Your turn" in README.md.'
            ) from None


def _accepted() -> Iterator[tuple[str, samples.Payload]]:
    """Yield what the tests send as a good payload."""
    yield from [("HAPPY", samples.HAPPY), ("OTHER", samples.OTHER)]
    for name in MAY_BE_NONE:
        if (payload := getattr(samples, name, None)) is not None:
            yield name, payload
    for name, payload in getattr(samples, "OTHER_WAYS", {}).items():
        yield f"OTHER_WAYS[{name!r}]", payload
