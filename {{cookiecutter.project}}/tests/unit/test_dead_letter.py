"""The dead-letter function: every job that the engine has given up comes to its end."""

import pytest

import dead_letter
from jobs.reference import Reference
from tests.unit import given
from tests.unit.conftest import Counted, Read
from tests.unit.given import store, stored
from tests.unit.queues import Queue


@pytest.fixture
def queue() -> Queue:
    """The dead-letter queue, empty at first."""
    return Queue("DeadLetterQueue")


@pytest.mark.parametrize("state", ["queued", "released", "lost", "waiting"])
def test_a_job_that_was_given_up_has_failed(
    state: str,
    queue: Queue,
    announced: Read,
    log: Read,
    counted: Counted,
) -> None:
    job = given.STATES[state]()
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert stored(job).status == "failed"
    assert stored(job).error == log()[-1]["error"]
    assert [message["Subject"] for message in announced()] == [f"Job failed: {job.job_id}"]
    assert counted() == ["JobDeadLettered"]
    assert (log()[-1]["message"], log()[-1]["job_id"]) == ("job given up", job.job_id)


@pytest.mark.parametrize("state", ["asked_and_lost", "asked_and_released"])
def test_a_job_that_was_to_be_cancelled_is_cancelled(
    state: str, queue: Queue, announced: Read, counted: Counted
) -> None:
    job = given.STATES[state]()
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert (stored(job).status, stored(job).error) == ("cancelled", None)
    assert [message["Subject"] for message in announced()] == [f"Job cancelled: {job.job_id}"]
    assert counted() == ["JobCancelled"]


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


def test_a_job_that_an_attempt_holds_waits_for_its_end(
    queue: Queue, announced: Read, log: Read
) -> None:
    job = given.running()
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 1

    assert stored(job) == job
    assert announced() == []
    assert queue.hidden == 1
    assert log()[-1]["message"].startswith("message stays in the dead-letter queue")
    assert log()[-1]["job_id"] == job.job_id

    given.change(job, lease_until=0)
    queue.wait()
    assert queue.deliver(dead_letter.handler) == 0
    assert stored(job).status == "failed"


@pytest.mark.parametrize("then", ["queued", "running", "lost"])
def test_a_job_that_was_retried_since_is_left_to_its_retry(
    then: str, queue: Queue, announced: Read, log: Read
) -> None:
    failed = given.failed()
    job = store.retry(failed.job_id, len(failed.history))
    if then != "queued":
        job = given.claim(job, 60 if then == "running" else -1)
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert stored(job) == job
    assert announced() == []
    assert log()[-1]["message"] == "message dropped: another message has the job"


def test_a_retry_can_be_given_up_too(queue: Queue) -> None:
    failed = given.failed()
    job = store.retry(failed.job_id, len(failed.history))
    queue.send(Reference(job.job_id, retry_of=job.retry_of).dumps())

    assert queue.deliver(dead_letter.handler) == 0

    assert stored(job).status == "failed"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("not JSON", "NotAReference"),
        (Reference(given.NO_JOB).dumps(), "LookupError"),
    ],
)
def test_a_message_without_a_job_stays(body: str, error: str, queue: Queue, log: Read) -> None:
    queue.send(body)
    assert queue.deliver(dead_letter.handler) == 1
    assert log()[-1]["exception_name"] == error


def test_a_job_of_a_newer_schema_stays(queue: Queue, log: Read) -> None:
    job = given.lost()
    given.change(job, schema=2)
    item = given.item(job)
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 1

    assert given.item(job) == item
    assert log()[-1]["exception_name"] == "NewerSchema"


def test_one_message_that_stays_keeps_no_other(queue: Queue) -> None:
    jobs = [given.lost(), given.running(), given.released()]
    for job in jobs:
        queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 1

    assert [stored(job).status for job in jobs] == ["failed", "running", "failed"]
