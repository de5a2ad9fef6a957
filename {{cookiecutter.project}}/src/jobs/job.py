"""The job and its life: every status, and every way from one to the next."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

SCHEMA = 1
"""Version of the stored item. Code leaves an item with a higher number alone."""


MAX_HISTORY = 1_000
"""Entries; keeps the item below DynamoDB's 400 KB."""


class Status(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether nothing but an explicit retry can follow."""
        return self in TERMINAL


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class Transition(NamedTuple):
    """A change of status: where it may start, and where it ends."""

    sources: tuple[Status, ...]
    target: Status


CLAIM = Transition((Status.QUEUED, Status.RUNNING), Status.RUNNING)
"""An attempt starts. From `running` only once the lease of the attempt before it has run out."""
RELEASE = Transition((Status.RUNNING,), Status.QUEUED)
"""The attempt failed and another one will follow."""
COMPLETE = Transition((Status.RUNNING,), Status.COMPLETED)
FAIL = Transition((Status.RUNNING,), Status.FAILED)
"""The attempt failed and no other one can help."""
CANCEL = Transition((Status.QUEUED,), Status.CANCELLED)
"""Cancelled before an attempt began, or between two of them."""
WAIT = Transition((Status.RUNNING,), Status.WAITING)
"""The attempt waits for time to pass or for an answer, and needs no function meanwhile."""
RESUME = Transition((Status.WAITING,), Status.RUNNING)
STOP = Transition((Status.RUNNING, Status.WAITING), Status.CANCELLED)
"""The cancellation of a job that was under way takes effect."""
GIVE_UP = Transition((Status.QUEUED, Status.RUNNING, Status.WAITING), Status.FAILED)
"""The engine delivers the job no more."""
DROP = Transition(GIVE_UP.sources, Status.CANCELLED)
"""The same, for a job whose cancellation was asked for."""
RETRY = Transition((Status.FAILED, Status.CANCELLED), Status.QUEUED)
"""The owner asks for another go; the only way out of a terminal status."""


class PermanentError(Exception):
    """Raise it in work.py when another attempt cannot help: the job fails at once."""


class JobCancelled(Exception):
    """Raise it in work.py to end a job whose cancellation was asked for."""


class NewerSchema(Exception):
    """The item was written by a newer version of this code, which alone may touch it."""


@dataclass(frozen=True)
class Job:
    """A job as it is stored. Times are RFC 3339 in UTC, leases epoch milliseconds."""

    job_id: str
    owner: str
    payload: dict[str, Any]
    fingerprint: str
    status: Status
    created_at: str
    updated_at: str
    expires_at: int
    """Epoch seconds; DynamoDB removes the item some time after."""
    attempts: int
    recent_attempts: int = 0
    """Those since the job was accepted or last retried."""
    ticket: str | None = None
    """The hand-over whose message has the job; other messages leave it alone."""
    history: list[dict[str, str]] = field(default_factory=list)
    """Each status with its time, oldest first."""
    started_at: str | None = None
    finished_at: str | None = None
    lease_until: int | None = None
    cancel_requested: bool = False
    retry_of: int | None = None
    """How long the history was when the owner last asked for a retry: tells one from another."""
    waiting: dict[str, str] | None = None
    """What a waiting job waits `for` and `until` when; and the id of the callback, if any."""
    execution: str | None = None
    """The engine's name for what runs the job, if the engine has one."""
    position: str | None = None
    """What the execution had recorded when its last invocation began, as a digest."""
    crashes: int = 0
    """How many invocations in a row began there and ended without recording anything."""
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    schema: int = SCHEMA

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> "Job":
        """Build a job from the plain attributes of its DynamoDB item.

        Raises:
            NewerSchema: the item's schema is not known here.
        """
        if item["schema"] > SCHEMA:
            raise NewerSchema(f"job {item['job_id']} has schema {item['schema']}, not {SCHEMA}")
        values = {name: item[name] for name in cls.__dataclass_fields__ if name in item}
        for name in ("payload", "result"):
            if name in values:
                values[name] = json.loads(values[name])
        values["status"] = Status(values["status"])
        return cls(**values)

    @property
    def worn_out(self) -> bool:
        """Whether the job's history is so long that it may not be retried again."""
        return len(self.history) >= MAX_HISTORY

    def belongs_elsewhere(self, retry_of: int | None, ticket: str) -> bool:
        """Whether it has been retried since, or another hand-over's message has it."""
        return self.retry_of != retry_of or self.ticket not in (None, ticket)

    def leased(self, now: datetime) -> bool:
        """Whether an attempt may still be under way at `now`."""
        return self.lease_until is not None and self.lease_until >= milliseconds(now)

    def public(self) -> dict[str, Any]:
        """Return what the owner may see, ready for JSON; absent values are left out."""
        shown = {
            "job_id": self.job_id,
            "status": self.status.value,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "attempts": self.attempts,
            "waiting": self._waiting_for(),
            "progress": self.progress,
            "result": self.result,
            "error": self.error,
            "history": self._numbered_history(),
            "expires_at": rfc3339(datetime.fromtimestamp(self.expires_at, UTC)),
        }
        return {name: value for name, value in shown.items() if value is not None}

    def _waiting_for(self) -> dict[str, str] | None:
        """Return what the job waits for; the callback's id is a secret of the service."""
        if self.waiting is None or self.status is not Status.WAITING:
            return None
        return {name: self.waiting[name] for name in ("for", "until") if name in self.waiting}

    def _numbered_history(self) -> list[dict[str, Any]]:
        """Give each entry its attempt: a new one begins whenever a job that did not wait runs."""
        numbered: list[dict[str, Any]] = []
        attempt, before = 0, None
        for entry in self.history:
            if entry["status"] == Status.RUNNING and before != Status.WAITING:
                attempt += 1
            numbered.append({**entry, "attempt": attempt})
            before = entry["status"]
        return numbered


def now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """Format a UTC moment, to the millisecond: `2026-01-31T09:30:00.000Z`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(moment: datetime) -> int:
    """Return a moment as epoch milliseconds."""
    return int(moment.timestamp() * 1000)
