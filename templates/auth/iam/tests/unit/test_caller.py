"""Who is calling: jobs belong to the IAM principal that asked for them."""

from collections.abc import Callable

import pytest
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tests import samples
from tests.unit.client import Answer, answer, cancel, get, post, request, retry, shown_problems
from tests.unit.given import new_id, store
from web import caller

pytestmark = pytest.mark.usefixtures("receiver")


def test_a_job_belongs_to_the_principal_that_asked_for_it() -> None:
    job = store.get(post(samples.HAPPY, caller="alice").body["job_id"])
    assert job is not None
    assert job.owner == "alice"


@pytest.mark.parametrize("route", [get, cancel, retry])
def test_nobody_else_sees_it(route: Callable[[str, str], Answer]) -> None:
    job_id = post(samples.HAPPY, caller="alice").body["job_id"]
    assert route(job_id, "bob").problem == "job-not-found"
    assert get(job_id, "alice").body["status"] == "queued"


def test_a_key_is_its_callers_own() -> None:
    key = new_id()
    of_alice = post(samples.HAPPY, key, caller="alice")
    of_bob = post(samples.OTHER, key, caller="bob")
    assert of_alice.status == of_bob.status == 202
    assert of_alice.body["job_id"] != of_bob.body["job_id"]


def identity(**changes: object) -> dict[str, object]:
    """What API Gateway tells of a pod that has assumed a role."""
    arn = "arn:aws:sts::000000000000:assumed-role/reports/pod-1"
    known = {"userId": "AROAEXAMPLE:pod-1", "userArn": arn, "cognitoIdentity": None}
    return {"iam": known | changes}


def owner(authorizer: object) -> str:
    """Return whose job a request is about."""
    event = request("GET", "/jobs/1")
    event["requestContext"]["authorizer"] = authorizer
    return caller.caller_of(APIGatewayProxyEventV2(event))


@pytest.mark.parametrize(
    ("known", "is_called"),
    [
        (identity(), "AROAEXAMPLE"),
        (identity(userId="AROAEXAMPLE:pod-2"), "AROAEXAMPLE"),
        (identity(userId="AIDAEXAMPLE"), "AIDAEXAMPLE"),
        (identity(userId="000000000000:alice"), "000000000000:alice"),  # a federated user
        (identity(userId="000000000000"), "000000000000"),  # the account's root user
        (identity(cognitoIdentity={"identityId": "us-east-1:1234"}), "us-east-1:1234"),
        (identity(cognitoIdentity={"identityId": None}), "AROAEXAMPLE"),
    ],
)
def test_the_caller_is_a_principal(known: object, is_called: str) -> None:
    assert owner(known) == is_called


def test_the_caller_may_be_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "_SESSIONS", True)
    assert owner(identity()) == "arn:aws:sts::000000000000:assumed-role/reports/pod-1"


@pytest.mark.parametrize(
    "authorizer", [None, {}, {"iam": None}, identity(userId=None), identity(userArn="")]
)
def test_a_request_that_came_past_the_authorizer(authorizer: object) -> None:
    event = request("GET", f"/jobs/{new_id()}")
    event["requestContext"]["authorizer"] = authorizer
    refused = answer(event)
    assert (refused.status, refused.problem) == (403, "forbidden")
    assert refused.body == shown_problems()["urn:problem:forbidden"]
