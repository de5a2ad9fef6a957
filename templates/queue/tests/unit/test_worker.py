"""The worker: messages that the queue has really delivered, and work of every kind."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

import work
import worker
from jobs import Job, JobCancelled, PermanentError
from jobs.context import JobContext
from jobs.reference import Reference
from jobs.settings import settings
from tests.unit import given
from tests.unit.client import Context
from tests.unit.conftest import Counted, Read
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
def let_run(monkeypatch: pytest.MonkeyPatch) -> LetRun:
    """Put a function in the place of work.run."""
    return lambda run: monkeypatch.setattr(work, "run", run)


@pytest.fixture
def runs(let_run: LetRun) -> list[str]:
    """Let work.run succeed; the list tells of which jobs it was called."""
    called: list[str] = []
    let_run(lambda payload, job: called.append(job.id) or RESULT)  # type: ignore[func-returns-value]
    return called


def raising(error: BaseException) -> Run:
    """Return work that fails with this error."""

    def run(payload: dict[str, Any], job: JobContext) -> Any:
        raise error

    return run


NO_ANSWER = raising(ConnectionError("no answer"))


def sent(queue: Queue, job: Job | None = None) -> Job:
    """Send the message that the API sends for a job, a new one by default."""
    job = job or given.queued()
    queue.send(Reference(job.job_id).dumps())
    return job


def subjects(announced: Read) -> list[str]:
    return [message["Subject"] for message in announced()]


# ---------------------------------------------------------------- how an attempt ends


def test_completed(
    queue: Queue, let_run: LetRun, announced: Read, log: Read, counted: Counted
) -> None:
    job = sent(queue)

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
    assert subjects(announced) == [f"Job completed: {job.job_id}"]
    assert (queue.visible, queue.hidden) == (0, 0)
    assert [line["message"] for line in log()] == ["attempt started", "attempt ended"]
    assert {line["job_id"] for line in log()} == {job.job_id}
    assert {line["correlation_id"] for line in log()} == {"a request"}
    assert counted() == ["JobCompleted"]


def test_the_lease_outlives_the_invocation_by_a_minute(queue: Queue, let_run: LetRun) -> None:
    leases: list[float] = []

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        started, lease_until = context.job.updated_at, context.job.lease_until
        leases.append((lease_until or 0) / 1000 - datetime.fromisoformat(started).timestamp())
        return {}

    let_run(run)
    for remaining_ms in (300_000, 5_000):
        sent(queue)
        queue.deliver(worker.handler, Context(remaining_ms))
    # A minute for clocks that differ, but no more than the work itself may take.
    assert leases == pytest.approx([360, 10], abs=0.01)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConnectionError("no answer"), {"type": "ConnectionError", "message": "no answer"}),
        (SystemExit(3), {"type": "SystemExit", "message": "3"}),
    ],
)
def test_a_failure_that_may_pass_is_tried_again_later(
    error: BaseException,
    told: dict[str, str],
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    counted: Counted,
) -> None:
    job = sent(queue)

    let_run(raising(error))
    assert queue.deliver(worker.handler) == 1

    assert (stored(job).status, stored(job).error) == ("queued", told)
    assert (queue.visible, queue.hidden) == (0, 1)  # it waits
    assert (announced(), counted()) == ([], [])

    let_run(lambda payload, context: RESULT)
    queue.wait()
    assert queue.deliver(worker.handler) == 0
    assert (stored(job).status, stored(job).attempts) == ("completed", 2)


GROUP = ExceptionGroup("tasks", [PermanentError("no such site"), OSError("late")])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (raising(PermanentError("no such site")), "no such site"),
        (raising(GROUP), "PermanentError: no such site; OSError: late"),
        (lambda payload, context: None, "run() returned NoneType; it returns a JSON object"),
    ],
)
def test_a_permanent_failure(
    run: Run, message: str, queue: Queue, let_run: LetRun, announced: Read, counted: Counted
) -> None:
    job = sent(queue)

    let_run(run)
    assert queue.deliver(worker.handler) == 0

    error = {"type": "PermanentError", "message": message}
    assert (stored(job).status, stored(job).error) == ("failed", error)
    assert subjects(announced) == [f"Job failed: {job.job_id}"]
    assert counted() == ["JobFailed"]


@pytest.mark.parametrize("end", [JobCancelled(), ConnectionError("no answer")])
def test_cancelled_during_the_work(
    end: Exception,
    queue: Queue,
    let_run: LetRun,
    announced: Read,
    monkeypatch: pytest.MonkeyPatch,
    counted: Counted,
) -> None:
    monkeypatch.setattr("jobs.context.REFRESH_SECONDS", 0)
    job = sent(queue)

    def run(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
        assert not context.cancelled
        store.ask_to_stop(context.job)
        assert context.cancelled
        raise end

    let_run(run)
    assert queue.deliver(worker.handler) == 0

    assert stored(job).status == "cancelled"
    assert subjects(announced) == [f"Job cancelled: {job.job_id}"]
    assert counted() == ["JobCancelled"]


@pytest.mark.parametrize(
    "end",
    [None, ConnectionError("no answer"), PermanentError("no such site"), JobCancelled()],
)
def test_an_attempt_that_was_overtaken_changes_nothing(
    end: Exception | None, queue: Queue, let_run: LetRun, log: Read
) -> None:
    job = sent(queue)

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


@pytest.mark.parametrize(
    ("state", "status", "metrics"),
    [
        *((state, state, []) for state in ("completed", "failed", "cancelled")),
        *(
            (state, "cancelled", ["JobCancelled"])
            for state in ("asked_and_lost", "asked_and_released")
        ),
    ],
)
def test_a_job_that_has_ended_or_was_cancelled_is_not_run(
    state: str,
    status: str,
    metrics: list[str],
    queue: Queue,
    runs: list[str],
    announced: Read,
    counted: Counted,
) -> None:
    """Its worker may have died before it could announce it; once is enough."""
    job = sent(queue, given.STATES[state]())
    sent(queue, job)

    assert queue.deliver(worker.handler) == 0

    assert runs == []
    assert stored(job).status == status
    assert subjects(announced) == [f"Job {status}: {job.job_id}"]
    assert counted() == metrics


def test_a_job_that_could_not_be_announced_is_announced_by_the_next_delivery(
    queue: Queue, runs: list[str], announced: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sent(queue)

    with monkeypatch.context() as patch:
        no_topic = replace(settings, job_events_topic=f"{settings.job_events_topic}-gone")
        patch.setattr("jobs.notification.settings", no_topic)
        assert queue.deliver(worker.handler) == 1
    assert stored(job).status == "completed"

    queue.wait()
    assert queue.deliver(worker.handler) == 0
    assert runs == [job.job_id]
    assert len(announced()) == 1


def test_a_job_whose_attempt_was_lost_is_taken_over(
    queue: Queue, runs: list[str], counted: Counted
) -> None:
    job = sent(queue, given.lost())
    assert queue.deliver(worker.handler) == 0
    assert (stored(job).status, stored(job).attempts) == ("completed", 2)
    assert counted() == ["AttemptLost", "JobCompleted"]


def changed(job: Job, **attributes: Any) -> Job:
    """Change a job behind the store's back."""
    given.change(job, **attributes)
    return job


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: given.running(seconds=90), r"comes back in 9\d s: another attempt holds the job"),
        # Its message, sent again, has been received less often.
        (
            lambda: changed(given.released(), recent_attempts=worker.MAX_ATTEMPTS),
            "no attempt is left",
        ),
        (lambda: changed(given.queued(), schema=2), "NewerSchema"),
    ],
)
def test_a_job_that_cannot_be_claimed_keeps_its_message(
    make: Callable[[], Job], told: str, queue: Queue, runs: list[str], log: Read
) -> None:
    job = sent(queue, make())
    item = given.item(job)

    assert queue.deliver(worker.handler) == 1

    assert runs == []
    assert given.item(job) == item
    assert re.search(told, f"{log()[-1]}")
    assert log()[-1]["job_id"] == job.job_id


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("not JSON", "NotAReference"),
        (Reference(given.NO_JOB).dumps(), "LookupError"),
        (Reference(given.NO_JOB, retry_of=3).dumps(), "LookupError"),
    ],
)
def test_a_message_without_a_job_is_kept(
    body: str, error: str, queue: Queue, runs: list[str], log: Read
) -> None:
    queue.send(body)
    assert queue.deliver(worker.handler) == 1
    assert (runs, queue.hidden) == ([], 1)
    assert log()[-1]["message"] == "message kept until its visibility timeout ends"
    assert log()[-1]["exception_name"] == error


