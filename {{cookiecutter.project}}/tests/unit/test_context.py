"""The job as work.py sees it."""

import pytest

from jobs import Job
from jobs.context import JobContext
from jobs.once import note_deadline
from jobs.settings import settings
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.client import Context
from tests.unit.conftest import Clock
from tests.unit.given import store


class Stopwatch:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.seconds


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    """The time as the context reads it."""
    stopwatch = Stopwatch()
    monkeypatch.setattr("jobs.context.time", stopwatch)
    return stopwatch


def context(job: Job) -> JobContext:
    """Return what work.py is given."""
    return JobContext(job, store, Context(1500).get_remaining_time_in_millis)


def stored_progress(job: JobContext) -> object:
    """Return what the status endpoint tells of the progress."""
    stored = store.get(job.id)
    return stored.public().get("progress") if stored else None


def test_what_it_tells() -> None:
    job = given.running()
    assert context(job).id == job.job_id
    assert context(job).attempt == 1
    assert context(job).remaining() == 1.5


def test_progress_is_written_once_a_second(stopwatch: Stopwatch) -> None:
    job = context(given.running())

    job.progress(1, 9, "page 1")
    assert stored_progress(job) is None

    stopwatch.seconds += 1
    job.progress(2, 9, "page 2")
    assert stored_progress(job) == {"done": 2, "total": 9, "message": "page 2"}

    stopwatch.seconds += 0.99

    job.progress(3, 9, "page 3")
    assert stored_progress(job) == {"done": 2, "total": 9, "message": "page 2"}

    store.complete(job.job, {})
    assert stored_progress(job) == {"done": 3, "total": 9, "message": "page 3"}


def test_progress_may_be_told_in_part(stopwatch: Stopwatch) -> None:
    job = context(given.running())
    stopwatch.seconds += 60
    job.progress(0)
    assert stored_progress(job) == {"done": 0}


def test_a_message_is_text_that_can_be_stored() -> None:
    job = context(given.running())
    job.progress(1, 0, "\udcff" + "x" * 500)
    assert job.job.progress == {"done": 1, "total": 0, "message": "?" + "x" * 499}


def test_progress_counts_whole_things() -> None:
    job = context(given.running())
    with pytest.raises(TypeError):
        job.progress(0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        job.progress(1, 1.5)  # type: ignore[arg-type]
    for number in (-1, 2**53):
        with pytest.raises(ValueError, match="progress counts from 0 to 9007199254740991"):
            job.progress(number)
    job.progress(0, 2**53 - 1)
    assert job.job.progress == {"done": 0, "total": 2**53 - 1}


def test_cancelled_is_looked_up_once_a_second(stopwatch: Stopwatch) -> None:
    job = context(given.running())
    store.ask_to_stop(job.job)

    assert not job.cancelled
    stopwatch.seconds += 60
    assert job.cancelled


def test_not_cancelled_is_looked_up_again(stopwatch: Stopwatch) -> None:
    job = context(given.running())
    stopwatch.seconds += 60
    assert not job.cancelled

    store.ask_to_stop(job.job)
    assert not job.cancelled
    stopwatch.seconds += 60
    assert job.cancelled


def test_progress_learns_of_a_cancellation(stopwatch: Stopwatch) -> None:
    job = context(given.running())
    store.ask_to_stop(job.job)
    stopwatch.seconds += 60

    job.progress(1)

    assert job.cancelled


def test_a_cancellation_that_is_known_is_not_looked_up(
    stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = context(given.asked())
    stopwatch.seconds += 60
    monkeypatch.setattr(store, "_table", "NoSuchTable")

    assert job.cancelled


def test_an_attempt_that_was_overtaken_is_told_so(stopwatch: Stopwatch) -> None:
    job = context(given.lost())
    given.claim(job.id)
    stopwatch.seconds += 60

    assert not job.cancelled  # a look does not make the new attempt's number ours
    assert job.attempt == 1
    stopwatch.seconds += 60
    with pytest.raises(ConditionFailed):
        job.progress(1)


def test_a_job_that_is_gone_is_not_cancelled(stopwatch: Stopwatch) -> None:
    job = context(given.gone())
    stopwatch.seconds += 60
    assert not job.cancelled


def test_a_new_job_of_the_same_id_has_effects_of_its_own(clock: Clock) -> None:
    """Its idempotency key was used before, by a job that has expired."""
    note_deadline(Context())
    old = given.completed()
    assert context(old).once("pay", lambda: "first") == "first"

    clock.forward(settings.retention_seconds + 1)
    new = store.create(old.job_id, old.owner, {})
    assert context(given.claim(new)).once("pay", lambda: "second") == "second"


def test_once_is_once_for_this_job() -> None:
    note_deadline(Context())
    first, second = context(given.running()), context(given.running())
    assert first.once("pay", lambda: "a") == "a"
    assert first.once("pay", lambda: "b") == "a"
    assert second.once("pay", lambda: "c") == "c"
