"""What the store does for jobs that run in durable executions, where they can wait.

An execution is the only one that writes to its job: each write names the attempt, and before each
attempt the execution checks that the job is still its own. So there are no leases here.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobs import job as life
from jobs.job import Job, Status, now, rfc3339
from jobs.settings import required_int, settings
from jobs.store import JobStore, Refused, as_read, describe

EXECUTION_TIMEOUT = required_int("EXECUTION_TIMEOUT", minimum=1)
"""Seconds after which Lambda ends an execution, however much of them it has waited."""


class WaitingStore(JobStore):
    """The jobs of one table, with what only executions do to them."""

    def start(self, job_id: str, retry_of: int | None, execution: str) -> Job:
        """Give a queued job to an execution; once more for the same execution changes nothing.

        Raises:
            Refused: the job is unknown, terminal, cancelled, retried since, or another
                execution's.
        """
        if retry_of is None:
            which, values = "attribute_not_exists(#retry_of)", {}
        else:
            which, values = "#retry_of = :retry_of", {":retry_of": retry_of}
        try:
            return self._claim(job_id, {"execution": execution}, f" AND {which}", values)
        except Refused as refused:
            if refused.job is not None and _under_way(refused.job, execution):
                return refused.job
            raise

    def restart(self, job: Job) -> Job:
        """Start another attempt of the execution that has the job, if the last one failed.

        Raises:
            Refused: the job is no longer this execution's.
        """
        where, values = as_read(job)
        try:
            return self._claim(
                job.job_id,
                {},
                " AND #execution = :execution" + where,
                {**values, ":execution": job.execution},
            )
        except Refused as refused:
            stored = refused.job
            if (
                stored is not None
                and stored.attempts == job.attempts + 1
                and _under_way(stored, job.execution)
            ):
                return stored  # by another invocation of the execution, which was cut off
            return _still_held(refused, job)

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed; when the history is full, it goes on as the same attempt.

        Raises:
            Refused: the attempt no longer holds the job, or the history has no room for another.
        """
        where = " AND size(#history) < :room"
        room = {":room": life.MAX_HISTORY - 2}  # for the next attempt, and for the job's end
        return self._end_attempt(
            life.RELEASE, job, {"error": describe(error)}, where=where, values=room
        )

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress; the answer also tells whether to stop.

        While the job waits, and between two attempts, it is only a replay that tells of progress:
        nothing is written then.

        Raises:
            Refused: the job is no longer this attempt's.
        """
        try:
            return super().report(job, progress)
        except Refused as refused:
            stored = refused.job
            if stored is None or stored.status.terminal or not _same_attempt(stored, job):
                raise
            return stored

    def wait(self, job: Job, what: str, seconds: int | None, callback_id: str | None = None) -> Job:
        """Note what the job waits for and for how many seconds at most; None: nobody knows.

        With a `callback_id` the owner can end the waiting with an answer.

        Raises:
            Refused: the job is no longer this attempt's.
        """
        moment = now()
        until = rfc3339(moment + timedelta(seconds=seconds)) if seconds else None
        waiting = {"for": what, "until": until, "callback_id": callback_id}
        changes: dict[str, Any] = {
            "waiting": {name: value for name, value in waiting.items() if value is not None},
            "expires_at": _expiry(moment),
        }
        if job.progress:
            changes["progress"] = job.progress
        # A job that is seen to wait can be seen to go on, too.
        room, values = " AND size(#history) < :room", {":room": life.MAX_HISTORY - 1}
        return self._switch(life.WAIT, job, moment, changes, room, values)

    def resume(self, job: Job, callback_id: str | None = None) -> Job:
        """Note that the waiting is over, if it is `callback_id` that the job waits for.

        Raises:
            Refused: the job is no longer this attempt's.
        """
        moment = now()
        where = " AND #waiting.#callback_id = :callback_id" if callback_id else ""
        values = {":callback_id": callback_id} if callback_id else {}
        return self._switch(
            life.RESUME, job, moment, {"expires_at": _expiry(moment)}, where, values
        )

    def _claim(
        self, job_id: str, changes: dict[str, Any], where: str, values: dict[str, Any]
    ) -> Job:
        moment = now()
        return self._move(
            life.CLAIM,
            job_id,
            moment,
            set_={**changes, "expires_at": _expiry(moment)},
            also=", #attempts = #attempts + :one"
            ", #started_at = if_not_exists(#started_at, :updated_at)",
            where=" AND #status = :queued AND attribute_not_exists(#cancel_requested)" + where,
            values={**values, ":one": 1, ":queued": Status.QUEUED.value},
        )

    def _switch(
        self,
        how: life.Transition,
        job: Job,
        moment: datetime,
        changes: dict[str, Any],
        where: str = "",
        values: dict[str, Any] | None = None,
    ) -> Job:
        """Go to or from `waiting`; a status that cannot be told is no reason to fail a job."""
        try:
            return self._move(
                how,
                job.job_id,
                moment,
                set_=changes,
                where=" AND #attempts = :attempt" + where,
                values={**(values or {}), ":attempt": job.attempts},
            )
        except Refused as refused:
            return _still_held(refused, job)


def _under_way(job: Job, execution: str | None) -> bool:
    return job.execution == execution and job.status in (Status.RUNNING, Status.WAITING)


def _same_attempt(stored: Job, job: Job) -> bool:
    return stored.attempts == job.attempts and stored.execution == job.execution


def _still_held(refused: Refused, job: Job) -> Job:
    """Return the stored job if `job` still holds it: then the write had been done before."""
    stored = refused.job
    if stored is not None and stored.attempts == job.attempts and _under_way(stored, job.execution):
        return stored
    raise refused


def _expiry(moment: datetime) -> int:
    """A job under way does not expire before its execution can have ended."""
    return int(moment.timestamp()) + EXECUTION_TIMEOUT + settings.retention_seconds