# ---------------------------------------------------------------- retries that the owner asks for


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_retry_that_the_api_could_not_record_is_recorded_here(
    cancelled: bool, queue: Queue, runs: list[str]
) -> None:
    """Unless it was recorded, and cancelled."""
    job = given.failed()
    if cancelled:
        store.cancel(store.retry(job.job_id, len(job.history)))
    queue.send(Reference(job.job_id, retry_of=len(job.history)).dumps())

    assert queue.deliver(worker.handler) == 0

    assert runs == ([] if cancelled else [job.job_id])
    assert stored(job).retry_of == len(job.history)
    assert stored(job).status == ("cancelled" if cancelled else "completed")


# ---------------------------------------------------------------- when messages come back


def test_another_message_of_the_same_job_is_dropped(
    queue: Queue, let_run: LetRun, log: Read
) -> None:
    """Requests that were sent again: they must not run a job that backs off."""
    job = given.queued()
    let_run(NO_ANSWER)
    queue.send(Reference(job.job_id, ticket="first").dumps())
    assert queue.deliver(worker.handler) == 1

    queue.send(Reference(job.job_id, ticket="second").dumps())
    assert queue.deliver(worker.handler) == 0

    assert (stored(job).status, stored(job).attempts) == ("queued", 1)
    assert (queue.visible, queue.hidden) == (0, 1)
    assert log()[-1]["message"] == "message dropped: another message has the job"


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


