"""Hands a job to the engine: an SQS queue that the worker is fed from."""

from dataclasses import replace
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from jobs import Job, Status
from jobs.job import now
from jobs.problems import ServiceUnavailable
from jobs.reference import Reference
from jobs.settings import client, required
from jobs.store import JobStore

QUEUE_URL = required("JOBS_QUEUE_URL")

_sqs = client("sqs")
_store = JobStore()


def hand_over(reference: Reference) -> None:
    """Send the reference to the queue. Once more than needed does no harm: one message has the job.

    Raises:
        ServiceUnavailable: the queue did not take it, or not for certain.
    """
    try:
        ticket = replace(reference, ticket=uuid4().hex)
        _sqs.send_message(QueueUrl=QUEUE_URL, MessageBody=ticket.dumps())
    except (BotoCoreError, ClientError) as error:
        raise ServiceUnavailable("The job could not be handed over. Send it again.") from error


def call_off(job: Job) -> Job:
    """Cancel a job that no attempt holds, or ask the attempt that holds it to stop.

    Raises:
        Refused: the job has changed meanwhile.
    """
    if job.status is Status.QUEUED:
        return _store.cancel(job)
    job = _store.ask_to_stop(job)
    # An attempt that has lost its lease is dead, and its message may be lost as well.
    return job if job.leased(now()) else _store.give_up(job, {})
