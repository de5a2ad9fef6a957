"""The attempts at a job: every write that its state allows, and every one that it refuses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import ANY

import pytest

from jobs import Job
from jobs.attempts import EXECUTION_TIMEOUT, AttemptStore
from jobs.exceptions import NewerSchema
from jobs.settings import settings
from jobs.store import JobStore
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.conftest import Clock
from tests.unit.given import OWNER, PAYLOAD, refused, store

ERROR = {"type": "ExecutionFailed", "message": "given up"}


def execution_of(job: Job) -> str:
    """Return the execution that has a job, or that will have it."""
    return job.execution or f"execution-{job.job_id}-{job.retry_of}"


WRITES: dict[str, Callable[[Job], Job | None]] = {
    "create": lambda job: store.create(job.job_id, OWNER, PAYLOAD),
    "adopt": lambda job: store.adopt(job.job_id),
    "withdraw": lambda job: store.withdraw(job),
    "start": lambda job: store.start(job.job_id, job.retry_of, execution_of(job)),
    "restart": lambda job: store.restart(replace(job, execution=execution_of(job))),
    "report": lambda job: store.report(job, {"done": 1}),
    "wait": lambda job: store.wait(job, "approval", 60),
    "resume": lambda job: store.resume(job, "approval"),
    "complete": lambda job: store.complete(job, given.RESULT),
    "fail": lambda job: store.fail(job, ValueError("no such site")),
    "release": lambda job: store.release(job, ConnectionError("no answer")),
    "stop": lambda job: store.stop(job),
    "cancel": lambda job: store.cancel(job),
    "ask_to_stop": lambda job: store.ask_to_stop(job),
    "give_up": lambda job: store.give_up(job, ERROR),
    "retry": lambda job: store.retry(job.job_id, len(job.history)),
}

_QUEUED = {"start": "running", "report": "queued", "cancel": "cancelled", "give_up": "failed"}
_UNDER_WAY = {
    "start": "running",
    "restart": "running",
    "report": "running",
    "wait": "waiting",
    "resume": "running",
    "complete": "completed",
    "fail": "failed",
    "release": "queued",
    "stop": "cancelled",
    "ask_to_stop": "running",
    "give_up": "failed",
}

# What may be written in which state, and the status that follows. All else is refused.
ALLOWED: dict[str, dict[str, str]] = {
    "queued": {**_QUEUED, "adopt": "queued", "withdraw": "gone"},
    "adopted": {**_QUEUED, "adopt": "queued"},
    "running": _UNDER_WAY,
    "waiting": {
        "start": "waiting",
        "restart": "waiting",
        "report": "waiting",
        "wait": "waiting",
        "resume": "running",
        "stop": "cancelled",
        "ask_to_stop": "waiting",
        "give_up": "failed",
    },
    "released": {
        "restart": "running",
        "report": "queued",
        "cancel": "cancelled",
        "give_up": "failed",
    },
    "asked": {**_UNDER_WAY, "give_up": "cancelled"},
    "asked_and_released": {"cancel": "cancelled", "give_up": "cancelled", "report": "queued"},
    "completed": {},
    "failed": {"retry": "queued"},
    "cancelled": {"retry": "queued"},
    "gone": {"create": "queued"},
}
UNCHANGED = {
    "start": {"running", "asked", "waiting"},
    "restart": {"running", "asked", "waiting"},
    "resume": {"running", "asked"},
    "wait": {"waiting"},
    "report": {"queued", "adopted", "waiting", "released", "asked_and_released"},
}
"""States in which a replay or a repeated invocation writes again, and changes nothing."""


def test_the_table_is_complete() -> None:
    public = {name for name in {**vars(JobStore), **vars(AttemptStore)} if name[0] != "_"}
    assert WRITES.keys() == public - {"get", "note_position"}
    assert ALLOWED.keys() == given.STATES.keys()


@pytest.mark.parametrize("state", ALLOWED)
def test_a_state_allows_some_writes_and_refuses_all_others(state: str) -> None:
    for write, status in ALLOWED[state].items():
        job = given.STATES[state]()
        before = given.item(job)
        written = WRITES[write](job)
        assert written == store.get(job.job_id), write
        assert (written.status if written else "gone") == status, write
        unchanged = state in UNCHANGED.get(write, set())
        assert (given.item(job) == before) == unchanged, write

    job = given.STATES[state]()
    stored, before = store.get(job.job_id), given.item(job)
    for write in WRITES.keys() - ALLOWED[state].keys():
        assert refused(WRITES[write], job) == stored, write
    assert given.item(job) == before


def test_a_job_of_a_newer_schema_is_left_alone() -> None:
    job = given.running()
    given.change(job, schema=2)
    before = given.item(job)

    for write in WRITES.values():
        with pytest.raises(NewerSchema, match=f"^job {job.job_id} has schema 2, not 1$"):
            write(job)
    assert given.item(job) == before


def superseded() -> Job:
    """A job as its first execution knows it, which has lost it to the execution of a retry."""
    job = given.running()
    given.claim(store.retry(job.job_id, len(store.stop(job).history)))
    return job


@pytest.mark.parametrize("make", [given.overtaken, superseded])
def test_an_attempt_that_was_overtaken_cannot_write(make: Callable[[], Job]) -> None:
    job = make()
    current = given.stored(job)
    writes = {"report", "wait", "resume", "complete", "fail", "release", "stop", "give_up"}
    for write in writes | ({"start", "restart"} if make is superseded else set()):
        assert refused(WRITES[write], job) == current, write


# ---------------------------------------------------------------- one execution has the job


def test_only_one_of_many_executions_has_the_job() -> None:
    job = given.queued()

    def start(number: int) -> bool:
        try:
            return bool(store.start(job.job_id, None, f"execution-{number}"))
        except ConditionFailed:
            return False

    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(start, range(8))) == 1


def test_only_the_execution_of_the_latest_retry_starts_it() -> None:
    """Others come late: that of the first go, or that of an earlier retry."""
    job = given.failed()
    retried = store.retry(job.job_id, len(job.history))
    for retry_of in (None, 1, len(job.history) + 1):
        assert refused(store.start, job.job_id, retry_of, "late") == retried
    assert store.start(job.job_id, len(job.history), "second").attempts == 2


def test_an_attempt_starts_once() -> None:
    """An invocation that knows only of the attempt before does not start it again."""
    first = given.released()
    second = store.release(store.restart(first), OSError("no answer"))
    assert refused(store.restart, first) == second
    third = store.restart(second)
    assert store.restart(second) == third  # an earlier invocation was cut off after this write
    assert refused(store.restart, first) == third


def test_a_job_of_a_retry_is_not_restarted_by_the_execution_before() -> None:
    """Neither while it is queued, nor between two attempts of the retry's execution."""
    released = given.released()
    retry_of = len(store.cancel(released).history)
    retried = store.retry(released.job_id, retry_of)
    assert refused(store.restart, released) == retried
    again = store.release(store.start(released.job_id, retry_of, "second"), OSError("again"))
    assert refused(store.restart, released) == again


