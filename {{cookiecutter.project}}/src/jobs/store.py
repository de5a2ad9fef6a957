"""The store of jobs: what callers and operators may do with a job."""

from typing import Any

from jobs import lifecycle
from jobs.canonical import canonical, fingerprint
from jobs.expressions import Change, Condition, absent, below, equal, has_length, one_of
from jobs.job import FORGOTTEN_BY_RETRY, SCHEMA, Job
from jobs.lifecycle import Status
from jobs.table import JobsTable, expiry, history_entry
from jobs.times import now, rfc3339

NOT_STARTED = equal("status", Status.QUEUED) & equal("attempts", 0)
"""No attempt has begun."""


def unchanged_since(job: Job) -> Condition:
    """The status has not changed since `job` was read."""
    return has_length("history", len(job.history))


class JobStore(JobsTable):
    """The jobs of one table. Every method is one request to DynamoDB.

    Each raises `NewerSchema` for a job that newer code has written.
    """

    def get(self, job_id: str) -> Job | None:
        """Return the job as it is now, or None when it is unknown or has expired."""
        job = self._read(job_id)
        return job if job and job.expires_at > now().timestamp() else None

    def create(
        self, job_id: str, owner: str, payload: dict[str, Any], request_id: str | None = None
    ) -> Job:
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
            "expires_at": expiry(moment),
            "attempts": 0,
            "history": [history_entry(Status.QUEUED, moment)],
            "schema": SCHEMA,
        }
        if request_id:
            item["request_id"] = request_id
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

    def cancel(self, job: Job) -> Job:
        """Cancel a job that no attempt holds.

        Raises:
            ConditionFailed: it has changed since `job` was read, is under way, has finished, or
                is gone.
        """
        change = Change(remove=("error",))
        return self._change_status(lifecycle.CANCEL, job.job_id, change, unchanged_since(job))

    def ask_to_stop(self, job: Job) -> Job:
        """Ask the attempt that holds the job to stop.

        Raises:
            ConditionFailed: the job has changed since `job` was read, or is not under way.
        """
        under_way = one_of("status", lifecycle.STOP.sources)
        change = Change(set={"cancel_requested": True, "updated_at": rfc3339(now())})
        return self._update(job.job_id, change, under_way & unchanged_since(job))

    def retry(self, job_id: str, retry_of: int) -> Job:
        """Queue a failed or cancelled job again, if its history still has `retry_of` entries.

        Raises:
            ConditionFailed: it has another status, or has changed since the retry was requested.
        """
        change = Change(set={"retry_of": retry_of}, remove=FORGOTTEN_BY_RETRY)
        unchanged = has_length("history", retry_of)
        return self._change_status(lifecycle.RETRY, job_id, change, unchanged)
