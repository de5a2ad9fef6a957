"""Runs the jobs of the queue: one message, one attempt.

A message is deleted only when its job has reached a terminal status and that was announced.
Until then everything, a crash included, brings it back; after the queue's maximum of receives
it goes to the dead-letter queue.
"""

import random
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
)
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError

import work
from jobs import Job, JobCancelled, PermanentError, Status
from jobs.attempts import AttemptStore
from jobs.context import JobContext
from jobs.failure import telling
from jobs.job import milliseconds
from jobs.metrics import Metric, count, count_ended
from jobs.notification import announce
from jobs.once import note_deadline
from jobs.reference import Reference
from jobs.settings import client, required, required_int
from jobs.table import ConditionFailed
from jobs.times import now

QUEUE_URL = required("JOBS_QUEUE_URL")
MAX_ATTEMPTS = required_int("MAX_ATTEMPTS", minimum=1)
RETRY_BASE_SECONDS = required_int("RETRY_BASE_SECONDS", minimum=0)
RETRY_CAP_SECONDS = 900
CLOCK_SKEW_MS = 60_000
"""How far the clocks of two sandboxes may differ before leases overlap."""

logger = Logger()
store = AttemptStore()
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
_sqs = client("sqs")


class RetryLater(Exception):
    """The job is not finished: the queue delivers its message again in `seconds`."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


@dataclass
class Pace:
    """How long the jobs of this batch take, to tell whether another one fits."""

    longest_ms: int = 0


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Run the jobs of a batch; return those messages that must come back."""
    note_deadline(context)
    return process_partial_response(
        event=event,
        record_handler=partial(_handle, pace=Pace()),
        processor=processor,
        context=context,
    )


def _handle(record: SQSRecord, lambda_context: LambdaContext, pace: Pace) -> None:
    """Handle one message: returning deletes it, raising keeps it."""
    start = lambda_context.get_remaining_time_in_millis()
    receives = int(record.attributes.approximate_receive_count)
    with logger.append_context_keys(message_id=record.message_id, receives=receives):
        try:
            if start < 2 * pace.longest_ms:  # handing it back would count as an attempt
                _send_again(record)
                return
            reference = Reference.loads(record.body)
            logger.append_keys(job_id=reference.job_id)
            if ended := _attempt(reference, lambda_context):
                announce(ended)
        except RetryLater as later:
            logger.info(f"message comes back in {later.seconds:.0f} s: {later}")
            _hide(record, later.seconds)
            raise
        except Exception:
            logger.exception("message kept until its visibility timeout ends")
            raise
        finally:
            pace.longest_ms = max(
                pace.longest_ms, start - lambda_context.get_remaining_time_in_millis()
            )
            logger.remove_keys(["job_id", "correlation_id"])


def _attempt(reference: Reference, context: LambdaContext) -> Job | None:
    """Run one attempt and return the job, terminal; None if it is another message's.

    Raises:
        RetryLater: the job needs another attempt, or another attempt holds it.
    """
    if reference.retry_of is not None:
        with suppress(ConditionFailed):  # mostly the API has done it
            store.retry(reference.job_id, reference.retry_of)
    remaining = context.get_remaining_time_in_millis()
    lease_seconds = (remaining + min(remaining, CLOCK_SKEW_MS)) / 1000
    try:
        claimed = store.claim(reference, lease_seconds, MAX_ATTEMPTS)
    except ConditionFailed as refused:
        return _not_claimed(refused.job, reference)

    logger.append_keys(correlation_id=claimed.request_id)
    if claimed.history[-2]["status"] == Status.RUNNING:  # its lease ran out
        count(Metric.ATTEMPT_LOST)
    logger.info("attempt started", extra={"attempt": claimed.attempts})
    try:
        ended = _run(JobContext(claimed, store, context.get_remaining_time_in_millis))
    except ConditionFailed as refused:
        raise RetryLater(1, f"this attempt no longer holds the job: {refused}") from refused
    count_ended(ended.status)
    logger.info("attempt ended", extra={"attempt": ended.attempts, "status": ended.status})
    return ended


def _run(context: JobContext) -> Job:
    """Do the work and record how it ended."""
    try:
        with telling():
            result = work.run(context.job.payload, context)
        return store.complete(context.job, result)
    except JobCancelled:
        return store.stop(context.job)
    except PermanentError as error:
        logger.exception("attempt failed for good")
        return store.fail(context.job, error)
    except ConditionFailed:
        raise
    except Exception as error:
        logger.exception("attempt failed")
        released = store.release(context.job, error)
        if released.cancel_requested:
            return store.cancel(released)
        locked = isinstance(error, IdempotencyAlreadyInProgressError)
        # An earlier attempt left that record, which ends when Lambda would have ended that attempt.
        at_least = context.remaining() + 1 if locked else 0
        seconds = _back_off(released.recent_attempts, at_least)
        raise RetryLater(seconds, "the attempt failed") from error


def _not_claimed(job: Job | None, reference: Reference) -> Job | None:
    """Decide about a message whose job could not be claimed."""
    if job is None:
        raise LookupError("there is no such job")
    if job.status.terminal:
        logger.info("nothing to do", extra={"status": job.status})
        return job
    if job.belongs_elsewhere(reference):
        logger.info("message dropped: another message has the job")
        return None
    if job.leased(now()):
        left = (job.lease_until or 0) - milliseconds(now())
        raise RetryLater(left / 1000 + 1, "another attempt holds the job")
    if job.cancel_requested:
        queued = job.status is Status.QUEUED
        job = store.cancel(job) if queued else store.stop(job)
        count(Metric.CANCELLED)
        return job
    if job.recent_attempts >= MAX_ATTEMPTS:
        raise RetryLater(0, "no attempt is left, so it goes to the dead-letter queue")
    raise RetryLater(1, "the job changed meanwhile")


def _back_off(attempts: int, at_least: float = 0) -> float:
    """Return the seconds until the next attempt: exponential, with jitter.

    After the last one there is nothing to wait for: the message is to be dead-lettered.
    """
    if attempts >= MAX_ATTEMPTS:
        return 0
    longest = min(RETRY_CAP_SECONDS, RETRY_BASE_SECONDS * 2 ** (attempts - 1))
    return max(at_least, random.uniform(longest / 2, longest))


def _send_again(record: SQSRecord) -> None:
    """Send a message anew, in the group of its job's owner, as src/dispatch.py does."""
    job = store.get(Reference.loads(record.body).job_id)
    group = {"MessageGroupId": job.owner_digest} if job else {}
    _sqs.send_message(QueueUrl=QUEUE_URL, MessageBody=record.body, **group)
    logger.info("message sent again: no time is left for its job in this batch")


def _hide(record: SQSRecord, seconds: float) -> None:
    """Set when the message comes back; failing that, it does when its visibility timeout ends."""
    try:
        _sqs.change_message_visibility(
            QueueUrl=QUEUE_URL,
            ReceiptHandle=record.receipt_handle,
            VisibilityTimeout=round(seconds),
        )
    except (BotoCoreError, ClientError):
        logger.warning("visibility timeout not changed", exc_info=True)
