"""Samples that work of yours may have nothing like."""

import pytest

from tests import samples


def needed(name: str) -> samples.Payload:
    """Return a payload of tests/samples.py; the test that needs it is skipped if it is None."""
    payload: samples.Payload | None = getattr(samples, name)
    if payload is None:
        pytest.skip(f"samples.{name} is None: your work has no such payload")
    return payload
