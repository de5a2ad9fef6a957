"""Payloads for the tests. When work.py becomes yours, these become yours too.

Where it says `| None`, put None if no payload makes your work do that: what needs it is skipped.
"""

from collections.abc import Callable
from typing import Any

Payload = dict[str, Any]


def prepare(client: Callable[[str], Any], ref: Callable[[str], str]) -> None:
    """Fill the buckets, tables and queues that these payloads need; called before each suite.

    `client("s3")` is a client of boto3, and `ref("MyBucket")` is what `!Ref MyBucket` is in
    template.yaml: of the laptop's stack, or of the deployed one that STACK_NAME names.
    """


HAPPY: Payload = {"customer": "ada@example.com", "delay_seconds": 0}
"""Completes by itself, in a few seconds at most."""

HAPPY_RESULT: Payload = {"customer": "ada@example.com"}
"""What its result holds, among the rest."""

HAPPY_PROGRESS: Payload | None = {"done": 3, "total": 3, "message": "follow-up published"}
"""The last progress that it tells of, or None when it tells of none."""

OTHER: Payload = {"customer": "grace@example.com", "delay_seconds": 0}
"""As good as `HAPPY`, but another payload."""

INVALID: Payload = {"customer": "ada@example.com", "delay_seconds": -1}
INVALID_FIELD = "delay_seconds"

INVALID_BY_RULE: dict[str, tuple[Payload, str]] = {
    "a member is missing": ({"delay_seconds": 1}, "customer"),
    "a member is unknown": ({"customer": "ada@example.com", "colour": "red"}, "colour"),
    "another type": ({"customer": "ada@example.com", "delay_seconds": "2"}, "delay_seconds"),
    "null": ({"customer": None}, "customer"),
    "too small": ({"customer": "ada@example.com", "approval_seconds": 0}, "approval_seconds"),
    "too large": ({"customer": "ada@example.com", "delay_seconds": 1_728_001}, "delay_seconds"),
    "no such choice": ({"customer": "ada@example.com", "failure": "sometimes"}, "failure"),
    "empty text": ({"customer": ""}, "customer"),
}
"""What breaks payload.schema.json, rule by rule, and the field that the answer names."""

SLOW: Payload | None = {"customer": "alan@example.com", "delay_seconds": 6}
"""Takes some six seconds, waiting for no answer: time to be caught and cancelled."""

SLOW_STATUS = "waiting"
"""What the job of `SLOW` is most of that time."""

TRANSIENT: Payload | None = {**HAPPY, "failure": "transient"}
"""Its first attempt fails, its second completes."""

POISON: Payload | None = {"customer": "ada@example.com", "failure": "poison"}
"""Every attempt fails, until the engine gives it up."""

POISON_ERROR = "the accounts do not answer"
"""What the error of the job of `POISON` tells, among the rest."""

PERMANENT: Payload | None = {"customer": "ada@example.com", "failure": "permanent"}
"""Its first attempt fails, and no other one follows."""

APPROVAL: Payload | None = {**HAPPY, "approval": True}
"""Waits for an answer, for more than a minute, and then completes."""

APPROVER: str | None = "approver"
"""The member of `APPROVAL` that names another caller than the owner to answer it, if any."""

APPROVED: Payload = {"approved": True}
"""The answer that lets it go on; any other one ends it."""

REFUSED_RESULT: Payload = {"follow_up": "withheld"}
"""What the result of `APPROVAL` holds after another answer, or none."""

DEADLINE: Payload | None = {**HAPPY, "approval": True, "approval_seconds": 1}
"""Waits for an answer, but not for long, and completes without."""

OTHER_WAYS: dict[str, Payload] = {
    "a wait after a failure": {**HAPPY, "failure": "transient", "delay_seconds": 60}
}
"""Other ways through the work to its completion, which tests/unit/test_determinism.py replays."""
