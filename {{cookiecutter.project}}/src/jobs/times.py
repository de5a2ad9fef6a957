"""The present time, and how a job tells times."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """Format a UTC moment, to the millisecond: `2026-01-31T09:30:00.000Z`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
