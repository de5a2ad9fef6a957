"""How jobs are handed over to the queue, and cancelled."""

import boto3
import pytest
from botocore.config import Config

import dispatch
from tests.unit import given
from tests.unit.queues import Queue
from tests.unit.receiver import Receiver


def test_a_reference_is_handed_over(receiver: Receiver) -> None:
    job = given.queued()
    dispatch.hand_over(job, retry_of=3)
    assert receiver.handed_over() == [{"job_id": job.job_id, "retry_of": 3}]


def test_the_messages_of_an_owner_are_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue("JobsQueue")
    monkeypatch.setattr(dispatch, "QUEUE_URL", queue.url)
    job = given.queued()
    dispatch.hand_over(job)
    dispatch.hand_over(job, retry_of=3)
    assert queue.groups() == [job.owner_digest] * 2


def test_a_queue_that_is_gone(receiver: Receiver) -> None:
    receiver.fail()
    with pytest.raises(dispatch.NotHandedOver):
        dispatch.hand_over(given.queued())


def test_a_queue_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "http://127.0.0.1:1"
    once = Config(retries={"total_max_attempts": 1})
    monkeypatch.setattr(dispatch, "_sqs", boto3.client("sqs", endpoint_url=nobody, config=once))
    monkeypatch.setattr(dispatch, "QUEUE_URL", f"{nobody}/000000000000/JobsQueue")
    with pytest.raises(dispatch.NotHandedOver):
        dispatch.hand_over(given.queued())


@pytest.mark.parametrize("state", ["queued", "released", "asked_and_released", "lost"])
def test_a_job_that_no_attempt_holds_is_cancelled(state: str) -> None:
    assert dispatch.cancel(given.STATES[state]()).status == "cancelled"


@pytest.mark.parametrize("state", ["running", "asked"])
def test_an_attempt_is_asked_to_stop(state: str) -> None:
    asked = dispatch.cancel(given.STATES[state]())
    assert (asked.status, asked.cancel_requested) == ("running", True)
