"""Payloads for the tests."""

from collections.abc import Callable
from typing import Any

Payload = dict[str, Any]


def prepare(client: Callable[[str], Any], ref: Callable[[str], str]) -> None:
    """Put the orders of two months into the bucket."""
    s3, bucket = client("s3"), ref("ReportsBucket")
    for month in ("2026-01", "2026-02"):
        orders = "customer,amount\nada,30\ngrace,5\nada,12\n"
        s3.put_object(Bucket=bucket, Key=f"orders/{month}.csv", Body=orders.encode())


HAPPY: Payload = {"month": "2026-01"}
HAPPY_RESULT: Payload = {"customers": 2}
HAPPY_PROGRESS: Payload | None = {"done": 3, "total": 3, "message": "order 3"}
OTHER: Payload = {"month": "2026-02"}

INVALID: Payload = {"month": "January"}
INVALID_FIELD = "month"
INVALID_BY_RULE: dict[str, tuple[Payload, str]] = {
    "a member is missing": ({}, "month"),
    "a member is unknown": ({"month": "2026-01", "colour": "red"}, "colour"),
    "another type": ({"month": 202601}, "month"),
    "another pattern": ({"month": "2026-13"}, "month"),
}

SLOW: Payload | None = None
ENDLESS: Payload | None = None
SLOW_STATUS = "running"
TRANSIENT: Payload | None = None
POISON: Payload | None = None
POISON_ERROR = ""
PERMANENT: Payload | None = {"month": "2020-01"}
