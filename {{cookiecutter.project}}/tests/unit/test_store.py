"""The store: every write that a job's state allows, and every one that it refuses."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from jobs import Job, PermanentError
from jobs.job import NewerSchema
from jobs.reference import Reference
from jobs.settings import client, settings
from jobs.store import JobStore
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.conftest import Clock
from tests.unit.given import OWNER, PAYLOAD, store

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
    "queued": {
        "adopt": "queued",
        "withdraw": "gone",
        "claim": "running",
        "cancel": "cancelled",
        "give_up": "failed",
    },
    "adopted": {
        "adopt": "queued",
        "claim": "running",
        "cancel": "cancelled",
        "give_up": "failed",
    },
    "running": _UNDER_WAY,
    "lost": {**_UNDER_WAY, "claim": "running", "give_up": "failed"},
    "released": {"claim": "running", "cancel": "cancelled", "give_up": "failed"},
    "asked": _UNDER_WAY,
    "asked_and_lost": {**_UNDER_WAY, "give_up": "cancelled"},
    "asked_and_released": {"cancel": "cancelled", "give_up": "cancelled"},
    "waiting": {"stop": "cancelled", "ask_to_stop": "waiting", "give_up": "failed"},
    "completed": {},
    "failed": {"retry": "queued"},
    "cancelled": {"retry": "queued"},
    "gone": {"create": "queued"},
}


def test_the_table_is_complete() -> None:
    public = {name for name in vars(JobStore) if not name.startswith("_")}
    assert WRITES.keys() == public - {"get"}
    assert ALLOWED.keys() == given.STATES.keys()


@pytest.mark.parametrize(
    ("state", "write"), [(state, write) for state in ALLOWED for write in ALLOWED[state]]
)
def test_allowed(state: str, write: str) -> None:
    job = given.STATES[state]()

    written = WRITES[write](job)

    assert written == store.get(job.job_id)
    assert (written.status if written else "gone") == ALLOWED[state][write]


@pytest.mark.parametrize("state", ALLOWED)
def test_all_else_is_refused(state: str) -> None:
    job = given.STATES[state]()
    stored, before = store.get(job.job_id), given.item(job)

    for write in WRITES.keys() - ALLOWED[state].keys():
        assert refused(write, job) == stored, write
    assert given.item(job) == before


def test_a_refusal_tells_what_is_stored_instead() -> None:
    assert str(ConditionFailed(given.running())) == "the job is running"
    assert str(ConditionFailed(None)) == "there is no such job"


def refused(write: str, job: Job) -> Job | None:
    """Return what the refusal of a write tells about the job."""
    with pytest.raises(ConditionFailed) as refusal:
        WRITES[write](job)
    return refusal.value.job


@pytest.mark.parametrize("write", sorted(WRITES))
def test_a_job_of_a_newer_schema_is_left_alone(write: str) -> None:
    job = given.lost()
    given.change(job, schema=2)
    before = given.item(job)

    with pytest.raises(NewerSchema, match=f"^job {job.job_id} has schema 2, not 1$"):
        WRITES[write](job)

    assert given.item(job) == before


# ---------------------------------------------------------------- one attempt at a time


@pytest.mark.parametrize("write", ["report", "complete", "fail", "release", "stop", "give_up"])
def test_an_attempt_that_was_overtaken_cannot_write(write: str) -> None:
    overtaken = given.lost()
    current = given.claim(overtaken, seconds=-1)

    assert refused(write, overtaken) == current


def test_a_lease_holds_to_its_last_millisecond(clock: Clock) -> None:
    job = given.claim(given.queued(), seconds=1.5)

    clock.forward(1.5)
    assert refused("claim", job) == job
    assert refused("give_up", job) == job

    clock.forward(0.001)
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


# ---------------------------------------------------------------- what is written


def test_a_job_is_one_hand_overs_until_it_is_retried() -> None:
    job, mine, other = given.queued(), "mine", "other"

    def claim(ticket: str, retry_of: int | None = None) -> Job:
        return store.claim(Reference(job.job_id, retry_of, ticket), 60, most=9)

    released = store.release(claim(mine), ConnectionError("no answer"))
    with pytest.raises(ConditionFailed):
        claim(other)
    failed = store.fail(claim(mine), ValueError("no such site"))

    retry_of = len(failed.history)
    store.retry(job.job_id, retry_of)
    with pytest.raises(ConditionFailed):
        claim(mine)  # of before the retry
    claimed = claim(other, retry_of)
    assert (claimed.attempts, claimed.recent_attempts) == (3, 1)
    assert released.recent_attempts == 1


def test_a_job_has_no_more_attempts_than_it_may() -> None:
    job = given.queued()
    for _ in range(2):
        store.release(store.claim(Reference(job.job_id), 60, most=2), OSError("no answer"))
    with pytest.raises(ConditionFailed):
        store.claim(Reference(job.job_id), 60, most=2)
    assert given.stored(job).attempts == 2


def test_accepted_then_completed(clock: Clock) -> None:
    job_id = given.new_id()

    created = store.create(job_id, "alice", {"b": 1.5, "a": "\u00e9"})
    item = given.item(created)
    assert item == {
        "job_id": job_id,
        "owner": "alice",
        "payload": '{"a":"\u00e9","b":1.5}',
        "fingerprint": hashlib.sha256('{"a":"\u00e9","b":1.5}'.encode()).hexdigest(),
        "status": "queued",
        "created_at": "2026-01-31T09:30:00.000Z",
        "updated_at": "2026-01-31T09:30:00.000Z",
        "expires_at": seconds(clock) + settings.retention_seconds,
        "attempts": 0,
        "history": [{"status": "queued", "at": "2026-01-31T09:30:00.000Z"}],
        "schema": 1,
        "write": ANY,
    }
    item["write"] = ANY

    clock.forward(2)
    claimed = given.claim(job_id, seconds=90)
    item |= {
        "status": "running",
        "started_at": "2026-01-31T09:30:02.000Z",
        "updated_at": "2026-01-31T09:30:02.000Z",
        "expires_at": seconds(clock) + settings.retention_seconds,
        "attempts": 1,
        "recent_attempts": 1,
        "ticket": "",
        "lease_until": (seconds(clock) + 90) * 1000,
        "history": [*item["history"], {"status": "running", "at": "2026-01-31T09:30:02.000Z"}],
    }
    assert given.item(claimed) == item

    clock.forward(1)
    reported = store.report(claimed, {"done": 1, "total": 2})
    item |= {"updated_at": "2026-01-31T09:30:03.000Z", "progress": {"done": 1, "total": 2}}
    assert given.item(reported) == item

    clock.forward(1)
    completed = store.complete(replace(reported, progress={"done": 2}), {"pages": 2})
    del item["lease_until"]
    assert given.item(completed) == item | {
        "status": "completed",
        "updated_at": "2026-01-31T09:30:04.000Z",
        "finished_at": "2026-01-31T09:30:04.000Z",
        "expires_at": seconds(clock) + settings.retention_seconds,
        "progress": {"done": 2},
        "result": '{"pages":2}',
        "history": [*item["history"], {"status": "completed", "at": "2026-01-31T09:30:04.000Z"}],
    }


def seconds(clock: Clock) -> int:
    """Return the clock's time in epoch seconds."""
    return int(clock.now.timestamp())


