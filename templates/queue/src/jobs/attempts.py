"""The attempts at a job: how each one claims the job, reports on it and ends.

An attempt holds its job by a lease, and its writes carry its number. Once another attempt has
begun, DynamoDB refuses the writes of the old one.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from jobs import lifecycle
from jobs.expressions import Change, Condition, absent, below, equal
from jobs.failure import describe
from jobs.job import Job, milliseconds
from jobs.lifecycle import Status, Transition
from jobs.reference import Reference
from jobs.result import as_result
from jobs.store import JobStore, unchanged_since
from jobs.times import now, rfc3339


def not_leased() -> Condition:
    """No attempt holds the job."""
    return absent("lease_until") | below("lease_until", milliseconds(now()))


def held_by(job: Job) -> Condition:
    """No other attempt has begun since that of `job`."""
    return equal("attempts", job.attempts)


def not_elsewhere(reference: Reference) -> Condition:
    """The job was not retried since, and does not belong to another hand-over's message."""
    never_retried = reference.retry_of is None
    retry = absent("retry_of") if never_retried else equal("retry_of", reference.retry_of)
    return retry & (absent("ticket") | equal("ticket", reference.ticket))


def attempts_left(most: int) -> Condition:
    """The job has had fewer than `most` attempts since it was accepted or last retried."""
    return absent("recent_attempts") | below("recent_attempts", most)


class AttemptStore(JobStore):
    """The jobs of one table, with what the attempts do to them."""

    def claim(self, reference: Reference, seconds: float, most: int) -> Job:
        """Start an attempt that holds the job for `seconds`, one of `most` attempts.

        Raises:
            ConditionFailed: the job is unknown, terminal, cancelled or leased, has had its
                attempts, or is another message's.
        """
        change = Change(
            set={
                "lease_until": milliseconds(now() + timedelta(seconds=seconds)),
                "ticket": reference.ticket,
            },
            count=("attempts", "recent_attempts"),
        )
        free = absent("cancel_requested") & not_leased()
        ours = not_elsewhere(reference) & attempts_left(most)
        return self._change_status(lifecycle.CLAIM, reference.job_id, change, free & ours)

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress of an attempt. The returned job has `cancel_requested`.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        change = Change(set={"progress": dict(progress), "updated_at": rfc3339(now())})
        return self._update(job.job_id, change, equal("status", Status.RUNNING) & held_by(job))

    def complete(self, job: Job, result: Mapping[str, Any]) -> Job:
        """Record the result of an attempt.

        Raises:
            PermanentError: the result is not a JSON object, or larger than a job can hold.
            ConditionFailed: the attempt no longer holds the job.
        """
        change = Change(set={"result": as_result(result)}, remove=("error", "cancel_requested"))
        return self._end(lifecycle.COMPLETE, job, change)

    def fail(self, job: Job, error: BaseException) -> Job:
        """Record that no other attempt can help.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._end(lifecycle.FAIL, job, Change(set={"error": describe(error)}))

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed, and leave the job to the next one.

        Raises:
            ConditionFailed: the attempt no longer holds the job.
        """
        return self._end(lifecycle.RELEASE, job, Change(set={"error": describe(error)}))

    def stop(self, job: Job) -> Job:
        """Cancel a job that is under way.

        Raises:
            ConditionFailed: another attempt has begun, or the job has finished.
        """
        return self._end(lifecycle.STOP, job, Change(remove=("error",)))

    def give_up(self, job: Job, error: Mapping[str, str]) -> Job:
        """Settle a job that the queue does not deliver any more.

        The job fails with `error`, or is cancelled if its owner asked for that.

        Raises:
            ConditionFailed: an attempt holds it, it has changed since `job` was read, or it has
                finished.
        """
        if job.cancel_requested:
            how, change = lifecycle.DROP, Change(remove=("error", "lease_until"))
        else:
            how, change = lifecycle.GIVE_UP, Change(set={"error": error}, remove=("lease_until",))
        return self._change_status(how, job.job_id, change, not_leased() & unchanged_since(job))

    def _end(self, how: Transition, job: Job, change: Change) -> Job:
        """End the attempt that holds the job; keep its latest progress."""
        progress = {"progress": job.progress} if job.progress else {}
        change = replace(
            change, set={**change.set, **progress}, remove=(*change.remove, "lease_until")
        )
        return self._change_status(how, job.job_id, change, held_by(job))
