"""The attempts at a job: how each one starts, waits, reports on the job and ends.

One execution has the job, and only it writes to the job. Its writes carry the number of the
attempt: once another attempt has begun, DynamoDB refuses the writes of the old one.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from jobs import lifecycle
from jobs.expressions import Change, Condition, absent, equal, has_length, one_of
from jobs.failure import describe
from jobs.job import MAX_HISTORY, Job
from jobs.lifecycle import Status, Transition
from jobs.result import as_result
from jobs.settings import required_int
from jobs.store import JobStore, unchanged_since
from jobs.table import ConditionFailed, expiry
from jobs.times import now, rfc3339

EXECUTION_TIMEOUT = required_int("EXECUTION_TIMEOUT", minimum=1)
"""Seconds after which Lambda ends an execution, waits included."""


def held_by(job: Job) -> Condition:
    """No other attempt has begun since that of `job`."""
    return equal("attempts", job.attempts)


def retried_as(retry_of: int | None) -> Condition:
    """The latest retry of the job is this one; None: it was never retried."""
    return absent("retry_of") if retry_of is None else equal("retry_of", retry_of)


def awaits(callback_id: str) -> Condition:
    """The job waits for this callback."""
    return Condition("#waiting.#callback_id = :callback_id", {":callback_id": callback_id})


def has_room_for(entries: int) -> Condition:
    """The history has room for so many more entries."""
    return Condition("size(#history) <= :longest", {":longest": MAX_HISTORY - entries})


class AttemptStore(JobStore):
    """The jobs of one table, with what the attempts do to them."""

    def start(self, job_id: str, retry_of: int | None, execution: str) -> Job:
        """Give a queued job to an execution. Repeating it for the same execution is safe.

        Raises:
            ConditionFailed: the job is unknown, terminal, cancelled, retried since, or another
                execution's, even if that is between two attempts.
        """
        change = Change(set={"execution": execution}, remove=("position", "crashes"))
        just_queued = retried_as(retry_of) & has_length("history", (retry_of or 0) + 1)
        try:
            return self._claim(job_id, change, just_queued)
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
            return self._claim(job.job_id, Change(), ours)
        except ConditionFailed as failed:
            stored = failed.job
            if (
                stored is not None
                and stored.attempts == job.attempts + 1
                and _under_way(stored, job.execution)
            ):
                return stored  # an earlier invocation of the execution started it and was cut off
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
        unfinished = one_of("status", lifecycle.GIVE_UP.sources)
        ours = unfinished & equal("execution", execution) & retried_as(retry_of)
        moved = absent("position") | Condition("#position <> :here", {":here": position})
        try:
            change = Change(set={"position": position, "crashes": 0})
            return self._update(job_id, change, ours & moved)
        except ConditionFailed as failed:
            if failed.job is None or failed.job.position != position:
                return failed.job
        return self._update(job_id, Change(count=("crashes",)), ours & equal("position", position))

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress of an attempt. The returned job has `cancel_requested`.

        While the job waits, and between two attempts, only a replay reports progress. Then
        nothing is written.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        change = Change(set={"progress": dict(progress), "updated_at": rfc3339(now())})
        try:
            return self._update(job.job_id, change, equal("status", Status.RUNNING) & held_by(job))
        except ConditionFailed as failed:
            stored = failed.job
            if stored is None or stored.status.terminal or not _same_attempt(stored, job):
                raise
            return stored

    def wait(
        self,
        job: Job,
        what: str,
        seconds: int | None,
        callback_id: str | None = None,
        asked: Mapping[str, Any] | None = None,
    ) -> Job:
        """Note what the job waits for, and for how many seconds at most; None: without limit.

        With a `callback_id` an answer can end the waiting; `asked` tells who may give it.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        until = rfc3339(now() + timedelta(seconds=seconds)) if seconds else None
        waiting = {"for": what, "until": until, "callback_id": callback_id, **(asked or {})}
        waiting = {name: value for name, value in waiting.items() if value is not None}
        progress = {"progress": job.progress} if job.progress else {}
        change = Change(set={"waiting": waiting, **progress})
        # Two entries: a job that is seen to wait is also seen to go on.
        return self._switch(lifecycle.WAIT, job, change, held_by(job) & has_room_for(2))

    def resume(
        self, job: Job, what: str, by: str | None = None, callback_id: str | None = None
    ) -> Job:
        """Note that the waiting for `what` is over, and who has answered.

        With a `callback_id`, only if the job waits for that.

        Raises:
            ConditionFailed: the job is no longer this attempt's.
        """
        condition = held_by(job) & awaits(callback_id) if callback_id else held_by(job)
        answered = {"answered": {"for": what, "by": by, "at": rfc3339(now())}} if by else {}
        return self._switch(lifecycle.RESUME, job, Change(set=answered), condition)

    def complete(self, job: Job, result: Mapping[str, Any]) -> Job:
        """Record the result of an attempt.

        Raises:
            PermanentError: the result is not a JSON object, or larger than a job can hold.
            ConditionFailed: the attempt no longer holds the job.
        """
        change = Change(set={"result": as_result(result)}, remove=("error", "cancel_requested"))
        return self._end(lifecycle.COMPLETE, job, change, held_by(job))

    def fail(self, job: Job, error: BaseException) -> Job:
        """Record that no other attempt can help.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._end(lifecycle.FAIL, job, Change(set={"error": describe(error)}), held_by(job))

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed. If the history is full, the same attempt goes on.

        Raises:
            ConditionFailed: the attempt no longer holds the job, or the history has no room for
                another.
        """
        change = Change(set={"error": describe(error)})
        # Three entries: this one, the next attempt, and the end of the job.
        return self._end(lifecycle.RELEASE, job, change, held_by(job) & has_room_for(3))

    def stop(self, job: Job) -> Job:
        """Cancel a job that is under way.

        Raises:
            ConditionFailed: another attempt has begun, or the job has finished.
        """
        return self._end(lifecycle.STOP, job, Change(remove=("error",)), held_by(job))

    def give_up(self, job: Job, error: Mapping[str, str]) -> Job:
        """Settle a job whose execution has ended without ending the job.

        The job fails with `error`, or is cancelled if its owner asked for that.

        Raises:
            ConditionFailed: it has changed since `job` was read, or it has finished.
        """
        if job.cancel_requested:
            how, change = lifecycle.DROP, Change(remove=("error",))
        else:
            how, change = lifecycle.GIVE_UP, Change(set={"error": error})
        return self._change_status(how, job.job_id, change, unchanged_since(job))

    def _claim(self, job_id: str, change: Change, condition: Condition) -> Job:
        """Start an attempt at a queued job."""
        change = replace(change, set={**change.set, **_late_expiry()}, count=("attempts",))
        free = absent("cancel_requested") & condition
        return self._change_status(lifecycle.CLAIM, job_id, change, free)

    def _switch(self, how: Transition, job: Job, change: Change, condition: Condition) -> Job:
        """Go to or from `waiting`. A status that cannot be shown does not fail a job."""
        change = replace(change, set={**change.set, **_late_expiry()})
        try:
            return self._change_status(how, job.job_id, change, condition)
        except ConditionFailed as failed:
            return _still_held(failed, job)

    def _end(self, how: Transition, job: Job, change: Change, condition: Condition) -> Job:
        """End an attempt; keep its latest progress."""
        if job.progress:
            change = replace(change, set={**change.set, "progress": job.progress})
        return self._change_status(how, job.job_id, change, condition)


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


def _late_expiry() -> dict[str, int]:
    """Return an expiry that comes after the longest execution can have ended."""
    return {"expires_at": expiry(now()) + EXECUTION_TIMEOUT}