def test_the_next_attempt_keeps_the_start_and_takes_the_error_away(clock: Clock) -> None:
    released = given.released()
    assert released.error == {"type": "ConnectionError", "message": "no answer"}
    assert released.lease_until is None

    clock.forward(60)
    completed = store.complete(given.claim(released), {})
    assert completed.started_at == released.started_at == "2026-01-31T09:30:00.000Z"
    assert completed.error is None
    assert completed.attempts == 2


@pytest.mark.parametrize("end", [given.failed, given.cancelled, given.completed])
def test_an_ended_job_has_no_lease_and_a_time(end: Callable[[], Job], clock: Clock) -> None:
    job = end()
    assert job.finished_at == "2026-01-31T09:30:00.000Z"
    assert job.lease_until is None


def test_a_failed_job_tells_why() -> None:
    assert given.failed().error == {"type": "ValueError", "message": "no such site"}


def test_a_cancelled_job_keeps_no_error() -> None:
    assert store.cancel(given.released()).error is None
    again = given.claim(given.released())
    assert again.error is not None
    assert store.stop(again).error is None


def test_a_completed_job_forgets_that_it_was_asked_to_stop() -> None:
    assert given.asked().cancel_requested
    assert not store.complete(given.asked(), {}).cancel_requested


def test_asked_to_stop(clock: Clock) -> None:
    job = given.running()
    clock.forward(1)
    asked = store.ask_to_stop(job)
    assert asked == replace(job, cancel_requested=True, updated_at="2026-01-31T09:30:01.000Z")


def test_given_up() -> None:
    assert store.give_up(given.queued(), ERROR).error == ERROR
    assert store.give_up(given.lost(), ERROR).error == ERROR
    assert store.give_up(given.asked_and_released(), ERROR).error is None


def test_a_retry_starts_afresh_but_forgets_no_attempt() -> None:
    failed = store.fail(replace(given.asked(), progress={"done": 1}), ValueError("no"))

    retried = store.retry(failed.job_id, len(failed.history))

    assert retried.retry_of == 3
    assert retried.attempts == 1
    assert retried.started_at == failed.started_at
    assert (retried.error, retried.progress, retried.finished_at) == (None, None, None)
    assert not retried.cancel_requested
    assert [entry["status"] for entry in retried.history] == [
        *("queued", "running", "failed"),
        "queued",
    ]


