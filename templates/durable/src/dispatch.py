"""Hands a job to the engine: one durable execution of the worker for each go."""

import re
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from jobs import Job, Status
from jobs.attempts import AttemptStore
from jobs.canonical import canonical
from jobs.reference import Reference
from jobs.settings import client, required
from jobs.table import ConditionFailed

WORKER = required("WORKER_FUNCTION")
"""Name of the worker with its alias: an execution stays on the version that it began on."""

_store = AttemptStore()
_lambda = client("lambda")


class NotHandedOver(Exception):
    """Lambda did not take the job, or did not say so."""

    def __init__(self, may_run: bool) -> None:
        super().__init__("it may run" if may_run else "it does not run")
        self.may_run = may_run
        """Whether an execution may have started. Its name is then taken, so the job must stay."""


class NotWaiting(Exception):
    """The job waits for no answer, or has just been given one."""


def hand_over(job: Job, retry_of: int | None = None) -> None:
    """Start an execution of the job. Starting a second one is safe: only one claims the job.

    A name starts one execution, and stays taken after that has ended. So the name has the time at
    which the job was created, because a key gives a later job the same id; a retry's is new each
    time, because the execution of an earlier request may have ended before it claimed the job.
    https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html

    Raises:
        NotHandedOver: Lambda did not take it, or did not say so.
    """
    go = re.sub(r"\D", "", job.created_at) if retry_of is None else uuid4().hex[:27]
    try:
        _lambda.invoke(
            FunctionName=WORKER,
            InvocationType="Event",
            DurableExecutionName=f"{job.job_id}-{go}",  # 64 characters at most
            Payload=Reference(job.job_id, retry_of).dumps(),
        )
    except _lambda.exceptions.DurableExecutionAlreadyStartedException:
        pass  # by a release of this code that wrote the reference in another way
    except (BotoCoreError, ClientError) as error:
        raise NotHandedOver(may_run=not _refused_at_once(error)) from error


def cancel(job: Job) -> Job:
    """Cancel a job and stop its execution.

    Should this function die in between, the execution's end brings the job to its own.

    Raises:
        ConditionFailed: the job has changed meanwhile.
        ClientError, BotoCoreError: the execution could not be stopped.
    """
    job = _store.cancel(job) if job.status is Status.QUEUED else _store.ask_to_stop(job)
    if job.execution:
        try:
            _lambda.stop_durable_execution(
                DurableExecutionArn=job.execution,
                Error={"ErrorType": "JobCancelled", "ErrorMessage": "The owner has cancelled."},
            )
        except ClientError as error:
            if _status(error) not in (400, 404):  # it has ended by itself, or is forgotten
                raise
    return job if job.status.terminal else _store.stop(job)


def question(job: Job) -> dict[str, Any]:
    """Return what the job waits for, if that is an answer.

    Raises:
        NotWaiting: the job waits for no answer.
    """
    if job.status is not Status.WAITING or not job.waiting or "callback_id" not in job.waiting:
        raise NotWaiting(f"The job is {job.status}; no answer is asked for.")
    return job.waiting


def deliver(job: Job, answer: dict[str, Any], by: str) -> Job:
    """Give the job the answer that it waits for, and return the job, running again.

    The caller who answers is the answer's member `by`, whatever the caller has written there.

    Raises:
        NotWaiting: the job waits for no answer, or has just been given another one.
        ClientError, BotoCoreError: Lambda did not take the answer, or did not say so.
    """
    asked = question(job)
    callback_id = asked["callback_id"]
    try:
        _lambda.send_durable_execution_callback_success(
            CallbackId=callback_id, Result=canonical({**answer, "by": by}).encode("utf-8")
        )
    except ClientError as error:
        if _status(error) not in (400, 404):
            raise
        raise NotWaiting("The job has been given an answer, or waits no longer.") from error
    try:
        return _store.resume(job, asked["for"], by, callback_id)
    except ConditionFailed as refused:  # the worker was faster
        return refused.job or job


def _refused_at_once(error: BotoCoreError | ClientError) -> bool:
    """Whether Lambda refused the only request that was made, so that nothing has begun."""
    if not isinstance(error, ClientError) or _status(error) >= 500:
        return False
    return int(_metadata(error).get("RetryAttempts", 0)) == 0


def _status(error: ClientError) -> int:
    return int(_metadata(error).get("HTTPStatusCode", 500))


def _metadata(error: ClientError) -> dict[str, Any]:
    return dict(error.response.get("ResponseMetadata", {}))
