"""The worker: messages that the queue has really delivered, and work of every kind."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

import dead_letter
import work
import worker
from jobs import Job, JobCancelled, PermanentError
from jobs.context import JobContext
from jobs.reference import Reference
from jobs.settings import settings
from tests.unit import given
from tests.unit.client import Context
from tests.unit.conftest import Clock, Counted, Read
from tests.unit.given import RESULT, store, stored
from tests.unit.queues import Queue

Run = Callable[[dict[str, Any], JobContext], Any]
LetRun = Callable[[Run], None]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """The queue that feeds the worker, empty at first."""
    queue = Queue("JobsQueue")
    monkeypatch.setattr(worker, "QUEUE_URL", queue.url)
    return queue


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let work.run succeed; the list tells of which jobs it was called."""
    called: list[str] = []

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        called.append(job.id)
        return RESULT

    monkeypatch.setattr(work, "run", run)
    return called


@pytest.fixture
def let_run(monkeypatch: pytest.MonkeyPatch) -> LetRun:
    """Put a function in the place of work.run."""
    return lambda run: monkeypatch.setattr(work, "run", run)


def raising(error: BaseException) -> Run:
    """Return work that fails with this error."""

    def run(payload: dict[str, Any], job: JobContext) -> Any:
        raise error

    return run


def send(queue: Queue, job: Job) -> None:
    """Send the message that the API sends for a job."""
    queue.send(Reference(job.job_id).dumps())


# ---------------------------------------------------------------- how an attempt ends


def test_completed(
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    log: Read,
    counted: Counted,
) -> None:
    job = given.queued()
    send(queue, job)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        assert (payload, context.id, context.attempt) == (job.payload, job.job_id, 1)
        assert context.remaining() == 60
        context.progress(2, 2)
        return RESULT

    let_run(run)
    assert queue.deliver(worker.handler) == 0

    completed = stored(job)
    assert (completed.status, completed.result) == ("completed", RESULT)
    assert completed.public()["progress"] == {"done": 2, "total": 2}
    assert [message["Subject"] for message in announced()] == [f"Job completed: {job.job_id}"]
    assert (queue.visible, queue.hidden) == (0, 0)
    assert [line["message"] for line in log()] == ["attempt started", "attempt ended"]
    assert {line["job_id"] for line in log()} == {job.job_id}
    assert counted() == ["JobCompleted"]


def test_the_lease_outlives_the_invocation_by_a_minute(queue: Queue, let_run: LetRun) -> None:
    leases: list[float] = []

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        started, lease_until = context.job.updated_at, context.job.lease_until
        leases.append((lease_until or 0) / 1000 - datetime.fromisoformat(started).timestamp())
        return {}

    let_run(run)
    for remaining_ms in (300_000, 5_000):
        send(queue, given.queued())
        queue.deliver(worker.handler, Context(remaining_ms))
    # A minute for clocks that differ, but no more than the work itself may take.
    assert leases == pytest.approx([360, 10], abs=0.01)


def test_a_failure_that_may_pass_is_tried_again_later(
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    counted: Counted,
) -> None:
    job = given.queued()
    send(queue, job)

    let_run(raising(ConnectionError("no answer")))
    assert queue.deliver(worker.handler) == 1

    assert stored(job).status == "queued"
    assert stored(job).error == {"type": "ConnectionError", "message": "no answer"}
    assert (queue.visible, queue.hidden) == (0, 1)  # it waits
    assert announced() == []
    assert counted() == []

    let_run(lambda payload, context: RESULT)
    queue.wait()
    assert queue.deliver(worker.handler) == 0
    assert (stored(job).status, stored(job).attempts) == ("completed", 2)


def test_a_permanent_failure(
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    counted: Counted,
) -> None:
    job = given.queued()
    send(queue, job)

    let_run(raising(PermanentError("no such site")))
    assert queue.deliver(worker.handler) == 0

    assert stored(job).status == "failed"
    assert stored(job).error == {"type": "PermanentError", "message": "no such site"}
    assert [message["Subject"] for message in announced()] == [f"Job failed: {job.job_id}"]
    assert counted() == ["JobFailed"]


def test_an_attempt_that_python_sees_end_is_a_failed_one(queue: Queue, let_run: LetRun) -> None:
    job = given.queued()
    send(queue, job)

    let_run(raising(SystemExit(3)))
    assert queue.deliver(worker.handler) == 1

    assert stored(job).status == "queued"
    assert stored(job).error == {"type": "SystemExit", "message": "3"}


