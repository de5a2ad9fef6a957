"""Jobs in every state that a job can be in, made by the store itself."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from jobs import Job
from jobs.attempts import AttemptStore
from jobs.reference import Reference
from jobs.settings import settings
from jobs.table import ConditionFailed
from tests.unit.client import request
from tests.unit.emulated import AWS
from web.caller import caller_of

OWNER = caller_of(APIGatewayProxyEventV2(request("GET", "/jobs/any")))
PAYLOAD = {"site": "docs.example"}
RESULT = {"pages": 2}

store = AttemptStore()

NO_JOB = "6e1b3c1e-7a54-4c70-9d5f-1f3f0a0c9b52"
"""An id that no job has, for the parameters of tests: they are the same in every process."""


def new_id() -> str:
    """Return another id that no job has."""
    return str(uuid.uuid4())


def claim(job: Job | str, seconds: float = 60) -> Job:
    """Start the next attempt of a job, as its message does."""
    known = stored(job)
    reference = Reference(known.job_id, known.retry_of, known.ticket or "")
    return store.claim(reference, seconds, most=9)


def queued() -> Job:
    """A job before its first attempt."""
    return store.create(new_id(), OWNER, PAYLOAD, "a request")


def adopted() -> Job:
    """A queued job that two requests rely on."""
    return store.adopt(queued().job_id)


def running(seconds: float = 60) -> Job:
    """A job whose first attempt holds it."""
    return claim(queued(), seconds)


def lost() -> Job:
    """A job whose lease has run out, because its attempt crashed."""
    return running(seconds=-1)


def released() -> Job:
    """A job between its first attempt and its second."""
    return store.release(running(), ConnectionError("no answer"))


def asked() -> Job:
    """A running job that has been asked to stop."""
    return store.ask_to_stop(running())


def asked_and_lost() -> Job:
    """A job that was asked to stop, and whose attempt crashed."""
    return store.ask_to_stop(lost())


def asked_and_released() -> Job:
    """A job whose attempt failed after it was asked to stop."""
    return store.release(asked(), ConnectionError("no answer"))


def completed() -> Job:
    """A job that has a result."""
    return store.complete(running(), RESULT)


def failed() -> Job:
    """A job that has an error."""
    return store.fail(running(), ValueError("no such site"))


def cancelled() -> Job:
    """A job that was cancelled before an attempt began."""
    return store.cancel(queued())


def gone() -> Job:
    """A job that the table does not hold."""
    job = queued()
    store.withdraw(job)
    return job


STATES = {
    make.__name__: make
    for make in (
        *(queued, adopted, running, lost, released, asked, asked_and_lost, asked_and_released),
        *(completed, failed, cancelled, gone),
    )
}
UNDER_WAY = ("running", "asked")
"""The states in which a cancellation asks the attempt to stop."""
GIVEN_UP = {
    "queued": "failed",
    "released": "failed",
    "lost": "failed",
    "asked_and_lost": "cancelled",
    "asked_and_released": "cancelled",
}
"""How the dead-letter function settles a job, by its state."""


def overtaken() -> Job:
    """A job as its first attempt knows it, which has lost it to the second."""
    job = lost()
    claim(job, seconds=-1)  # so that no lease refuses what the attempt's number must
    return job


def stored(job: Job | str) -> Job:
    """Return a job as the store has it now."""
    found = store.get(job if isinstance(job, str) else job.job_id)
    assert found is not None
    return found


def refused(write: Callable[..., object], *arguments: Any) -> Job | None:
    """Return what is stored instead, according to the refusal of a write."""
    with pytest.raises(ConditionFailed) as refusal:
        write(*arguments)
    return refusal.value.job


def item(job: Job) -> dict[str, Any] | None:
    """Return the job's item in the table, with plain values."""
    answer = AWS.client("dynamodb").get_item(
        TableName=settings.jobs_table, Key={"job_id": {"S": job.job_id}}, ConsistentRead=True
    )
    value = TypeDeserializer().deserialize
    return {n: value(v) for n, v in answer["Item"].items()} if "Item" in answer else None


def change(job: Job, **attributes: Any) -> None:
    """Change the job's item behind the store's back; None removes an attribute."""
    changed = {**(item(job) or {}), **attributes}
    serialize = TypeSerializer().serialize
    AWS.client("dynamodb").put_item(
        TableName=settings.jobs_table,
        Item={name: serialize(value) for name, value in changed.items() if value is not None},
    )
