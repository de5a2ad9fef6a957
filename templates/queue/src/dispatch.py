"""Hands a job to the engine: an SQS queue that the worker is fed from."""

from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from jobs import Job, Status
from jobs.attempts import AttemptStore
from jobs.reference import Reference
from jobs.settings import client, required
from jobs.times import now

QUEUE_URL = required("JOBS_QUEUE_URL")

_sqs = client("sqs")
_store = AttemptStore()


class NotHandedOver(Exception):
    """The queue did not take the job, or did not say so."""

    may_run = False
    """Whether the job must stay stored. A message without a job does nothing."""


def hand_over(job: Job, retry_of: int | None = None) -> None:
    """Send a reference to the job to the queue. Sending it twice is safe: one message has the job.

    Its group keeps a burst of one owner from delaying the jobs of others.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html

    Raises:
        NotHandedOver: the queue did not take it, or did not say so.
    """
    try:
        reference = Reference(job.job_id, retry_of, ticket=uuid4().hex)
        _sqs.send_message(
            QueueUrl=QUEUE_URL, MessageBody=reference.dumps(), MessageGroupId=job.owner_digest
        )
    except (BotoCoreError, ClientError) as error:
        raise NotHandedOver from error


def cancel(job: Job) -> Job:
    """Cancel a job that no attempt holds, or ask the attempt that holds it to stop.

    Raises:
        ConditionFailed: the job has changed meanwhile.
    """
    if job.status is Status.QUEUED:
        return _store.cancel(job)
    job = _store.ask_to_stop(job)
    # An attempt that has lost its lease is dead, and its message may be lost as well.
    return job if job.leased(now()) else _store.give_up(job, {})
