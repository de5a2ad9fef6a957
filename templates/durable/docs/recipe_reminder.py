"""Recipe: remind somebody some days before a date, up to 30 days from now.

An execution ends after `ExecutionTimeoutDays`: 30, or up to 365.

Payload: `{"name": "contract 17", "date": "2026-12-24", "days_before": 3}`
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from aws_durable_execution_sdk_python import DurableContext
from aws_durable_execution_sdk_python.config import Duration

from jobs import PermanentError
from jobs.attempts import EXECUTION_TIMEOUT
from jobs.context import JobContext

LONGEST = EXECUTION_TIMEOUT - 3600
"""The longest wait in seconds. It leaves an hour for the reminder itself."""


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Wait until the reminder is due, then remind."""
    seconds = context.step(lambda _: seconds_left(payload), name="look-at-the-clock")
    if seconds > 0:
        context.wait(Duration.from_seconds(seconds), name="the day")
    return context.step(
        lambda _: job.once("remind", lambda: remind(payload["name"])), name="remind"
    )


def seconds_left(payload: dict[str, Any]) -> int:
    """Return the seconds until the reminder is due. Call it in a step: it reads the clock."""
    date = datetime.fromisoformat(payload["date"]).replace(tzinfo=UTC)
    due = date - timedelta(days=payload["days_before"])
    seconds = int((due - datetime.now(UTC)).total_seconds())
    if seconds > LONGEST:
        raise PermanentError(f"the reminder is due on {due.date()}: too far away to wait for")
    return seconds


def remind(name: str) -> dict[str, Any]:
    """Send the reminder here."""
    return {"reminded_of": name}
