"""What the owner of a job is told whose execution has ended without bringing the job to its end."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

import dispatch
from failure_reason import failure_reason
from jobs import Job
from tests.unit import given
from tests.unit.receiver import Receiver


def started() -> Job:
    """A job that an execution runs."""
    job = given.queued()
    return dispatch._store.start(job.job_id, None, "some-execution")


def ended(receiver: Receiver, status: str, error: dict[str, str] | None = None) -> None:
    """Let the execution have ended."""
    answer: dict[str, Any] = {"Status": status, "Error": error or {}}
    receiver.answers["/some-execution"] = (200, answer)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("FAILED", "ExecutionFailed"),
        ("STOPPED", "ExecutionStopped"),
        ("TIMED_OUT", "ExecutionTimedOut"),
        ("DELETING", "ExecutionLost"),
    ],
)
def test_lambda_tells_how_it_ended(receiver: Receiver, status: str, kind: str) -> None:
    ended(receiver, status, {"ErrorType": "Crash", "ErrorMessage": "no memory"})
    told = failure_reason(started())

    assert told["type"] == kind
    assert told["message"].endswith("Crash: no memory")


def test_lambda_tells_no_more_than_that(receiver: Receiver) -> None:
    ended(receiver, "TIMED_OUT")
    assert failure_reason(started()) == {
        "type": "ExecutionTimedOut",
        "message": "The execution took longer than it may.",
    }


@pytest.mark.parametrize("retried", [False, True])
def test_an_execution_that_never_began(receiver: Receiver, retried: bool) -> None:
    """Lambda keeps an event for six hours; then it is a dead letter. Nobody need be asked."""
    job = given.failed() if retried else given.queued()
    if retried:
        job = given.store.retry(job.job_id, len(job.history))

    assert failure_reason(job)["type"] == "NeverStarted"
    assert receiver.asked == []


def test_an_execution_that_lambda_has_forgotten(receiver: Receiver) -> None:
    receiver.answers["/some-execution"] = (404, {"Code": "ResourceNotFoundException"})
    assert failure_reason(started())["type"] == "ExecutionLost"


def test_a_job_without_an_execution(receiver: Receiver) -> None:
    assert failure_reason(replace(started(), execution=None))["type"] == "ExecutionLost"


def test_lambda_does_not_say_now(receiver: Receiver) -> None:
    """Then the message stays and comes back."""
    receiver.answers["/some-execution"] = (429, {"Code": "TooManyRequestsException"})
    with pytest.raises(ClientError):
        failure_reason(started())
    receiver.fall_silent()
    with pytest.raises(BotoCoreError):
        failure_reason(started())
