"""The attempts at a job: every write that its state allows, and every one that it refuses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import ANY

import pytest

import dead_letter
from jobs import Job
from jobs.attempts import AttemptStore
from jobs.exceptions import NewerSchema
from jobs.reference import Reference
from jobs.store import JobStore
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.conftest import Clock, Read
from tests.unit.given import OWNER, PAYLOAD, refused, store
from tests.unit.queues import Queue

ERROR = {"type": "AttemptLost", "message": "given up"}

WRITES: dict[str, Callable[[Job], Job | None]] = {
    "create": lambda job: store.create(job.job_id, OWNER, PAYLOAD),
    "adopt": lambda job: store.adopt(job.job_id),
    "withdraw": lambda job: store.withdraw(job),
    "claim": lambda job: store.claim(Reference(job.job_id), 60, most=9),
    "report": lambda job: store.report(job, {"done": 1}),
    "complete": lambda job: store.complete(job, given.RESULT),
    "fail": lambda job: store.fail(job, ValueError("no such site")),
    "release": lambda job: store.release(job, ConnectionError("no answer")),
    "stop": lambda job: store.stop(job),
    "cancel": lambda job: store.cancel(job),
    "ask_to_stop": lambda job: store.ask_to_stop(job),
    "give_up": lambda job: store.give_up(job, ERROR),
    "retry": lambda job: store.retry(job.job_id, len(job.history)),
}

_QUEUED = {"claim": "running", "cancel": "cancelled", "give_up": "failed"}
_UNDER_WAY = {
    "report": "running",
    "complete": "completed",
    "fail": "failed",
    "release": "queued",
    "stop": "cancelled",
    "ask_to_stop": "running",
}

# What may be written in which state, and the status that follows. All else is refused.
ALLOWED: dict[str, dict[str, str]] = {
    "queued": {**_QUEUED, "adopt": "queued", "withdraw": "gone"},
    "adopted": {**_QUEUED, "adopt": "queued"},
    "running": _UNDER_WAY,
    "lost": {**_UNDER_WAY, "claim": "running", "give_up": "failed"},
    "released": _QUEUED,
    "asked": _UNDER_WAY,
    "asked_and_lost": {**_UNDER_WAY, "give_up": "cancelled"},
    "asked_and_released": {"cancel": "cancelled", "give_up": "cancelled"},
    "completed": {},
    "failed": {"retry": "queued"},
    "cancelled": {"retry": "queued"},
    "gone": {"create": "queued"},
}


def test_the_table_is_complete() -> None:
    public = {name for name in {**vars(JobStore), **vars(AttemptStore)} if name[0] != "_"}
    assert WRITES.keys() == public - {"get"}
    assert ALLOWED.keys() == given.STATES.keys()


@pytest.mark.parametrize("state", ALLOWED)
def test_a_state_allows_some_writes_and_refuses_all_others(state: str) -> None:
    for write, status in ALLOWED[state].items():
        job = given.STATES[state]()
        written = WRITES[write](job)
        assert written == store.get(job.job_id), write
        assert (written.status if written else "gone") == status, write

    job = given.STATES[state]()
    stored, before = store.get(job.job_id), given.item(job)
    for write in WRITES.keys() - ALLOWED[state].keys():
        assert refused(WRITES[write], job) == stored, write
    assert given.item(job) == before


def test_a_job_of_a_newer_schema_is_left_alone() -> None:
    job = given.lost()
    given.change(job, schema=2)
    before = given.item(job)

    for write in WRITES.values():
        with pytest.raises(NewerSchema, match=f"^job {job.job_id} has schema 2, not 1$"):
            write(job)
    assert given.item(job) == before


def test_an_attempt_that_was_overtaken_cannot_write() -> None:
    overtaken = given.overtaken()
    current = given.stored(overtaken)
    for write in ("report", "complete", "fail", "release", "stop", "give_up"):
        assert refused(WRITES[write], overtaken) == current, write


def test_a_lease_holds_to_its_last_millisecond(clock: Clock) -> None:
    job = given.claim(given.queued(), seconds=1.5)

    clock.forward(1.5)
    assert job.leased(clock.now)
    assert refused(given.claim, job) == job
    assert refused(store.give_up, job, ERROR) == job

    clock.forward(0.001)
    assert not job.leased(clock.now)
    assert given.claim(job).attempts == 2


def test_only_one_of_many_claims_wins() -> None:
    job = given.queued()

    def claim(_: int) -> bool:
        try:
            return bool(given.claim(job))
        except ConditionFailed:
            return False

    with ThreadPoolExecutor() as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_a_job_is_one_hand_overs_until_it_is_retried() -> None:
    job_id, mine, other = given.queued().job_id, "mine", "other"

    def claim(ticket: str, retry_of: int | None = None) -> Job:
        return store.claim(Reference(job_id, retry_of, ticket), 60, most=9)

    assert store.release(claim(mine), OSError("no answer")).recent_attempts == 1
    assert refused(claim, other)
    assert given.stored(job_id).belongs_elsewhere(Reference(job_id, ticket=other))
    assert not given.stored(job_id).belongs_elsewhere(Reference(job_id, ticket=mine))
    failed = store.fail(claim(mine), ValueError("no such site"))

    retry_of = len(failed.history)
    store.retry(job_id, retry_of)
    assert refused(claim, mine)  # of before the retry
    claimed = claim(other, retry_of)
    assert (claimed.attempts, claimed.recent_attempts) == (3, 1)


def test_a_job_has_no_more_attempts_than_it_may() -> None:
    reference = Reference(given.queued().job_id)
    for _ in range(2):
        store.release(store.claim(reference, 60, 2), OSError("no answer"))
    assert refused(store.claim, reference, 60, 2)


def test_an_attempt_in_the_table(clock: Clock) -> None:
    job = given.queued()
    item = given.item(job) or {}

    clock.forward(2)
    claimed = given.claim(job, seconds=90)
    item |= {
        "status": "running",
        "attempts": 1,
        "recent_attempts": 1,
        "ticket": "",
        "started_at": "2026-01-31T09:30:02.000Z",
        "updated_at": "2026-01-31T09:30:02.000Z",
        "expires_at": job.expires_at + 2,
        "lease_until": int(clock.now.timestamp() + 90) * 1000,
        "history": [*job.history, {"status": "running", "at": "2026-01-31T09:30:02.000Z"}],
        "write": ANY,
    }
    assert given.item(claimed) == item

    clock.forward(1)
    reported = store.report(claimed, {"done": 1})
    item |= {"progress": {"done": 1}, "updated_at": "2026-01-31T09:30:03.000Z"}
    assert given.item(reported) == item

    clock.forward(1)
    completed = store.complete(replace(reported, progress={"done": 2}), {"pages": 2})
    del item["lease_until"]
    assert given.item(completed) == item | {
        "status": "completed",
        "progress": {"done": 2},
        "result": '{"pages":2}',
        "updated_at": "2026-01-31T09:30:04.000Z",
        "finished_at": "2026-01-31T09:30:04.000Z",
        "expires_at": job.expires_at + 4,
        "history": [*claimed.history, {"status": "completed", "at": "2026-01-31T09:30:04.000Z"}],
    }


@pytest.mark.parametrize(
    "make",
    [
        *(given.released, given.completed, given.failed),
        lambda: store.give_up(given.lost(), ERROR),
        lambda: store.give_up(given.asked_and_lost(), ERROR),
    ],
)
def test_no_lease_outlives_its_attempt(make: Callable[[], Job]) -> None:
    assert make().lease_until is None


def test_the_dead_letter_function_leaves_a_job_to_the_attempt_that_holds_it(
    announced: Read, log: Read
) -> None:
    job, queue = given.running(), Queue("DeadLetterQueue")
    queue.send(Reference(job.job_id).dumps())

    assert queue.deliver(dead_letter.handler) == 1
    assert (given.stored(job), announced(), queue.hidden) == (job, [], 1)
    assert log()[-1]["message"].startswith("message stays in the dead-letter queue")
    assert log()[-1]["job_id"] == job.job_id

    given.change(job, lease_until=0)
    queue.wait()
    assert queue.deliver(dead_letter.handler) == 0
    assert given.stored(job).status == "failed"
