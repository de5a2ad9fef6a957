"""Recipe: a reminder some days before a date, up to 90 days away.

An execution lasts no longer: see `Mappings` in template.yaml; Lambda allows 366 days.

Its payload: `{"name": "contract 17", "date": "2026-12-24", "days_before": 3}`
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from aws_durable_execution_sdk_python import DurableContext
from aws_durable_execution_sdk_python.config import Duration

from jobs import PermanentError
from jobs.context import JobContext
from jobs.waiting import EXECUTION_TIMEOUT

LONGEST = EXECUTION_TIMEOUT - 3600
"""Seconds to wait at most: an hour is left to remind in."""


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Wait until the day has come, and remind."""
    seconds = context.step(lambda _: seconds_left(payload), name="look-at-the-clock")
    if seconds > 0:
        context.wait(Duration.from_seconds(seconds), name="the day")
    return context.step(
        lambda _: job.once("remind", lambda: remind(payload["name"])), name="remind"
    )


def seconds_left(payload: dict[str, Any]) -> int:
    """Return the seconds until the reminder is due. It reads the clock, so it stands in a step."""
    date = datetime.fromisoformat(payload["date"]).replace(tzinfo=UTC)
    due = date - timedelta(days=payload["days_before"])
    seconds = int((due - datetime.now(UTC)).total_seconds())
    if seconds > LONGEST:
        raise PermanentError(f"the reminder is due on {due.date()}: too far away to wait for")
    return seconds


def remind(name: str) -> dict[str, Any]:
    """Here you would send it."""
    return {"reminded_of": name}
