"""POST /jobs/{job_id}/callback: what tests/contract/test_callback.py cannot see."""

import json

import pytest

from tests.unit import given
from tests.unit.client import Answer, answer, request, shown_problems
from tests.unit.receiver import Receiver

JSON = {"Content-Type": "application/json"}


def reply(
    job_id: str,
    body: bytes = b'{"approved": true}',
    headers: dict[str, str] = JSON,
    caller: str = "local",
) -> Answer:
    """Give an answer."""
    return answer(request("POST", f"/jobs/{job_id}/callback", body, headers, caller))


def test_an_answer_is_delivered(receiver: Receiver) -> None:
    """200 with the job, which runs again; the callback's id stays with the service."""
    told = reply(given.waiting("secret").job_id)

    assert told.status == 200
    assert told.body["status"] == "running"
    assert "waiting" not in told.body
    assert int(told.headers["retry-after"]) >= 1
    assert told.headers["cache-control"] == "no-store"
    assert "secret" not in told.text
    ((path, body),) = receiver.asked
    assert path.endswith("/secret/succeed")
    assert json.loads(body) == {"approved": True}


@pytest.mark.usefixtures("receiver")
def test_the_document_shows_what_is_answered() -> None:
    """The example of docs/openapi.yaml."""
    refused = reply(given.running().job_id)
    assert refused.body == shown_problems()["urn:problem:job-not-waiting"]


@pytest.mark.usefixtures("receiver")
def test_only_the_owner_may_answer() -> None:
    """To others the job is unknown, whatever they send."""
    job = given.waiting("secret")
    if job.owner == "anonymous":  # everybody is the owner
        assert reply(job.job_id, caller="bob").status == 200
        return
    other = reply(job.job_id, b"{", {}, caller="bob")

    assert (other.status, other.problem) == (404, "job-not-found")
    assert other.text == reply(given.new_id()).text
    assert given.stored(job.job_id).status == "waiting"


@pytest.mark.parametrize(
    ("body", "headers", "status", "problem"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415, "unsupported-media-type"),
        (b"", JSON, 400, "invalid-json"),
        (b'"' + b"x" * 200_000 + b'"', JSON, 413, "payload-too-large"),
    ],
)
@pytest.mark.usefixtures("receiver")
def test_an_answer_that_is_none(
    body: bytes, headers: dict[str, str], status: int, problem: str
) -> None:
    """It is refused, and the job waits on."""
    job_id = given.waiting("secret").job_id
    told = reply(job_id, body, headers)

    assert (told.status, told.problem) == (status, problem)
    assert reply(job_id).status == 200


def test_lambda_cannot_be_reached(receiver: Receiver) -> None:
    """503: send it again."""
    job_id = given.waiting("secret").job_id
    receiver.answers["/succeed"] = (500, {"Code": "ServiceException"})
    told = reply(job_id)

    assert (told.status, told.problem) == (503, "service-unavailable")
    assert told.headers["retry-after"] == "5"
