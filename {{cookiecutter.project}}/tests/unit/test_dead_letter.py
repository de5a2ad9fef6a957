"""The dead-letter function: every job that the engine has given up comes to its end."""

import pytest

import dead_letter
from jobs.reference import Reference
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.conftest import Counted, Read
from tests.unit.given import store, stored
from tests.unit.queues import Queue

pytestmark = pytest.mark.usefixtures("receiver")


@pytest.fixture
def queue() -> Queue:
    """The dead-letter queue, empty at first."""
    return Queue("DeadLetterQueue")


@pytest.mark.parametrize(("state", "status"), given.GIVEN_UP.items())
def test_a_job_that_was_given_up_ends(
    state: str, status: str, queue: Queue, announced: Read, log: Read, counted: Counted
) -> None:
    job = given.STATES[state]()
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert stored(job).status == status
    assert stored(job).error == log()[-1].get("error")
    assert log()[-1]["correlation_id"] == "a request"
    assert (stored(job).error is None) == (status == "cancelled")
    assert [message["Subject"] for message in announced()] == [f"Job {status}: {job.job_id}"]
    assert counted() == ["JobDeadLettered" if status == "failed" else "JobCancelled"]
    assert (log()[-1]["message"], log()[-1]["job_id"]) == ("job given up", job.job_id)


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_finished_job_is_only_announced(
    state: str, queue: Queue, announced: Read, counted: Counted
) -> None:
    job = given.STATES[state]()
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert stored(job) == job
    assert [message["Subject"] for message in announced()] == [f"Job {state}: {job.job_id}"]
    assert counted() == []


@pytest.mark.parametrize("claimed", [False, True])
def test_a_job_that_was_retried_since_is_left_to_its_retry(
    claimed: bool, queue: Queue, announced: Read, log: Read
) -> None:
    failed = given.failed()
    job = store.retry(failed.job_id, len(failed.history))
    if claimed:
        job = given.claim(job)
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert (stored(job), announced()) == (job, [])
    assert log()[-1]["message"] == "message dropped: another message has the job"


def test_a_retry_can_be_given_up_too(queue: Queue) -> None:
    failed = given.failed()
    job = store.retry(failed.job_id, len(failed.history))
    queue.send(Reference(job.job_id, retry_of=job.retry_of).dumps())

    assert queue.deliver(dead_letter.handler) == 0
    assert stored(job).status == "failed"


def test_a_retry_that_ends_before_the_api_records_it(queue: Queue, counted: Counted) -> None:
    """It is over: the API must not queue a job that nothing runs any more."""
    failed = given.failed()
    reference = Reference(failed.job_id, retry_of=len(failed.history))
    queue.send(reference.dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert (stored(failed).status, stored(failed).retry_of) == ("failed", reference.retry_of)
    assert counted() == ["JobDeadLettered"]
    with pytest.raises(ConditionFailed):
        store.retry(failed.job_id, len(failed.history))


def test_a_message_that_stays_keeps_no_other(queue: Queue, log: Read) -> None:
    """Its job is unknown, or a newer version of the code has written it; or it has none."""
    job, newer = given.released(), given.released()
    given.change(newer, schema=2)
    item = given.item(newer)
    for body in ("no JSON", *(Reference(i).dumps() for i in (given.new_id(), newer.job_id))):
        queue.send(body)
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 3

    assert stored(job).status == "failed"
    assert given.item(newer) == item
    kept = sorted(line["exception_name"] for line in log() if "exception_name" in line)
    assert kept == ["LookupError", "NewerSchema", "NotAReference"]
