"""The job as work.py sees it."""

from types import SimpleNamespace
from typing import Any

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


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The time as the context reads it: `seconds`, which only the test changes."""
    stopwatch = SimpleNamespace(seconds=1000.0)
    stopwatch.monotonic = lambda: stopwatch.seconds
    monkeypatch.setattr("jobs.context.time", stopwatch)
    return stopwatch


def context(job: Job) -> JobContext:
    """Return what work.py is given."""
    return JobContext(job, store, Context(1500).get_remaining_time_in_millis)


def test_what_it_tells() -> None:
    job = given.running()
    told = context(job)
    assert (told.id, told.attempt, told.remaining()) == (job.job_id, 1, 1.5)


def test_progress_is_written_once_a_second(stopwatch: Any) -> None:
    job = context(given.running())
    for seconds, done, written in ((0, 1, None), (1, 2, 2), (0.99, 3, 2)):
        stopwatch.seconds += seconds
        job.progress(done, 9, f"page {done}")
        progress = {"done": written, "total": 9, "message": f"page {written}"}
        assert given.stored(job.id).progress == (progress if written else None)

    store.complete(job.job, {})
    assert given.stored(job.id).progress == {"done": 3, "total": 9, "message": "page 3"}


def test_progress_counts_whole_things_and_has_a_short_text() -> None:
    job = context(given.running())
    for wrong in ((0.5,), (1, 1.5)):
        with pytest.raises(TypeError):
            job.progress(*wrong)
    for number in (-1, 2**53):
        with pytest.raises(ValueError, match="progress counts from 0 to 9007199254740991"):
            job.progress(number)
    job.progress(0)
    assert job.job.progress == {"done": 0}
    job.progress(0, 2**53 - 1)
    assert job.job.progress == {"done": 0, "total": 2**53 - 1}
    job.progress(1, 0, "\udcff" + "x" * 500)
    assert job.job.progress == {"done": 1, "total": 0, "message": "?" + "x" * 499}


def test_cancelled_is_looked_up_once_a_second(
    stopwatch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = context(given.running())
    stopwatch.seconds += 60
    assert not job.cancelled

    store.ask_to_stop(job.job)
    assert not job.cancelled
    stopwatch.seconds += 60
    assert job.cancelled

    monkeypatch.setattr(store, "_table", "NoSuchTable")
    stopwatch.seconds += 60
    assert job.cancelled  # without another look


def test_nor_is_it_looked_up_in_the_first_second(stopwatch: Any) -> None:
    job = context(given.running())
    store.ask_to_stop(job.job)
    assert not job.cancelled
    stopwatch.seconds += 60
    job.progress(1)
    stopwatch.seconds -= 60
    assert job.cancelled  # progress has learned of it


def test_an_attempt_that_was_overtaken_is_told_so(stopwatch: Any) -> None:
    job = context(given.overtaken())
    stopwatch.seconds += 60

    assert not job.cancelled  # a look does not make the new attempt's number ours
    assert job.attempt == 1
    stopwatch.seconds += 60
    with pytest.raises(ConditionFailed):
        job.progress(1)


def test_a_job_that_is_gone_is_not_cancelled(stopwatch: Any) -> None:
    job = context(given.gone())
    stopwatch.seconds += 60
    assert not job.cancelled


def test_a_side_effect_is_once_for_this_job(clock: Clock) -> None:
    note_deadline(Context())
    old, other = given.completed(), context(given.running())
    assert [context(old).once("pay", lambda n=n: n) for n in (1, 2)] == [1, 1]  # type: ignore[misc]
    assert other.once("pay", lambda: 3) == 3

    clock.forward(settings.retention_seconds + 1)  # its idempotency key gives the same id again
    new = store.create(old.job_id, old.owner, {})
    assert context(given.claim(new)).once("pay", lambda: 4) == 4
