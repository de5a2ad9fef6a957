"""Who is calling: jobs belong to the subject of the token that asked for them."""

import json
from collections.abc import Callable

import pytest

from tests import samples
from tests.unit.client import Answer, answer, cancel, get, post, request, retry, shown_problems
from tests.unit.given import new_id, store

pytestmark = pytest.mark.usefixtures("receiver")
JSON = {"Content-Type": "application/json"}


def test_a_job_belongs_to_the_subject_that_asked_for_it() -> None:
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


def told(authorizer: object) -> Answer:
    """Return the answer to a request that this is known of."""
    event = request("GET", f"/jobs/{new_id()}")
    event["requestContext"]["authorizer"] = authorizer
    return answer(event)


@pytest.mark.parametrize("authorizer", [None, {}, {"jwt": None}, {"jwt": {}}])
def test_a_request_that_came_past_the_authorizer(authorizer: object) -> None:
    refused = told(authorizer)
    assert (refused.status, refused.problem) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("sub", [None, "", " \t", 17])
def test_a_machine_is_its_client_id(sub: object) -> None:
    event = request("POST", "/jobs", json.dumps(samples.HAPPY).encode(), JSON)
    claims = {"sub": sub, "client_id": "alice"}
    event["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    job = store.get(answer(event).body["job_id"])
    assert job is not None
    assert job.owner == "client:alice"
    assert get(job.job_id, "alice").problem == "job-not-found"  # the person of that name


@pytest.mark.parametrize("claims", [None, {}, {"sub": ""}, {"sub": None, "client_id": " "}])
def test_a_token_that_names_nobody(claims: object) -> None:
    refused = told({"jwt": {"claims": claims, "scopes": None}})
    assert (refused.status, refused.problem) == (403, "forbidden")
    assert refused.body == shown_problems()["urn:problem:forbidden"]