@pytest.mark.parametrize(
    ("remaining_ms", "told"),
    [(40_000, "message comes back in 41 s: the attempt failed"), (0, "attempt ended")],
)
def test_an_attempt_waits_for_the_lock_of_an_effect_that_was_killed(
    remaining_ms: int, told: str, queue: Queue, let_run: LetRun, log: Read
) -> None:
    """The lock ends when the invocation that left it would have ended."""

    def die() -> None:
        raise KeyboardInterrupt  # nothing cleans up after it, as after a kill

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        with suppress(KeyboardInterrupt):
            job.once("pay", die)
        return {"paid": job.once("pay", lambda: True)}

    let_run(run)
    sent(queue)
    queue.deliver(worker.handler, Context(remaining_ms))
    assert log()[-1]["message"] == told


def test_a_message_that_cannot_be_hidden_comes_back_by_itself(
    queue: Queue, let_run: LetRun, monkeypatch: pytest.MonkeyPatch, log: Read
) -> None:
    job = sent(queue)
    monkeypatch.setattr(worker, "QUEUE_URL", f"{queue.url}-gone")

    let_run(NO_ANSWER)
    assert queue.deliver(worker.handler) == 1

    assert stored(job).status == "queued"
    assert log()[-1]["message"] == "visibility timeout not changed"


# ---------------------------------------------------------------- batches


def test_a_batch_keeps_only_what_failed(queue: Queue, let_run: LetRun) -> None:
    jobs = [sent(queue) for _ in range(3)]
    bad = jobs[1].job_id
    let_run(lambda payload, job: NO_ANSWER(payload, job) if job.id == bad else RESULT)
    assert queue.deliver(worker.handler) == 1

    assert [stored(job).status for job in jobs] == ["completed", "queued", "completed"]
    assert queue.hidden == 1


def test_a_batch_starts_no_job_that_it_has_no_time_for(
    queue: Queue, let_run: LetRun, log: Read
) -> None:
    jobs = [sent(queue) for _ in range(4)]
    context = Context(remaining_ms=60_000)

    def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
        context.remaining_ms -= 20_000
        return RESULT

    let_run(run)
    assert queue.deliver(worker.handler, context) == 0

    statuses = sorted(stored(job).status for job in jobs)
    assert statuses == ["completed", "completed", "queued", "queued"]
    assert queue.visible == 2  # new messages, whose receives count from the beginning
    assert queue.groups() == [jobs[0].owner_digest] * 2
    assert log()[-1]["message"].endswith("no time is left for its job in this batch")
    assert "job_id" not in log()[-1]
