"""POST /jobs/{job_id}/callback: what tests/contract/test_callback.py cannot see."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from answers import AnswerConfig
from callback_routes import may_answer
from tests.unit import given
from tests.unit.client import Answer, answer, request, shown_problems
from tests.unit.given import store
from tests.unit.receiver import Receiver
from web.caller import caller_of

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
    assert json.loads(body) == {"approved": True, "by": told.body["answered"]["by"]}


@pytest.mark.usefixtures("receiver")
def test_the_document_shows_what_is_answered() -> None:
    """The example of docs/openapi.yaml."""
    refused = reply(given.running().job_id)
    assert refused.body == shown_problems()["urn:problem:job-not-waiting"]


def asks(**who: Any) -> str:
    """Return the id of a job that asks callers other than its owner."""
    asked = AnswerConfig(question={"refund": 4711}, **who).record()
    return store.wait(given.running(), "approval", 60, "secret", asked).job_id


def question(job_id: str, caller: str) -> Answer:
    """Ask for the question of a job."""
    return answer(request("GET", f"/jobs/{job_id}/callback", caller=caller))


def who_is(caller: str) -> str:
    """Return the id by which the API knows a caller."""
    return caller_of(APIGatewayProxyEventV2(request("GET", "/jobs/any", caller=caller)))


def test_a_caller_whom_the_work_names_answers(receiver: Receiver) -> None:
    """It sees the question, and nothing else of the job; the owner sees who answered."""
    job_id = asks(callers=(who_is("bob"),))
    shown = question(job_id, "bob").body
    assert shown.keys() == {"job_id", "for", "until", "question"}
    assert shown["question"] == {"refund": 4711}

    told = reply(job_id, b'{"approved": true, "by": "the king"}', caller="bob")

    assert (told.status, told.body) == (200, {"job_id": job_id})
    ((_, delivered),) = receiver.asked
    assert json.loads(delivered) == {"approved": True, "by": who_is("bob")}
    answered = given.stored(job_id).public()["answered"]
    assert (answered["for"], answered["by"]) == ("approval", who_is("bob"))
    assert reply(job_id, caller="bob").problem == "job-not-waiting"  # he may, but too late
    assert question(job_id, "bob").problem == "job-not-waiting"


@pytest.mark.usefixtures("receiver")
def test_the_owner_may_not_answer_what_others_are_asked() -> None:
    """404, as for anybody else; the job waits on."""
    job_id = asks(callers=("somebody else",))
    for caller in ("local", "bob"):
        assert question(job_id, caller).problem == "job-not-found"
        assert reply(job_id, caller=caller).problem == "job-not-found"
    assert given.stored(job_id).status == "waiting"


@pytest.mark.parametrize(
    ("groups", "may"),
    [
        *(("[admins approvers]", True), ("approvers", True), ('["admins","approvers"]', True)),
        *(("[admins]", False), ("approvers-too", False), ("", False), (None, False)),
    ],
)
def test_a_claim_stands_for_callers(groups: str | None, may: bool) -> None:
    waiting = AnswerConfig(claims={"groups": "approvers"}).record()
    assert may_answer(waiting, "ada", "bob", {"groups": groups}) is may
    assert may_answer(waiting, "ada", "ada", {}) is False


def test_a_token_is_asked_for_its_claims() -> None:
    job_id = asks(claims={"groups": "approvers"})
    event = request("GET", f"/jobs/{job_id}/callback", caller="bob")
    authorizer = event["requestContext"].get("authorizer") or {}
    if "jwt" not in authorizer:
        assert answer(event).problem == "job-not-found"
        return
    authorizer["jwt"]["claims"]["groups"] = "[approvers]"
    assert answer(event).status == 200


def test_a_question_is_small() -> None:
    """A part of the job's item has to be."""
    with pytest.raises(ValueError, match="more than 10000 bytes"):
        AnswerConfig(question={"text": "x" * 10_000}).record()


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