@pytest.mark.parametrize("other", ["another", "second"])
def test_a_new_job_of_the_same_id_is_not_reported_on(other: str) -> None:
    """The old one has expired, and its key was used again."""
    job = given.running()
    given.change(job, execution=other, status="waiting")
    stored = refused(store.report, job, {"done": 1})
    assert stored is not None
    assert stored.execution == other


def test_a_position_that_comes_again_counts_a_crash() -> None:
    job = given.running()

    def note(position: str) -> int:
        return (store.note_position(job.job_id, None, execution_of(job), position) or job).crashes

    assert [note(position) for position in "aabbba"] == [0, 1, 0, 1, 2, 0]


def test_the_position_of_another_execution_is_not_noted() -> None:
    """Nor that of a job that has ended, or was retried since."""
    for job, retry_of, execution in (
        (given.running(), None, "another"),
        (given.running(), 1, None),
        (given.failed(), None, None),
    ):
        here = execution or execution_of(job)
        assert store.note_position(job.job_id, retry_of, here, "a") == given.stored(job) == job
    assert store.note_position(given.new_id(), None, "any", "a") is None


# ---------------------------------------------------------------- what is written


def test_an_attempt_in_the_table(clock: Clock) -> None:
    job = given.queued()
    item = given.item(job) or {}

    clock.forward(2)
    started = store.start(job.job_id, None, "first")
    item |= {
        "status": "running",
        "attempts": 1,
        "execution": "first",
        "started_at": "2026-01-31T09:30:02.000Z",
        "updated_at": "2026-01-31T09:30:02.000Z",
        "expires_at": job.expires_at + 2 + EXECUTION_TIMEOUT,
        "history": [*job.history, {"status": "running", "at": "2026-01-31T09:30:02.000Z"}],
        "write": ANY,
    }
    assert given.item(started) == item

    clock.forward(1)
    reported = store.report(started, {"done": 1})
    item |= {"progress": {"done": 1}, "updated_at": "2026-01-31T09:30:03.000Z"}
    assert given.item(reported) == item

    clock.forward(1)
    completed = store.complete(replace(reported, progress={"done": 2}), {"pages": 2})
    assert given.item(completed) == item | {
        "status": "completed",
        "progress": {"done": 2},
        "result": '{"pages":2}',
        "updated_at": "2026-01-31T09:30:04.000Z",
        "finished_at": "2026-01-31T09:30:04.000Z",
        "expires_at": job.expires_at + 4,
        "history": [*started.history, {"status": "completed", "at": "2026-01-31T09:30:04.000Z"}],
    }


