"""Payloads for the tests."""

from collections.abc import Callable
from typing import Any

Payload = dict[str, Any]


def prepare(client: Callable[[str], Any], ref: Callable[[str], str]) -> None:
    """The samples need no data."""


HAPPY: Payload = {"item": "desk", "euros": 300, "approver": "bob", "seconds": 1}
HAPPY_RESULT: Payload = {"approved": False}
HAPPY_PROGRESS: Payload | None = None
OTHER: Payload = HAPPY | {"item": "chair"}

INVALID: Payload = HAPPY | {"euros": 0}
INVALID_FIELD = "euros"
INVALID_BY_RULE: dict[str, tuple[Payload, str]] = {
    "a member is missing": ({"item": "desk", "euros": 300}, "approver"),
    "a member is unknown": (HAPPY | {"colour": "red"}, "colour"),
    "another type": (HAPPY | {"euros": "300"}, "euros"),
    "too small": (INVALID, "euros"),
    "empty text": (HAPPY | {"item": ""}, "item"),
}

SLOW: Payload | None = None  # it waits for an answer, never for time alone
SLOW_STATUS = "waiting"
TRANSIENT: Payload | None = None
POISON: Payload | None = None
POISON_ERROR = ""
PERMANENT: Payload | None = None
APPROVAL: Payload | None = None
APPROVER: str | None = "approver"
APPROVED: Payload = {"approved": True}
REFUSED_RESULT: Payload = {"approved": False}
DEADLINE: Payload | None = HAPPY
OTHER_WAYS: dict[str, Payload] = {}
