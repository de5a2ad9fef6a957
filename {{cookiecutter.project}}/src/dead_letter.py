"""Settles the jobs that the engine has given up, so that no job stays unfinished for ever.

Only a message whose job is settled leaves the dead-letter queue. What cannot be settled stays
there, in sight of an alarm, until somebody has looked at it: see docs/runbook.md.
"""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from failure_reason import failure_reason
from jobs import Status
from jobs.attempts import AttemptStore
from jobs.metrics import Metric, count
from jobs.notification import announce
from jobs.once import note_deadline
from jobs.reference import Reference

logger = Logger()
store = AttemptStore()
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Settle the jobs of a batch; return those messages that stay."""
    note_deadline(context)
    return process_partial_response(
        event=event, record_handler=_handle, processor=processor, context=context
    )


def _handle(record: SQSRecord) -> None:
    """Handle one message: returning deletes it, raising keeps it."""
    with logger.append_context_keys(message_id=record.message_id):
        try:
            reference = Reference.loads(record.body)
            logger.append_keys(job_id=reference.job_id)
            _settle(reference)
        except Exception:
            logger.exception("message stays in the dead-letter queue: its job is not settled")
            raise
        finally:
            logger.remove_keys(["job_id", "correlation_id"])


def _settle(reference: Reference) -> None:
    job = store.get(reference.job_id)
    if job is None:
        raise LookupError("there is no such job")
    logger.append_keys(correlation_id=job.request_id)
    if job.status.terminal and reference.retry_of == len(job.history):
        job = store.retry(job.job_id, reference.retry_of)  # the API had not come to it yet
    if not job.status.terminal:
        if job.belongs_elsewhere(reference):
            logger.info("message dropped: another message has the job")
            return
        job = store.give_up(job, failure_reason(job))
        count(Metric.DEAD_LETTERED if job.status is Status.FAILED else Metric.CANCELLED)
        logger.error("job given up", extra={"status": job.status, "error": job.error})
    announce(job)
