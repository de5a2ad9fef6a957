"""The store: what it writes, whatever runs the jobs. `test_attempts` has what it refuses."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from jobs import Job, PermanentError
from jobs.settings import client, settings
from jobs.table import ConditionFailed
from tests.unit import given
from tests.unit.conftest import Clock
from tests.unit.given import OWNER, PAYLOAD, refused, store

ERROR = {"type": "AttemptLost", "message": "given up"}
NOW = "2026-01-31T09:30:00.000Z"


def test_a_refusal_tells_what_is_stored_instead() -> None:
    assert str(ConditionFailed(given.running())) == "the job is running"
    assert str(ConditionFailed(None)) == "there is no such job"


def test_a_new_job_in_the_table(clock: Clock) -> None:
    job_id = given.new_id()
    text = '{"a":"é","b":1.5}'

    assert given.item(store.create(job_id, "alice", {"b": 1.5, "a": "é"})) == {
        "job_id": job_id,
        "owner": "alice",
        "payload": text,
        "fingerprint": hashlib.sha256(text.encode()).hexdigest(),
        "status": "queued",
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": int(clock.now.timestamp()) + settings.retention_seconds,
        "attempts": 0,
        "history": [{"status": "queued", "at": NOW}],
        "schema": 1,
        "write": ANY,
    }


def test_the_next_attempt_keeps_the_start_and_the_error_until_it_ends(clock: Clock) -> None:
    released = given.released()
    clock.forward(60)
    again = given.claim(released)

    assert again.started_at == released.started_at == NOW
    assert again.error == released.error == {"type": "ConnectionError", "message": "no answer"}
    assert again.attempts == 2
    assert store.complete(again, {}).error is None


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (given.completed, None),
        (given.failed, {"type": "ValueError", "message": "no such site"}),
        (given.cancelled, None),
        (lambda: store.cancel(given.released()), None),
        (lambda: store.stop(given.claim(given.released())), None),
        (lambda: store.give_up(given.queued(), ERROR), ERROR),
        (lambda: store.give_up(given.asked_and_released(), ERROR), None),
    ],
)
@pytest.mark.usefixtures("clock")
def test_an_ended_job_has_a_time_and_its_own_error(
    end: Callable[[], Job], error: dict[str, str] | None
) -> None:
    job = end()
    assert (job.finished_at, job.error) == (NOW, error)


def test_asked_to_stop(clock: Clock) -> None:
    job = given.running()
    clock.forward(1)
    asked = store.ask_to_stop(job)
    assert asked == replace(job, cancel_requested=True, updated_at="2026-01-31T09:30:01.000Z")
    assert not store.complete(asked, {}).cancel_requested


def test_a_retry_starts_afresh_but_forgets_no_attempt() -> None:
    failed = store.fail(replace(given.asked(), progress={"done": 1}), ValueError("no"))

    retried = store.retry(failed.job_id, len(failed.history))

    assert (retried.retry_of, retried.attempts) == (3, 1)
    assert retried.started_at == failed.started_at
    assert (retried.error, retried.progress, retried.finished_at) == (None, None, None)
    assert not retried.cancel_requested
    statuses = [entry["status"] for entry in retried.history]
    assert statuses == ["queued", "running", "failed", "queued"]


def test_a_retry_counts_once() -> None:
    job = given.cancelled()
    again = store.cancel(store.retry(job.job_id, len(job.history)))
    assert refused(store.retry, job.job_id, len(job.history)) == again


def test_a_job_that_was_made_anew_is_not_withdrawn(clock: Clock) -> None:
    job = given.gone()
    clock.forward(1)
    anew = store.create(job.job_id, OWNER, PAYLOAD)
    assert refused(store.withdraw, job) == anew


def test_a_late_cancellation_does_not_end_another_go() -> None:
    queued = given.queued()
    retried = store.retry(queued.job_id, len(store.cancel(queued).history))
    assert refused(store.cancel, queued) == retried

    running = given.running()
    failed = store.fail(running, ValueError("no"))
    again = given.claim(store.retry(running.job_id, len(failed.history)))
    assert refused(store.ask_to_stop, running) == again


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
def test_a_write_is_not_refused_for_what_it_has_done_itself() -> None:
    for state in ("completed", "released", "cancelled", "asked"):
        job = given.STATES[state]()
        assert given.stored(job) == job
        assert job.attempts == (state != "cancelled")
    failed = given.failed()
    assert store.retry(failed.job_id, len(failed.history)).status == "queued"


@pytest.mark.usefixtures("_answers_are_lost")
def test_what_another_has_done_is_refused_all_the_same() -> None:
    job = given.running()
    assert refused(store.cancel, job) == job
    assert refused(store.create, job.job_id, OWNER, PAYLOAD) == job


# ---------------------------------------------------------------- what has expired


def test_an_expired_job_is_unknown_and_makes_room(clock: Clock) -> None:
    job, other = given.completed(), given.completed()

    clock.forward(settings.retention_seconds - 1)
    assert store.get(job.job_id) == job
    assert refused(store.create, job.job_id, OWNER, {}) == job

    clock.forward(1)
    assert store.get(job.job_id) is None
    assert store.create(job.job_id, OWNER, {"another": 1}).payload == {"another": 1}
    assert given.stored(job).payload == {"another": 1}
    clock.forward(1)
    assert store.get(other.job_id) is None


# ---------------------------------------------------------------- what the table says


def test_a_result_that_cannot_be_kept_changes_nothing() -> None:
    job = given.running()
    with pytest.raises(PermanentError):
        store.complete(job, ["pages"])  # type: ignore[arg-type]
    assert given.stored(job) == job


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_an_error_of_the_table_is_no_refusal(code: str) -> None:
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


def test_numbers_come_back_from_the_table_as_they_went() -> None:
    stored = store.report(given.running(), {"done": 10**20, "total": 0})
    assert stored.progress == {"done": 10**20, "total": 0}
    numbers = [*stored.progress.values(), stored.attempts, stored.expires_at]
    assert {type(number) for number in numbers} == {int}
