"""Runs one job in one durable execution: many invocations, and waits between them.

Lambda invokes the handler again after each wait, each failed step and each crash. The handler then
runs from the top, and finished steps return what they returned the first time. So a step holds
whatever must not happen twice or may differ between two runs.
https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-sdk.html
"""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, cast

from aws_durable_execution_sdk_python import DurableContext, InvocationError, durable_execution
from aws_durable_execution_sdk_python.exceptions import UnrecoverableError
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError

import work
from durable_context import ENGINE, JobDurableContext, Superseded, as_durable, original
from jobs import Job, JobCancelled, PermanentError, Status
from jobs.attempts import AttemptStore
from jobs.context import JobContext
from jobs.failure import telling
from jobs.metrics import Metric, count, count_ended
from jobs.notification import announce
from jobs.once import note_deadline
from jobs.reference import Reference
from jobs.table import ConditionFailed
from retries import MAX_ATTEMPTS, PATIENT

logger = Logger()
store = AttemptStore()

_sdk = logging.getLogger("aws_durable_execution_sdk_python")
_sdk.handlers, _sdk.propagate = [logger.registered_handler], False  # so that it tells the job, too


@logger.inject_lambda_context(clear_state=True)
@durable_execution
def handler(event: dict[str, Any], context: DurableContext) -> dict[str, Any]:
    """Run the job that the event refers to; return its status, for the execution's record.

    Raises:
        NotAReference: the event is something else.
        LookupError: there is no such job.
        RuntimeError: the job cannot go on; its execution fails and becomes a dead letter.
    """
    note_deadline(_invocation(context))
    position = _position(context)
    context.set_logger(logger)
    reference = Reference.loads(json.dumps(event))
    logger.append_keys(job_id=reference.job_id)
    try:
        job = _run(reference, context, position)
    except Superseded as superseded:
        if superseded.job is None:
            raise LookupError("there is no such job") from None
        job = superseded.job
        if not job.status.terminal and _ours(job, reference, _execution(context)):
            raise RuntimeError(f"the job is {job.status}, and nothing goes on with it") from None
        logger.info("nothing to do", extra={"status": job.status})
    if job.status.terminal:
        announce(job)  # if this fails, the execution does, and the dead-letter function announces
    return {"job_id": job.job_id, "status": job.status.value, "attempts": job.attempts}


def _run(reference: Reference, context: DurableContext, position: str) -> Job:
    """Run the job and return it, terminal.

    Raises:
        Superseded: it has ended before, or is another execution's.
    """
    execution = _execution(context)
    context.step(lambda _: _start(reference, execution), name="start", config=PATIENT)
    claimed = _claimed(reference, execution, position)
    logger.append_keys(correlation_id=claimed.request_id)
    job = JobContext(claimed, store, _invocation(context).get_remaining_time_in_millis)
    end: Callable[[Job], Job]
    try:
        with telling(*ENGINE):
            result = work.run(
                claimed.payload, as_durable(JobDurableContext(context, job, store)), job
            )
        end = partial(store.complete, result=result)
    except UnrecoverableError:  # the engine's own: it knows whether to invoke again
        raise
    except ConditionFailed as refused:
        raise Superseded(refused.job) from refused
    except Exception as error:
        cause = original(error)
        if isinstance(cause, JobCancelled):
            end = store.stop
        else:
            context.logger.exception("job failed")
            end = partial(store.fail, error=cause)
    # A replay does not come here with this step done: `_claimed` raises, as the job is terminal.
    context.step(lambda _: _end(job, end), name="end", config=PATIENT)
    return job.job


def _start(reference: Reference, execution: str) -> None:
    """Claim the job. If it is not this execution's, `_claimed` finds out."""
    if reference.retry_of is not None:
        with suppress(ConditionFailed):  # usually, the API has recorded the retry
            store.retry(reference.job_id, reference.retry_of)
    with suppress(ConditionFailed):
        store.start(reference.job_id, reference.retry_of, execution)


def _claimed(reference: Reference, execution: str, position: str) -> Job:
    """Return the job if it is this execution's and has not ended.

    Gives the job up if `MAX_ATTEMPTS` invocations in a row have died where this one begins: Lambda
    would invoke again until the execution times out.
    https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-sdk-retries.html

    The job is read in each invocation, not kept in a step: its payload may be larger than the
    result of a step.
    """
    try:
        if position:
            job = store.note_position(reference.job_id, reference.retry_of, execution, position)
        else:
            job = store.get(reference.job_id)
        if job is None or job.status.terminal or not _ours(job, reference, execution):
            raise Superseded(job)
        if job.crashes:
            count(Metric.WORKER_CRASHED)
            logger.warning("the last invocation has died", extra={"crashes": job.crashes})
        if job.crashes >= MAX_ATTEMPTS:
            raise Superseded(_give_up(job))
        # A queued job's last attempt has failed, and its step is about to be tried again.
        return store.restart(job) if job.status is Status.QUEUED else job
    except ConditionFailed as refused:
        raise Superseded(refused.job) from refused
    except (BotoCoreError, ClientError) as error:
        raise InvocationError(f"the job cannot be read: {error}") from error


def _give_up(job: Job) -> Job:
    """End a job whose invocations die without getting any further."""
    message = f"The worker died {job.crashes} times in a row: a timeout, a crash or lack of memory."
    ended = store.give_up(job, {"type": "WorkerCrashed", "message": message})
    count_ended(ended.status)
    logger.error("job given up", extra={"status": ended.status, "error": ended.error})
    return ended


def _ours(job: Job, reference: Reference, execution: str) -> bool:
    """Whether the job belongs to this execution, and has not been retried since."""
    return job.execution == execution and job.retry_of == reference.retry_of


def _end(job: JobContext, end: Callable[[Job], Job]) -> None:
    """Bring the job to its end; `job.job` is then the job as stored."""
    try:
        try:
            ended = end(job.job)
        except PermanentError as error:  # the result cannot be kept
            ended = store.fail(job.job, error)
    except ConditionFailed as refused:
        raise Superseded(refused.job) from refused
    count_ended(ended.status)
    logger.info("job ended", extra={"attempt": ended.attempts, "status": ended.status})
    job.job = ended


def _execution(context: DurableContext) -> str:
    """Return the ARN of the execution."""
    return context.execution_context.durable_execution_arn


def _position(context: DurableContext) -> str:
    """Return a digest of what the execution has recorded; "" before there is anything.

    Every invocation but one that dies leaves a record, or is followed by an event that Lambda
    records. So two in a row that begin with the same digest mean a crash.
    """
    if not context.is_replaying():
        return ""
    records = sorted(
        (o.operation_id, o.status.value, o.step_details.attempt if o.step_details else 0)
        for o in context.state.operations.values()
    )
    return sha256(repr(records).encode()).hexdigest()[:16]


def _invocation(context: DurableContext) -> LambdaContext:
    """Return Lambda's own context of this invocation."""
    return cast(LambdaContext, context.lambda_context)