def test_a_permanent_failure_in_a_group(queue: Queue, let_run: LetRun) -> None:
    job = given.queued()
    send(queue, job)

    let_run(raising(ExceptionGroup("tasks", [PermanentError("no such site"), OSError("late")])))
    assert queue.deliver(worker.handler) == 0

    message = "PermanentError: no such site; OSError: late"
    assert stored(job).error == {"type": "PermanentError", "message": message}


def test_a_result_that_cannot_be_kept_is_a_permanent_failure(queue: Queue, let_run: LetRun) -> None:
    job = given.queued()
    send(queue, job)

    let_run(lambda payload, context: None)
    assert queue.deliver(worker.handler) == 0

    assert stored(job).error == {
        "type": "PermanentError",
        "message": "run() returned NoneType; it returns a JSON object",
    }


def test_cancelled_during_the_work(
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    monkeypatch: pytest.MonkeyPatch,
    counted: Counted,
) -> None:
    monkeypatch.setattr("jobs.context.REFRESH_SECONDS", 0)
    job = given.queued()
    send(queue, job)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        assert not context.cancelled
        store.ask_to_stop(context.job)
        assert context.cancelled
        raise JobCancelled

    let_run(run)
    assert queue.deliver(worker.handler) == 0

    assert stored(job).status == "cancelled"
    assert [message["Subject"] for message in announced()] == [f"Job cancelled: {job.job_id}"]
    assert counted() == ["JobCancelled"]


def test_cancelled_during_an_attempt_that_fails(
    queue: Queue, let_run: LetRun, announced: Read
) -> None:
    job = given.queued()
    send(queue, job)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        store.ask_to_stop(context.job)
        raise ConnectionError("no answer")

    let_run(run)
    assert queue.deliver(worker.handler) == 0

    assert stored(job).status == "cancelled"
    assert [message["Subject"] for message in announced()] == [f"Job cancelled: {job.job_id}"]


@pytest.mark.parametrize(
    "end",
    [None, ConnectionError("no answer"), PermanentError("no such site"), JobCancelled()],
)
def test_an_attempt_that_was_overtaken_changes_nothing(
    end: Exception | None, queue: Queue, let_run: LetRun, log: Read
) -> None:
    job = given.queued()
    send(queue, job)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        given.change(job, attempts=2, lease_until=0)
        if end:
            raise end
        return RESULT

    let_run(run)
    assert queue.deliver(worker.handler) == 1

    assert (stored(job).status, stored(job).attempts) == ("running", 2)
    assert log()[-1]["message"] == (
        "message comes back in 1 s: this attempt no longer holds the job: the job is running"
    )


# ---------------------------------------------------------------- deliveries without an attempt


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_finished_job_is_not_run_again(
    state: str, queue: Queue, runs: list[str], announced: Read, log: Read
) -> None:
    job = given.STATES[state]()
    send(queue, job)
    send(queue, job)

    assert queue.deliver(worker.handler) == 0

    assert runs == []
    assert stored(job) == job
    # Its worker may have died before it could announce it; once is enough.
    assert [message["Subject"] for message in announced()] == [f"Job {state}: {job.job_id}"]
    assert {line["message"] for line in log()} == {"nothing to do"}


