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


HAPPY: Payload = {"site": "docs.example", "pages": 2}
"""Completes at once."""

HAPPY_RESULT: Payload = {"site": "docs.example", "pages": 2}
"""What its result holds, among the rest."""

HAPPY_PROGRESS: Payload | None = {"done": 2, "total": 2, "message": "page 2"}
"""The last progress that it tells of, or None when it tells of none."""

OTHER: Payload = {"site": "blog.example", "pages": 1}
"""As good as `HAPPY`, but another payload."""

INVALID: Payload = {"site": "docs.example", "pages": 0}
INVALID_FIELD = "pages"

INVALID_BY_RULE: dict[str, tuple[Payload, str]] = {
    "a member is missing": ({"pages": 1}, "site"),
    "a member is unknown": ({"site": "docs.example", "colour": "red"}, "colour"),
    "another type": ({"site": "docs.example", "pages": "2"}, "pages"),
    "null": ({"site": None}, "site"),
    "too small": ({"site": "docs.example", "pages": 0}, "pages"),
    "too large": ({"site": "docs.example", "seconds_per_page": 11}, "seconds_per_page"),
    "no such choice": ({"site": "docs.example", "failure": "sometimes"}, "failure"),
    "empty text": ({"site": ""}, "site"),
}
"""What breaks payload.schema.json, rule by rule, and the field that the answer names."""

SLOW: Payload | None = {"site": "archive.example", "pages": 16, "seconds_per_page": 0.25}
"""Takes some four seconds and heeds `job.cancelled`: time to be caught, cancelled or killed.

It has to end within five seconds, the `WorkerTimeout` in tests/local.
"""

ENDLESS: Payload | None = {"site": "archive.example", "pages": 100, "seconds_per_page": 0.25}
"""Takes longer than five seconds: with that `WorkerTimeout`, no attempt ever ends."""

SLOW_STATUS = "running"
"""What the job of `SLOW` is most of that time."""

TRANSIENT: Payload | None = {"site": "docs.example", "pages": 1, "failure": "transient"}
"""Its first attempt fails, its second completes."""

POISON: Payload | None = {"site": "docs.example", "pages": 1, "failure": "poison"}
"""Every attempt fails, and soon, until the engine gives it up."""

POISON_ERROR = "docs.example does not answer"
"""What the error of the job of `POISON` tells, among the rest."""

PERMANENT: Payload | None = {"site": "docs.example", "pages": 1, "failure": "permanent"}
"""Its first attempt fails, and no other one follows."""