def test_a_retry_counts_once() -> None:
    job = given.cancelled()
    cancelled_again = store.cancel(store.retry(job.job_id, len(job.history)))

    assert refused("retry", job) == cancelled_again


def test_a_job_that_was_made_anew_is_not_withdrawn(clock: Clock) -> None:
    """It is the same id, but another request's."""
    job = given.queued()
    store.withdraw(job)
    clock.forward(1)
    anew = store.create(job.job_id, OWNER, PAYLOAD)
    assert refused("withdraw", job) == anew


@pytest.mark.parametrize("write", ["cancel", "ask_to_stop"])
def test_a_late_cancellation_does_not_end_another_go(write: str) -> None:
    job = given.queued() if write == "cancel" else given.running()
    ended = store.cancel(job) if write == "cancel" else store.fail(job, ValueError("no"))
    retried = store.retry(job.job_id, len(ended.history))
    if write == "ask_to_stop":
        retried = given.claim(retried)
    assert refused(write, job) == retried


# ---------------------------------------------------------------- a request whose answer is lost


@pytest.fixture
def _answers_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send every write twice, as the AWS client does when it waits in vain for the answer."""
    for name in ("put_item", "update_item"):
        send = getattr(store._dynamodb, name)

        def twice(send: Callable[..., Any] = send, **request: Any) -> Any:
            send(**request)
            return send(**request)

        monkeypatch.setattr(store._dynamodb, name, twice)


@pytest.mark.usefixtures("_answers_are_lost")
@pytest.mark.parametrize("state", ["completed", "released", "cancelled", "asked"])
def test_a_write_is_not_refused_for_what_it_has_done_itself(state: str) -> None:
    job = given.STATES[state]()
    assert given.stored(job) == job
    assert job.attempts == (state != "cancelled")


@pytest.mark.usefixtures("_answers_are_lost")
def test_nor_is_a_retry() -> None:
    job = given.failed()
    assert store.retry(job.job_id, len(job.history)).status == "queued"


@pytest.mark.usefixtures("_answers_are_lost")
def test_what_another_has_done_is_refused_all_the_same() -> None:
    job = given.running()
    with pytest.raises(ConditionFailed):
        given.claim(job)
    with pytest.raises(ConditionFailed):
        store.create(job.job_id, OWNER, PAYLOAD)


# ---------------------------------------------------------------- what has expired


def test_an_expired_job_is_unknown(clock: Clock) -> None:
    job = given.queued()

    clock.forward(settings.retention_seconds - 1)
    assert store.get(job.job_id) == job

    clock.forward(1)
    assert store.get(job.job_id) is None
    clock.forward(1)
    assert store.get(job.job_id) is None


def test_an_expired_job_makes_room(clock: Clock) -> None:
    job = given.completed()

    clock.forward(settings.retention_seconds - 1)
    assert refused("create", job) == job

    clock.forward(1)
    assert store.create(job.job_id, OWNER, {"another": 1}).payload == {"another": 1}
    assert store.get(job.job_id) == Job.from_item(given.item(job) or {})


# ---------------------------------------------------------------- what a job can hold


def test_a_result_may_have_just_so_many_bytes() -> None:
    def result(size: int) -> dict[str, str]:
        return {"text": "\u00e9" + "x" * (size - len('{"text":"__"}'))}

    job = store.complete(given.running(), result(100_000))
    assert job.result == result(100_000)

    with pytest.raises(PermanentError) as error:
        store.complete(given.running(), result(100_001))
    assert str(error.value) == (
        "the result has 100001 bytes and 100000 are allowed: store it elsewhere and return where"
    )


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (None, "run() returned NoneType; it returns a JSON object"),
        (["pages"], "run() returned list; it returns a JSON object"),
        ({"sites": {"docs.example"}}, "the result is not JSON: Object of type set is not"),
        ({"ratio": float("nan")}, "the result is not JSON: Out of range float values"),
        ({"text": "\ud800"}, "the result is not JSON: 'utf-8' codec can't encode"),
    ],
)
def test_a_result_is_a_json_object(result: Any, why: str) -> None:
    job = given.running()

    with pytest.raises(PermanentError) as error:
        store.complete(job, result)

    assert str(error.value).startswith(why)
    assert store.get(job.job_id) == job


def test_a_table_that_does_not_answer_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_table", "NoSuchTable")
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        given.queued()


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_another_error_is_no_refusal_either(code: str) -> None:
    job = given.queued()
    with Stubber(client("dynamodb")) as stub:
        stub.add_client_error("update_item", code)
        with pytest.raises(ClientError, match=code):
            store.cancel(job)


def test_what_is_read_is_the_last_write() -> None:
    job_id = given.new_id()
    request = {"TableName": settings.jobs_table, "Key": {"job_id": {"S": job_id}}}
    with Stubber(client("dynamodb")) as stub:  # of the emulated table, every read is consistent
        stub.add_response("get_item", {}, {**request, "ConsistentRead": True})
        assert store.get(job_id) is None
