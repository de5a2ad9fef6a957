"""How jobs are handed over to Lambda, cancelled, and given answers."""

import json
import re
from contextlib import nullcontext
from urllib.parse import quote

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import dispatch
from jobs import Job
from jobs.reference import Reference
from jobs.table import ConditionFailed
from tests import samples
from tests.unit import given
from tests.unit.client import post
from tests.unit.given import store
from tests.unit.receiver import Receiver


def waiting() -> Job:
    """A job that waits for an answer."""
    return given.waiting("the/callback==")


def test_a_job_is_handed_over(receiver: Receiver) -> None:
    """To the alias, under a name that holds the job's id and the time of its creation."""
    job = given.queued()
    dispatch.hand_over(job)

    assert receiver.handed_over() == [{"job_id": job.job_id}]
    assert [name for _, name in receiver.executions] == [
        job.job_id + "-" + "".join(re.findall(r"\d", job.created_at))
    ]
    assert dispatch.WORKER == "WorkerFunction:live"


def test_a_job_made_again_after_its_row_was_deleted_gets_an_execution(receiver: Receiver) -> None:
    """The name of the first one's stays taken, even after it has ended."""
    key = given.new_id()
    job = given.stored(post(samples.HAPPY, key).body["job_id"])
    store.withdraw(job)
    again = given.stored(post(samples.HAPPY, key).body["job_id"])

    assert again.job_id == job.job_id
    assert len(receiver.executions) == 2


def test_each_request_for_a_retry_starts_an_execution(receiver: Receiver) -> None:
    """That of an earlier request may have ended before it claimed the job."""
    job = given.failed()
    for _ in range(2):
        dispatch.hand_over(job, retry_of=len(job.history))

    assert receiver.handed_over() == [{"job_id": job.job_id, "retry_of": len(job.history)}] * 2
    names = [name for _, name in receiver.executions]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {64}  # as many as Lambda takes


@pytest.mark.parametrize("text", ['{"job_id": "17"}', '{"job_id":"17"}'])
def test_once_more_than_needed_does_no_harm(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Lambda keeps the execution that has the name; an older release may write the payload else."""
    job = given.queued()
    dispatch.hand_over(job)
    monkeypatch.setattr(Reference, "dumps", lambda _: text)
    dispatch.hand_over(job)

    assert len(receiver.executions) == 1


@pytest.mark.parametrize("silent", [False, True])
def test_a_worker_that_does_not_take_it(receiver: Receiver, silent: bool) -> None:
    """If Lambda did not answer, it may have begun: its name begins no other execution."""
    receiver.fall_silent() if silent else receiver.fail()
    with pytest.raises(dispatch.NotHandedOver) as refusal:
        dispatch.hand_over(given.queued())
    assert refusal.value.may_run is silent


@pytest.mark.parametrize("state", ["queued", "released", "asked_and_released"])
def test_a_job_that_no_attempt_holds_is_cancelled(state: str) -> None:
    assert dispatch.cancel(given.STATES[state]()).status == "cancelled"


@pytest.mark.parametrize("make", [given.running, waiting])
def test_an_execution_is_stopped(receiver: Receiver, make: object) -> None:
    """And its job is cancelled at once."""
    job = make()  # type: ignore[operator]
    assert dispatch.cancel(job).status == "cancelled"

    ((path, body),) = receiver.asked
    assert path == f"/2025-12-01/durable-executions/{job.execution}/stop"
    assert json.loads(body)["ErrorType"] == "JobCancelled"


@pytest.mark.parametrize(
    ("status", "stopped"), [(400, True), (404, True), (429, False), (500, False)]
)
def test_an_execution_that_lambda_does_not_stop(
    receiver: Receiver, status: int, stopped: bool
) -> None:
    """It has ended by itself; or the wish is on record, and the request can be sent again."""
    receiver.answers["/stop"] = (status, {"Code": "Refused"})
    job = given.running()
    with nullcontext() if stopped else pytest.raises(ClientError):
        dispatch.cancel(job)

    stored = given.stored(job.job_id)
    assert stored.status == ("cancelled" if stopped else "running")
    assert stopped or stored.cancel_requested


def test_a_job_that_has_completed_meanwhile(receiver: Receiver) -> None:
    job = given.running()
    store.complete(job, {})
    with pytest.raises(ConditionFailed):
        dispatch.cancel(job)
    assert receiver.asked == []


def test_an_answer_is_delivered(receiver: Receiver) -> None:
    """As one JSON text, under the id that only the store knows; the job runs again."""
    job = waiting()
    running = dispatch.deliver(job, {"b": 1, "a": "é"}, "bob")

    assert running.status == "running"
    ((path, body),) = receiver.asked
    callback = quote("the/callback==", safe="")
    assert path == f"/2025-12-01/durable-execution-callbacks/{callback}/succeed"
    assert body.decode() == '{"a":"é","b":1,"by":"bob"}'


def test_the_worker_is_faster(receiver: Receiver) -> None:
    """It goes on, and waits again, before the answer's sender is told: then that is the job."""
    job = waiting()
    store.resume(job, "approval")
    store.wait(job, "another", 60, "another")
    assert (dispatch.deliver(job, {}, "bob").waiting or {})["for"] == "another"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((400, dispatch.NotWaiting), (404, dispatch.NotWaiting), (500, ClientError)),
        (None, BotoCoreError),
    ],
)
def test_an_answer_that_lambda_does_not_take(
    receiver: Receiver, status: int | None, error: type[Exception]
) -> None:
    """Lambda knows whether the callback is open; the job waits on."""
    if status:
        receiver.answers["/succeed"] = (status, {"Code": "Refused"})
    else:
        receiver.fall_silent()
    job = waiting()
    with pytest.raises(error):
        dispatch.deliver(job, {}, "bob")
    assert given.stored(job.job_id).status == "waiting"


@pytest.mark.parametrize("state", ["queued", "running", "waiting", "completed", "cancelled"])
def test_a_job_that_waits_for_no_answer(receiver: Receiver, state: str) -> None:
    """It does not wait, or only for time to pass."""
    with pytest.raises(dispatch.NotWaiting):
        dispatch.deliver(given.STATES[state](), {}, "bob")
    assert receiver.asked == []


@pytest.mark.parametrize(
    ("status", "sent_again", "sure"), [(403, 0, True), (403, 1, False), (503, 0, False)]
)
def test_a_refusal_is_sure_if_nothing_was_sent_before(
    status: int, sent_again: int, sure: bool
) -> None:
    """A first request whose answer was lost may have started the execution."""
    told = {"HTTPStatusCode": status, "RetryAttempts": sent_again}
    error = ClientError({"Error": {"Code": "Refused"}, "ResponseMetadata": told}, "Invoke")
    assert dispatch._refused_at_once(error) is sure
