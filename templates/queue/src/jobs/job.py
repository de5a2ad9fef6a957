"""The job: what is stored of it, and what its owner sees."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from jobs.exceptions import NewerSchema
from jobs.lifecycle import Status
from jobs.reference import Reference
from jobs.times import rfc3339

SCHEMA = 1
"""Version of the stored item. Code leaves an item with a higher number alone."""
MAX_HISTORY = 1_000
"""Entries; keeps the item below DynamoDB's 400 KB."""
FORGOTTEN_BY_RETRY = (
    *("error", "result", "progress", "finished_at", "cancel_requested"),
    *("recent_attempts", "ticket"),
)


@dataclass(frozen=True)
class Job:
    """A job as it is stored. Times are RFC 3339 in UTC."""

    job_id: str
    owner: str
    payload: dict[str, Any]
    fingerprint: str
    status: Status
    created_at: str
    updated_at: str
    expires_at: int
    """Epoch seconds. DynamoDB removes the item some time after."""
    attempts: int
    recent_attempts: int = 0
    """Attempts since the job was accepted or last retried."""
    ticket: str | None = None
    """The hand-over whose message has the job. Other messages leave it alone."""
    lease_until: int | None = None
    """Epoch milliseconds. Until then, an attempt holds the job."""
    history: list[dict[str, str]] = field(default_factory=list)
    """Each status with its time, oldest first."""
    started_at: str | None = None
    finished_at: str | None = None
    cancel_requested: bool = False
    retry_of: int | None = None
    """The length of the history when the owner last asked for a retry; identifies the retry."""
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    request_id: str | None = None
    """Of the request that created the job: the worker's log lines have it as the API's have."""
    schema: int = SCHEMA

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> "Job":
        """Build a job from the plain attributes of its DynamoDB item.

        Raises:
            NewerSchema: a newer version of this code wrote the item.
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
    def owner_digest(self) -> str:
        """The owner as 64 hexadecimal digits, for what takes no free text."""
        return sha256(self.owner.encode()).hexdigest()

    @property
    def worn_out(self) -> bool:
        """Whether the history is too long for another retry."""
        return len(self.history) >= MAX_HISTORY

    def belongs_elsewhere(self, reference: Reference) -> bool:
        """Return whether the job was retried since, or belongs to another hand-over's message."""
        return self.retry_of != reference.retry_of or self.ticket not in (None, reference.ticket)

    def leased(self, moment: datetime) -> bool:
        """Return whether an attempt may still hold the job at a moment."""
        return self.lease_until is not None and self.lease_until >= milliseconds(moment)

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
            "progress": self.progress,
            "result": self.result,
            "error": self.error,
            "history": self._numbered_history(),
            "expires_at": rfc3339(datetime.fromtimestamp(self.expires_at, UTC)),
        }
        return {name: value for name, value in shown.items() if value is not None}

    def _numbered_history(self) -> list[dict[str, Any]]:
        """Return the history with the number of attempts that had begun by each entry."""
        numbered: list[dict[str, Any]] = []
        attempt = 0
        for entry in self.history:
            if entry["status"] == Status.RUNNING:
                attempt += 1
            numbered.append({**entry, "attempt": attempt})
        return numbered


def milliseconds(moment: datetime) -> int:
    """Return a moment as epoch milliseconds."""
    return int(moment.timestamp() * 1000)
