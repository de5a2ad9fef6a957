"""The store of jobs that run in executions, on an emulated DynamoDB."""

from collections.abc import Callable

import pytest

from jobs import Job, Status
from jobs import job as life
from jobs.settings import settings
from jobs.table import ConditionFailed
from jobs.waiting import EXECUTION_TIMEOUT, WaitingStore
from tests.unit import given
from tests.unit.conftest import Clock

store = WaitingStore()


@pytest.fixture
def clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stop the clock of all the store."""
    monkeypatch.setattr("jobs.waiting.now", lambda: clock.now)
    return clock


def started(execution: str = "first") -> Job:
    """A job that an execution runs."""
    return store.start(given.queued().job_id, None, execution)


def waiting(callback_id: str | None = None) -> Job:
    """A job that waits."""
    return store.wait(started(), "approval", 60, callback_id)


def refused(write: Callable[[], object]) -> Job | None:
    """Return what is stored instead, when a write is refused; and nothing has changed by it."""
    with pytest.raises(ConditionFailed) as refusal:
        write()
    return refusal.value.job


def test_a_queued_job_is_started(clock: Clock) -> None:
    job = started()

    assert (job.status, job.attempts, job.execution) == ("running", 1, "first")
    assert job.started_at == job.updated_at == "2026-01-31T09:30:00.000Z"
    assert job.lease_until is None


def test_the_same_execution_starts_it_again() -> None:
    """After a crash: nothing changes."""
    job = started()
    assert store.start(job.job_id, None, "first") == job
    store.wait(job, "approval", 60)
    assert store.start(job.job_id, None, "first").status == "waiting"


@pytest.mark.parametrize(
    "state",
    ["asked", "asked_and_released", "completed", "failed", "cancelled", "gone", "running"],
)
def test_what_is_not_queued_is_not_started(state: str) -> None:
    """Nor what another execution has."""
    job = given.STATES[state]()
    stored = refused(lambda: store.start(job.job_id, None, "first"))
    assert (stored is None) == (state == "gone")
    assert given.item(job) == (given.item(stored) if stored else None)


def test_another_execution_does_not_start_it() -> None:
    job = started()
    assert refused(lambda: store.start(job.job_id, None, "second")) == job


def test_only_the_execution_of_the_latest_retry_starts_it() -> None:
    """Whichever comes late: that of the first go, or that of an earlier retry."""
    job = given.failed()
    retried = store.retry(job.job_id, len(job.history))
    for retry_of in (None, 1, len(job.history) + 1):
        assert refused(lambda n=retry_of: store.start(job.job_id, n, "late")) == retried  # type: ignore[misc]
    assert store.start(job.job_id, len(job.history), "second").attempts == 2


def test_a_failed_attempt_is_followed_by_another() -> None:
    released = store.release(started(), OSError("no answer"))
    job = store.restart(released)

    assert (job.status, job.attempts, job.execution) == ("running", 2, "first")
    assert store.restart(job) == job


def test_an_attempt_starts_once() -> None:
    """Whoever knows only of the attempt before does not start it again."""
    first = store.release(started(), OSError("no answer"))
    second = store.release(store.restart(first), OSError("no answer"))
    assert refused(lambda: store.restart(first)) == second
    third = store.restart(second)
    assert refused(lambda: store.restart(first)) == third


def test_a_restart_of_an_invocation_that_was_cut_off_stands() -> None:
    """The next invocation may have read the job just before."""
    job = started()
    for _ in range(2):
        released = store.release(job, OSError("no answer"))
        job = store.restart(released)
        assert store.restart(released) == job


def test_a_job_that_was_cancelled_between_attempts_is_not_restarted() -> None:
    released = store.release(started(), OSError("no answer"))
    cancelled = store.cancel(released)
    assert refused(lambda: store.restart(released)) == cancelled


def test_a_job_that_was_retried_between_attempts_is_not_restarted() -> None:
    """Queued it is, but for another execution."""
    released = store.release(started(), OSError("no answer"))
    cancelled = store.cancel(released)
    store.retry(released.job_id, len(cancelled.history))
    second = store.start(released.job_id, len(cancelled.history), "second")
    store.release(second, OSError("again"))
    stored = refused(lambda: store.restart(released))
    assert stored is not None
    assert stored.attempts == 2


def test_nor_is_one_that_is_queued_again() -> None:
    """By a retry: the next execution will start it."""
    released = store.release(started(), OSError("no answer"))
    cancelled = store.cancel(released)
    retried = store.retry(released.job_id, len(cancelled.history))
    assert refused(lambda: store.restart(released)) == retried


def test_a_job_waits(clock: Clock) -> None:
    """It says what for and until when, and keeps the latest progress."""
    job = started()
    clock.forward(1)
    progressed = Job(**{**vars(job), "progress": {"done": 1}})
    waits = store.wait(progressed, "approval", 60, "secret")

    assert waits.status == "waiting"
    assert waits.waiting == {
        "for": "approval",
        "until": "2026-01-31T09:31:01.000Z",
        "callback_id": "secret",
    }
    assert waits.public()["waiting"] == {"for": "approval", "until": "2026-01-31T09:31:01.000Z"}
    assert waits.public()["progress"] == {"done": 1}
    assert "secret" not in str(waits.public())


def test_nobody_knows_until_when() -> None:
    assert store.wait(started(), "approval", None).public()["waiting"] == {"for": "approval"}


def test_a_job_goes_on() -> None:
    job = store.resume(waiting())

    assert job.status == "running"
    assert "waiting" not in job.public()
    assert [entry["attempt"] for entry in job.public()["history"]] == [0, 1, 1, 1]


def test_waiting_and_going_on_twice_changes_nothing() -> None:
    """After a crash."""
    waits = waiting()
    assert store.wait(waits, "approval", 60) == waits
    job = store.resume(waits)
    assert store.resume(waits) == job


def test_an_answer_ends_the_waiting_that_it_is_for() -> None:
    """Not that for another answer."""
    waits = waiting("first")
    assert store.resume(waits, "second").status == "waiting"
    assert store.resume(waits, "first").status == "running"
    assert store.resume(waits, "first").status == "running"


@pytest.mark.parametrize("end", [store.stop, lambda job: store.fail(job, OSError("no"))])
def test_at_its_end_a_job_neither_waits_nor_goes_on(end: Callable[[Job], Job]) -> None:
    job = started()
    ended = end(job)
    assert refused(lambda: store.wait(job, "approval", 60)) == ended
    assert refused(lambda: store.resume(job)) == ended
    assert refused(lambda: store.restart(job)) == ended
    assert refused(lambda: store.report(job, {"done": 1})) == ended


def test_a_replay_tells_of_progress_in_vain() -> None:
    """While the job waits, and between two attempts: nothing is written, and nothing is refused."""
    waits = waiting()
    assert store.report(waits, {"done": 1}) == waits
    job = started()
    released = store.release(job, ConnectionError("no answer"))
    assert store.report(job, {"done": 1}) == released


@pytest.mark.parametrize("other", ["another", "second"])
def test_a_new_job_of_the_same_id_is_not_reported_on(other: str) -> None:
    """The old one has expired, and its key was used again."""
    job = started()
    given.change(job, execution=other, status="waiting")
    stored = refused(lambda: store.report(job, {"done": 1}))
    assert stored is not None
    assert stored.execution == other


def writes(job: Job) -> list[Callable[[], Job]]:
    """What an attempt may still want to write."""
    return [
        lambda: store.wait(job, "approval", 60),
        lambda: store.resume(job),
        lambda: store.report(job, {"done": 1}),
        lambda: store.complete(job, {}),
        lambda: store.release(job, OSError("late")),
    ]


def test_an_attempt_that_was_superseded_writes_nothing_any_more() -> None:
    job = started()
    cancelled = store.stop(job)
    store.retry(job.job_id, len(cancelled.history))
    second = store.start(job.job_id, len(cancelled.history), "second")
    for write in [*writes(job), lambda: store.restart(job)]:
        assert refused(write) == second


def test_nor_does_one_that_was_followed_by_another() -> None:
    """Of the same execution."""
    job = started()
    second = store.restart(store.release(job, OSError("no answer")))
    for write in writes(job):
        assert refused(write) == second


def test_a_job_under_way_does_not_expire(clock: Clock) -> None:
    """However long it waits: not before its execution can have ended, and been looked at."""
    longest = EXECUTION_TIMEOUT + settings.retention_seconds
    job = started()
    begun = int(clock.now.timestamp())
    assert job.expires_at == begun + longest
    assert store.wait(job, "approval", 60).expires_at == begun + longest
    clock.forward(60)
    assert store.resume(job).expires_at == begun + 60 + longest
    assert store.complete(job, {}).expires_at == begun + 60 + settings.retention_seconds


def test_a_long_history_hides_waits_rather_than_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The item must stay below DynamoDB's 400 KB."""
    job = started()
    for room in (0, 1):  # one entry would be half of a wait
        monkeypatch.setattr(life, "MAX_HISTORY", len(job.history) + room)
        assert store.wait(job, "approval", 60) == job
        assert store.resume(job) == job
    monkeypatch.setattr(life, "MAX_HISTORY", len(job.history) + 2)
    assert store.wait(job, "approval", 60).status is Status.WAITING
    assert store.resume(job).status is Status.RUNNING
    assert store.complete(job, {}).status is Status.COMPLETED


@pytest.mark.parametrize("room", [3, 4])
def test_a_long_history_leaves_room_for_its_end(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a step is tried again: of the last attempt's failures nothing is told."""
    job = started()
    monkeypatch.setattr(life, "MAX_HISTORY", len(job.history) + room)
    job = store.restart(store.release(job, OSError("no answer")))
    assert refused(lambda: store.release(job, OSError("no answer"))) == job
    assert len(store.complete(job, {}).history) <= life.MAX_HISTORY
