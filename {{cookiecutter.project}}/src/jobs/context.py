"""The job as work.py sees it during an attempt."""

import time
from collections.abc import Callable
from dataclasses import replace
from operator import index
from typing import Any

from jobs.attempts import AttemptStore
from jobs.job import Job
from jobs.once import once

MAX_MESSAGE = 500
MAX_AMOUNT = 2**53 - 1
REFRESH_SECONDS = 1.0
"""At most one request per second, so that a job of 10,000 steps does not cost 10,000 writes."""


class JobContext:
    """The job during one attempt.

    After another attempt has begun, writes raise `jobs.table.ConditionFailed`. Do not catch it:
    the old attempt can no longer change the job.
    """

    def __init__(self, job: Job, store: AttemptStore, remaining_ms: Callable[[], int]) -> None:
        self.job = job
        """The job as claimed, with the latest progress."""
        self._store = store
        self._remaining_ms = remaining_ms
        self._refresh_at = time.monotonic() + REFRESH_SECONDS

    @property
    def id(self) -> str:
        """The job's id."""
        return self.job.job_id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.job.attempts

    def remaining(self) -> float:
        """Return the seconds until Lambda ends this attempt."""
        return self._remaining_ms() / 1000

    def progress(self, done: int, total: int | None = None, message: str = "") -> None:
        """Tell the status endpoint how far the work is.

        It is written at most once per second. The end of the attempt writes the latest.

        Raises:
            TypeError: `done` or `total` is not a whole number.
            ValueError: it is negative, or larger than JSON numbers are exact.
        """
        progress: dict[str, Any] = {"done": _amount(done)}
        if total is not None:
            progress["total"] = _amount(total)
        if message:
            text = message[:MAX_MESSAGE].encode("utf-8", "replace").decode("utf-8")
            progress["message"] = text
        self.job = replace(self.job, progress=progress)
        if self._due():
            self._note(self._store.report(self.job, progress))

    @property
    def cancelled(self) -> bool:
        """Whether the owner has asked to cancel. If so, clean up and raise `JobCancelled`."""
        if not self.job.cancel_requested and self._due():
            self._note(self._store.get(self.id))
        return self.job.cancel_requested

    def once(self, name: str, effect: Callable[[], Any]) -> Any:
        """Do a side effect once for this job, however many attempts it takes: see `jobs.once`."""
        # After a job has expired, its idempotency key yields the same id again.
        return once(f"{self.id}#{self.job.created_at}", name, effect)

    def _due(self) -> bool:
        return time.monotonic() >= self._refresh_at

    def _note(self, stored: Job | None) -> None:
        # Keep the number of this attempt: it fences the attempt's writes.
        if stored is not None:
            self.job = replace(self.job, cancel_requested=stored.cancel_requested)
        self._refresh_at = time.monotonic() + REFRESH_SECONDS


def _amount(number: int) -> int:
    if not 0 <= index(number) <= MAX_AMOUNT:
        raise ValueError(f"progress counts from 0 to {MAX_AMOUNT}, not {number}")
    return index(number)
