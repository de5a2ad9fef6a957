"""The store of jobs: one DynamoDB item for each job, and conditional writes only.

Each change of status names the transition that allows it. A write of an attempt carries the
attempt's number: once another attempt has begun, DynamoDB refuses the writes of the old one.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobs import job as life
from jobs.canonical import canonical, fingerprint
from jobs.failure import describe
from jobs.job import SCHEMA, Job, PermanentError, Status, Transition, milliseconds, now, rfc3339
from jobs.reference import Reference
from jobs.settings import settings
from jobs.table import (
    Change,
    Condition,
    JobsTable,
    absent,
    below,
    equal,
    has_length,
    one_of,
)

MAX_RESULT_BYTES = 100_000


def unchanged_since(job: Job) -> Condition:
    """The status has not changed since `job` was read."""
    return has_length("history", len(job.history))


def held_by(job: Job) -> Condition:
    """No other attempt has begun since that of `job`."""
    return equal("attempts", job.attempts)


def retried_as(retry_of: int | None) -> Condition:
    """The latest retry of the job is this one; None: it was never retried."""
    return absent("retry_of") if retry_of is None else equal("retry_of", retry_of)


def not_leased(moment: datetime) -> Condition:
    """No attempt holds the job at `moment`."""
    return absent("lease_until") | below("lease_until", milliseconds(moment))


NOT_STARTED = equal("status", Status.QUEUED.value) & equal("attempts", 0)
"""No attempt has begun."""


class JobStore(JobsTable):
    """The jobs of one table. Every method is one request to DynamoDB.

    Each raises `NewerSchema` for a job that newer code has written.
    """

    def get(self, job_id: str) -> Job | None:
        """Return the job as it is now, or None when it is unknown or has expired."""
        job = self._read(job_id)
        return job if job and job.expires_at > now().timestamp() else None

    def create(self, job_id: str, owner: str, payload: dict[str, Any]) -> Job:
        """Store a new job, queued.

        Raises:
            ConditionFailed: the table has a job with this id.
        """
        moment, text = now(), canonical(payload)
        item = {
            "job_id": job_id,
            "owner": owner,
            "payload": text,
            "fingerprint": fingerprint(text),
            "status": Status.QUEUED.value,
            "created_at": rfc3339(moment),
            "updated_at": rfc3339(moment),
            "expires_at": _expiry(moment),
            "attempts": 0,
            "history": [_entry(Status.QUEUED, moment)],
            "schema": SCHEMA,
        }
        # DynamoDB may take days to remove an expired item.
        expired = below("expires_at", int(moment.timestamp()) + 1)
        return self._put(item, absent("job_id") | expired)

    def adopt(self, job_id: str) -> Job:
        """Note that one more request relies on a queued job, so that it cannot be withdrawn.

        Raises:
            ConditionFailed: an attempt has begun, or the job is gone.
        """
        return self._update(job_id, Change(set={"adopted": True}), NOT_STARTED)

    def withdraw(self, job: Job) -> None:
        """Remove a job that could not be handed over and that no caller knows.

        Raises:
            ConditionFailed: an attempt has begun, another request adopted the job or created it
                again, or it is gone.
        """
        same = equal("created_at", job.created_at)
        self._delete(job.job_id, NOT_STARTED & absent("adopted") & same)

    def claim(self, reference: Reference, seconds: float, most: int) -> Job:
        """Start an attempt that holds the job for `seconds`, one of `most` attempts.

        Raises:
            ConditionFailed: the job is unknown, terminal, cancelled or leased, has had its
                attempts, or is another message's.
        """
        moment = now()
        return self._move(
            life.CLAIM,
            reference.job_id,
            moment,
            Change(
                set={
                    "lease_until": milliseconds(moment + timedelta(seconds=seconds)),
                    "ticket": reference.ticket,
                },
                set_first={"started_at": rfc3339(moment)},
                count=("attempts", "recent_attempts"),
            ),
            absent("cancel_requested")
            & not_leased(moment)
            & retried_as(reference.retry_of)
            & (absent("ticket") | equal("ticket", reference.ticket))
            & (absent("recent_attempts") | below("recent_attempts", most)),
        )

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress of an attempt. The returned job has `cancel_requested`.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._update(
            job.job_id,
            Change(set={"progress": dict(progress), "updated_at": rfc3339(now())}),
            equal("status", Status.RUNNING.value) & held_by(job),
        )

    def complete(self, job: Job, result: Mapping[str, Any]) -> Job:
        """Record the result of an attempt.

        Raises:
            PermanentError: the result is not a JSON object, or larger than a job can hold.
            ConditionFailed: the attempt no longer holds the job.
        """
        change = Change(set={"result": _result(result)}, remove=("error", "cancel_requested"))
        return self._end_attempt(life.COMPLETE, job, change)

    def fail(self, job: Job, error: BaseException) -> Job:
        """Record that no other attempt can help.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._end_attempt(life.FAIL, job, Change(set={"error": describe(error)}))

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed, and leave the job to the next one.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._end_attempt(life.RELEASE, job, Change(set={"error": describe(error)}))

    def stop(self, job: Job) -> Job:
        """Cancel a job that is under way.

        Raises:
            ConditionFailed: another attempt has begun, or the job has finished.
        """
        return self._end_attempt(life.STOP, job, Change(remove=("error",)))

    def cancel(self, job: Job) -> Job:
        """Cancel a job that no attempt holds.

        Raises:
            ConditionFailed: it has changed since `job` was read, is under way, has finished, or
                is gone.
        """
        change = Change(remove=("error",))
        return self._move(life.CANCEL, job.job_id, now(), change, unchanged_since(job))

    def ask_to_stop(self, job: Job) -> Job:
        """Ask the attempt that holds the job to stop.

        Raises:
            ConditionFailed: the job has changed since `job` was read, or is not under way.
        """
        change = Change(set={"cancel_requested": True, "updated_at": rfc3339(now())})
        return self._update(job.job_id, change, _status_in(life.STOP) & unchanged_since(job))

    def give_up(self, job: Job, error: Mapping[str, str]) -> Job:
        """Settle a job that the engine delivers no more: failed, or cancelled if so requested.

        Raises:
            ConditionFailed: an attempt holds it, it has changed since `job` was read, or it has
                finished.
        """
        moment = now()
        if job.cancel_requested:
            how, change = life.DROP, Change(remove=("error",))
        else:
            how, change = life.GIVE_UP, Change(set={"error": dict(error)})
        condition = not_leased(moment) & unchanged_since(job)
        return self._move(how, job.job_id, moment, change, condition)

    def retry(self, job_id: str, retry_of: int) -> Job:
        """Queue a failed or cancelled job again, if its history still has `retry_of` entries.

        Raises:
            ConditionFailed: it has another status, or has changed since the retry was requested.
        """
        forgotten = ("error", "result", "progress", "finished_at", "cancel_requested")
        change = Change(
            set={"retry_of": retry_of}, remove=(*forgotten, "recent_attempts", "ticket")
        )
        condition = has_length("history", retry_of)
        return self._move(life.RETRY, job_id, now(), change, condition)

    def _end_attempt(
        self, how: Transition, job: Job, change: Change, also: Condition | None = None
    ) -> Job:
        """Change the status for the attempt that holds the job; keep its latest progress."""
        if job.progress:
            change = replace(change, set={**change.set, "progress": job.progress})
        condition = held_by(job) & also if also else held_by(job)
        return self._move(how, job.job_id, now(), change, condition)

    def _move(
        self, how: Transition, job_id: str, moment: datetime, change: Change, condition: Condition
    ) -> Job:
        """Change the status as `how` allows, with its entry in the history, in one write."""
        told = {
            "status": how.target.value,
            "updated_at": rfc3339(moment),
            "expires_at": _expiry(moment),
            **change.set,
        }
        if how.target.terminal:
            told["finished_at"] = rfc3339(moment)
        removed = () if "lease_until" in told else ("lease_until",)
        change = replace(
            change,
            set=told,
            append={"history": _entry(how.target, moment)},
            remove=(*change.remove, *removed),
        )
        return self._update(job_id, change, _status_in(how) & condition)


def _result(result: Mapping[str, Any]) -> str:
    if not isinstance(result, Mapping):
        raise PermanentError(f"run() returned {type(result).__name__}; it returns a JSON object")
    try:
        text = canonical(result)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise PermanentError(f"the result is not JSON: {error}") from error
    if size > MAX_RESULT_BYTES:
        raise PermanentError(
            f"the result has {size} bytes and {MAX_RESULT_BYTES} are allowed:"
            " store it elsewhere and return where"
        )
    return text


def _status_in(how: Transition) -> Condition:
    return one_of("status", (status.value for status in how.sources))


def _entry(status: Status, moment: datetime) -> dict[str, str]:
    return {"status": status.value, "at": rfc3339(moment)}


def _expiry(moment: datetime) -> int:
    return int(moment.timestamp()) + settings.retention_seconds
