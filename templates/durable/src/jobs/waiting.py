"""What the store does for jobs that run in durable executions, where they can wait.

An execution is the only one that writes to its job: each write names the attempt, and before each
attempt the execution checks that the job is still its own. So there are no leases here.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobs import job as life
from jobs.failure import describe
from jobs.job import Job, Status, now, rfc3339
from jobs.settings import required_int, settings
from jobs.store import JobStore, held_by, retried_as, unchanged_since
from jobs.table import Change, Condition, ConditionFailed, absent, equal, is_shorter, one_of

EXECUTION_TIMEOUT = required_int("EXECUTION_TIMEOUT", minimum=1)
"""Seconds after which Lambda ends an execution, however much of them it has waited."""


class WaitingStore(JobStore):
    """The jobs of one table, with what only executions do to them."""

    def start(self, job_id: str, retry_of: int | None, execution: str) -> Job:
        """Give a queued job to an execution; once more for the same execution changes nothing.

        Raises:
            ConditionFailed: the job is unknown, terminal, cancelled, retried since, or another
                execution's.
        """
        change = Change(set={"execution": execution}, remove=("position", "crashes"))
        try:
            return self._begin_attempt(job_id, change, retried_as(retry_of))
        except ConditionFailed as failed:
            if failed.job is not None and _under_way(failed.job, execution):
                return failed.job
            raise

    def restart(self, job: Job) -> Job:
        """Start another attempt of the execution that has the job, if the last one failed.

        Raises:
            ConditionFailed: the job is no longer this execution's.
        """
        ours = equal("execution", job.execution) & unchanged_since(job)
        try:
            return self._begin_attempt(job.job_id, Change(), ours)
        except ConditionFailed as failed:
            stored = failed.job
            if (
                stored is not None
                and stored.attempts == job.attempts + 1
                and _under_way(stored, job.execution)
            ):
                return stored  # another invocation of the execution began it, and was cut off
            return _still_held(failed, job)

    def note_position(
        self, job_id: str, retry_of: int | None, execution: str, position: str
    ) -> Job | None:
        """Note where an invocation begins, and return the job; None: it is unknown.

        If the last invocation began at the same position, it has died, and `crashes` counts it.
        The job of another execution, or a terminal one, is returned as it is.

        Raises:
            ConditionFailed: the job has changed meanwhile.
        """
        ours = (
            one_of("status", (status.value for status in life.GIVE_UP.sources))
            & equal("execution", execution)
            & retried_as(retry_of)
        )
        moved = absent("position") | Condition("#position <> :here", {":here": position})
        try:
            change = Change(set={"position": position, "crashes": 0})
            return self._update(job_id, change, ours & moved)
        except ConditionFailed as failed:
            if failed.job is None or failed.job.position != position:
                return failed.job
        return self._update(job_id, Change(count=("crashes",)), ours & equal("position", position))

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed. If the history is full, the same attempt goes on.

        Raises:
            ConditionFailed: the attempt no longer holds the job, or the history has no room for
                another.
        """
        # Two entries stay free: for the next attempt, and for the end of the job.
        room = is_shorter("history", life.MAX_HISTORY - 2)
        return self._end_attempt(life.RELEASE, job, Change(set={"error": describe(error)}), room)

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress. The returned job has `cancel_requested`.

        While the job waits, and between two attempts, only a replay reports progress; nothing is
        written then.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        try:
            return super().report(job, progress)
        except ConditionFailed as failed:
            stored = failed.job
            if stored is None or stored.status.terminal or not _same_attempt(stored, job):
                raise
            return stored

    def wait(self, job: Job, what: str, seconds: int | None, callback_id: str | None = None) -> Job:
        """Note what the job waits for, and for how many seconds at most; None: without limit.

        With a `callback_id` the owner can end the waiting with an answer.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        until = rfc3339(now() + timedelta(seconds=seconds)) if seconds else None
        waiting = {"for": what, "until": until, "callback_id": callback_id}
        waiting = {name: value for name, value in waiting.items() if value is not None}
        progress = {"progress": job.progress} if job.progress else {}
        # One entry stays free, so that a job that is seen to wait is also seen to go on.
        room = is_shorter("history", life.MAX_HISTORY - 1)
        return self._switch(life.WAIT, job, Change(set={"waiting": waiting, **progress}), room)

    def resume(self, job: Job, callback_id: str | None = None) -> Job:
        """Note that the waiting is over, if the job waits for `callback_id`.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        condition = None
        if callback_id:
            waits = "#waiting.#callback_id = :callback_id"
            condition = Condition(waits, {":callback_id": callback_id})
        return self._switch(life.RESUME, job, Change(), condition)

    def _begin_attempt(self, job_id: str, change: Change, condition: Condition) -> Job:
        moment = now()
        change = replace(
            change,
            set={**change.set, "expires_at": _expiry(moment)},
            set_first={"started_at": rfc3339(moment)},
            count=("attempts",),
        )
        queued = equal("status", Status.QUEUED.value) & absent("cancel_requested")
        return self._move(life.CLAIM, job_id, moment, change, queued & condition)

    def _switch(
        self, how: life.Transition, job: Job, change: Change, also: Condition | None
    ) -> Job:
        """Go to or from `waiting`. A status that cannot be shown does not fail a job."""
        moment = now()
        change = replace(change, set={**change.set, "expires_at": _expiry(moment)})
        condition = held_by(job) & also if also else held_by(job)
        try:
            return self._move(how, job.job_id, moment, change, condition)
        except ConditionFailed as failed:
            return _still_held(failed, job)


def _under_way(job: Job, execution: str | None) -> bool:
    return job.execution == execution and job.status in (Status.RUNNING, Status.WAITING)


def _same_attempt(stored: Job, job: Job) -> bool:
    return stored.attempts == job.attempts and stored.execution == job.execution


def _still_held(failed: ConditionFailed, job: Job) -> Job:
    """Return the stored job if `job` still holds it: then the write had been done before."""
    stored = failed.job
    if stored is not None and stored.attempts == job.attempts and _under_way(stored, job.execution):
        return stored
    raise failed


def _expiry(moment: datetime) -> int:
    """A job under way does not expire before its execution can have ended."""
    return int(moment.timestamp()) + EXECUTION_TIMEOUT + settings.retention_seconds