def test_a_job_waits(clock: Clock) -> None:
    """It tells what for and until when, and keeps the latest progress."""
    job = given.running()
    clock.forward(1)
    waits = store.wait(replace(job, progress={"done": 1}), "approval", 60, "secret")

    until = "2026-01-31T09:31:01.000Z"
    assert waits.waiting == {"for": "approval", "until": until, "callback_id": "secret"}
    assert waits.public()["waiting"] == {"for": "approval", "until": until}
    assert waits.public()["progress"] == {"done": 1}
    without_limit = store.wait(given.running(), "approval", None)
    assert without_limit.public()["waiting"] == {"for": "approval"}


def test_an_answer_ends_the_waiting_that_it_is_for() -> None:
    waits = given.waiting("first")
    assert store.resume(waits, "approval", "bob", "second").status == "waiting"
    for _ in range(2):
        job = store.resume(waits, "approval", "bob", "first")
        assert job.status == "running"
    assert "waiting" not in job.public()
    assert [entry["attempt"] for entry in job.public()["history"]] == [0, 1, 1, 1]


def test_a_job_under_way_does_not_expire(clock: Clock) -> None:
    """It expires after its longest execution can have ended, and been looked at."""
    longest = EXECUTION_TIMEOUT + settings.retention_seconds
    job = given.running()
    begun = int(clock.now.timestamp())
    assert job.expires_at == begun + longest
    clock.forward(30)
    assert store.wait(job, "approval", 60).expires_at == begun + 30 + longest
    clock.forward(30)
    assert store.resume(job, "approval").expires_at == begun + 60 + longest


# ---------------------------------------------------------------- a long history


def test_a_long_history_hides_waits_rather_than_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The item must stay below DynamoDB's 400 KB."""
    job = given.running()
    for room in (0, 1):  # one entry would be half of a wait
        monkeypatch.setattr("jobs.attempts.MAX_HISTORY", len(job.history) + room)
        assert store.wait(job, "approval", 60) == job
        assert store.resume(job, "approval") == job
    monkeypatch.setattr("jobs.attempts.MAX_HISTORY", len(job.history) + 2)
    assert store.wait(job, "approval", 60).status == "waiting"
    assert store.resume(job, "approval").status == "running"
    assert store.complete(job, {}).status == "completed"


@pytest.mark.parametrize("room", [3, 4])
def test_a_long_history_leaves_room_for_its_end(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a step is tried again, the failures of the last attempt are not told."""
    job = given.running()
    longest = len(job.history) + room
    monkeypatch.setattr("jobs.attempts.MAX_HISTORY", longest)
    job = given.claim(store.release(job, OSError("no answer")))
    assert refused(store.release, job, OSError("no answer")) == job
    assert len(store.complete(job, {}).history) <= longest