def test_a_job_that_could_not_be_announced_is_announced_by_the_next_delivery(
    queue: Queue, runs: list[str], announced: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = given.queued()
    send(queue, job)

    with monkeypatch.context() as patch:
        no_topic = replace(settings, job_events_topic=f"{settings.job_events_topic}-gone")
        patch.setattr("jobs.notification.settings", no_topic)
        assert queue.deliver(worker.handler) == 1
    assert stored(job).status == "completed"

    queue.wait()
    assert queue.deliver(worker.handler) == 0
    assert runs == [job.job_id]
    assert len(announced()) == 1


def test_a_job_that_another_attempt_holds(
    queue: Queue, runs: list[str], log: Read, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.now", lambda: clock.now)
    job = given.running(seconds=90)
    send(queue, job)

    assert queue.deliver(worker.handler) == 1

    assert runs == []
    assert stored(job) == job
    assert (queue.visible, queue.hidden) == (0, 1)
    assert log()[-1]["message"] == "message comes back in 91 s: another attempt holds the job"


def test_a_job_whose_attempt_was_lost_is_taken_over(
    queue: Queue, runs: list[str], counted: Counted
) -> None:
    job = given.lost()
    send(queue, job)
    assert queue.deliver(worker.handler) == 0
    assert (stored(job).status, stored(job).attempts) == ("completed", 2)
    assert counted() == ["AttemptLost", "JobCompleted"]


@pytest.mark.parametrize("state", ["asked_and_lost", "asked_and_released"])
def test_a_cancelled_job_whose_worker_died_is_cancelled(
    state: str,
    queue: Queue,
    runs: list[str],
    announced: Read,
    counted: Counted,
) -> None:
    job = given.STATES[state]()
    send(queue, job)

    assert queue.deliver(worker.handler) == 0

    assert runs == []
    assert stored(job).status == "cancelled"
    assert len(announced()) == 1
    assert counted() == ["JobCancelled"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("not JSON", "NotAReference"),
        ('{"job": "17"}', "NotAReference"),
        (Reference(given.NO_JOB).dumps(), "LookupError"),
        (Reference(given.NO_JOB, retry_of=3).dumps(), "LookupError"),
    ],
)
def test_a_message_without_a_job_is_kept(
    body: str, error: str, queue: Queue, runs: list[str], log: Read
) -> None:
    queue.send(body)
    assert queue.deliver(worker.handler) == 1
    assert runs == []
    assert queue.hidden == 1
    assert log()[-1]["message"] == "message kept until its visibility timeout ends"
    assert log()[-1]["exception_name"] == error


def test_a_job_of_a_newer_schema_is_left_to_newer_code(
    queue: Queue, runs: list[str], log: Read
) -> None:
    job = given.queued()
    given.change(job, schema=2)
    item = given.item(job)
    send(queue, job)

    assert queue.deliver(worker.handler) == 1

    assert runs == []
    assert given.item(job) == item
    assert log()[-1]["exception_name"] == "NewerSchema"
    assert log()[-1]["job_id"] == job.job_id


# ---------------------------------------------------------------- retries that the owner asks for


def test_a_retry_that_the_api_could_not_record_is_recorded_here(
    queue: Queue, runs: list[str]
) -> None:
    job = given.failed()
    queue.send(Reference(job.job_id, retry_of=len(job.history)).dumps())

    assert queue.deliver(worker.handler) == 0

    assert runs == [job.job_id]
    assert (stored(job).status, stored(job).retry_of) == ("completed", len(job.history))


def test_a_retry_that_was_cancelled_is_not_run(queue: Queue, runs: list[str]) -> None:
    job = given.failed()
    store.cancel(store.retry(job.job_id, len(job.history)))
    queue.send(Reference(job.job_id, retry_of=len(job.history)).dumps())

    assert queue.deliver(worker.handler) == 0

    assert runs == []
    assert stored(job).status == "cancelled"


# ---------------------------------------------------------------- when messages come back


def test_another_message_of_the_same_job_is_dropped(
    queue: Queue, let_run: LetRun, log: Read
) -> None:
    """Requests that were sent again: they must not run a job that backs off."""
    job = given.queued()
    let_run(raising(ConnectionError("no answer")))
    queue.send(Reference(job.job_id, ticket="first").dumps())
    assert queue.deliver(worker.handler) == 1

    queue.send(Reference(job.job_id, ticket="second").dumps())
    assert queue.deliver(worker.handler) == 0

    assert (stored(job).status, stored(job).attempts) == ("queued", 1)
    assert (queue.visible, queue.hidden) == (0, 1)
    assert log()[-1]["message"] == "message dropped: another message has the job"


def test_a_job_that_has_had_its_attempts_is_left_to_the_dead_letter_queue(
    queue: Queue, runs: list[str], log: Read
) -> None:
    """Although its message, sent again, has been received less often."""
    job = given.released()
    given.change(job, recent_attempts=worker.MAX_ATTEMPTS)
    send(queue, job)

    assert queue.deliver(worker.handler) == 1

    assert runs == []
    assert queue.visible == 1
    assert "no attempt is left" in log()[-1]["message"]


@pytest.mark.parametrize(
    ("attempts", "least", "most"),
    [(1, 5, 10), (2, 10, 20), (3, 20, 40), (4, 40, 80), (5, 0, 0), (6, 0, 0)],
)
def test_the_back_off_doubles_until_nothing_is_to_wait_for(
    attempts: int, least: float, most: float
) -> None:
    waits = [worker._back_off(attempts) for _ in range(200)]
    assert least <= min(waits) <= max(waits) <= most
    assert max(waits) - min(waits) >= (most - least) / 2  # spread, lest all come back at once


def test_the_back_off_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_ATTEMPTS", 100)
    assert 450 <= worker._back_off(99) <= 900


def test_an_attempt_that_finds_an_effect_locked_comes_back_when_the_lock_has_ended(
    queue: Queue, let_run: LetRun, log: Read
) -> None:
    def die() -> None:
        raise KeyboardInterrupt  # nothing cleans up after it, as after a kill

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        with suppress(KeyboardInterrupt):
            job.once("pay", die)
        return {"paid": job.once("pay", lambda: True)}

    let_run(run)
    send(queue, given.queued())
    assert queue.deliver(worker.handler, Context(remaining_ms=40_000)) == 1
    assert log()[-1]["message"] == "message comes back in 41 s: the attempt failed"


def test_the_lock_of_an_effect_ends_with_the_invocation_that_left_it(
    queue: Queue, let_run: LetRun
) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        if job.attempt == 1:
            with suppress(KeyboardInterrupt):
                job.once("pay", die)
            raise ConnectionError("no answer")
        return {"paid": job.once("pay", lambda: True)}

    let_run(run)
    job = given.queued()
    send(queue, job)
    assert queue.deliver(worker.handler, Context(remaining_ms=0)) == 1
    queue.wait()
    assert queue.deliver(worker.handler) == 0
    assert stored(job).result == {"paid": True}


def test_a_message_that_cannot_be_hidden_comes_back_by_itself(
    queue: Queue, let_run: LetRun, monkeypatch: pytest.MonkeyPatch, log: Read
) -> None:
    job = given.queued()
    send(queue, job)
    monkeypatch.setattr(worker, "QUEUE_URL", f"{queue.url}-gone")

    let_run(raising(ConnectionError("no answer")))
    assert queue.deliver(worker.handler) == 1

    assert stored(job).status == "queued"
    assert log()[-1]["message"] == "visibility timeout not changed"


def test_a_job_that_always_fails_is_given_up(
    let_run: LetRun, monkeypatch: pytest.MonkeyPatch, announced: Read
) -> None:
    dead_letters = Queue("DeadLetterQueue")
    queue = Queue("JobsQueue", dead_letters)
    monkeypatch.setattr(worker, "QUEUE_URL", queue.url)
    job = given.queued()
    send(queue, job)

    let_run(raising(ConnectionError("no answer")))
    for _ in range(worker.MAX_ATTEMPTS):
        assert queue.deliver(worker.handler) == 1
        queue.wait()
    assert queue.take() == []  # one receive too many: SQS moves it

    assert dead_letters.deliver(dead_letter.handler) == 0
    assert stored(job).status == "failed"
    assert stored(job).error == {
        "type": "ConnectionError",
        "message": "Given up at attempt 5. The last error told: no answer",
    }
    assert [message["Subject"] for message in announced()] == [f"Job failed: {job.job_id}"]


# ---------------------------------------------------------------- batches


def test_a_batch_keeps_only_what_failed(queue: Queue, let_run: LetRun) -> None:
    jobs = [given.queued() for _ in range(3)]
    for job in jobs:
        send(queue, job)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        if context.id == jobs[1].job_id:
            raise ConnectionError("no answer")
        return RESULT

    let_run(run)
    assert queue.deliver(worker.handler) == 1

    assert [stored(job).status for job in jobs] == ["completed", "queued", "completed"]
    assert queue.hidden == 1


def slow(context: Context) -> Run:
    """Return work of which each job takes 20 seconds."""

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        context.remaining_ms -= 20_000
        return RESULT

    return run


def test_a_batch_starts_no_job_that_it_has_no_time_for(
    queue: Queue, let_run: LetRun, log: Read
) -> None:
    jobs = [given.queued() for _ in range(4)]
    for job in jobs:
        send(queue, job)
    context = Context(remaining_ms=60_000)

    let_run(slow(context))
    assert queue.deliver(worker.handler, context) == 0

    statuses = sorted(stored(job).status for job in jobs)
    assert statuses == ["completed", "completed", "queued", "queued"]
    assert queue.visible == 2  # new messages, whose receives count from the beginning
    assert log()[-1]["message"].endswith("no time is left for its job in this batch")
    assert "job_id" not in log()[-1]
