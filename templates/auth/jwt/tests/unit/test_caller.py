"""Who is calling: jobs belong to the subject of the token that asked for them."""

from collections.abc import Callable

import pytest

from tests import samples
from tests.unit.client import Answer, answer, cancel, get, post, request, retry
from tests.unit.given import new_id, store

pytestmark = pytest.mark.usefixtures("engine")


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


@pytest.mark.parametrize(
    "authorizer", [None, {}, {"jwt": {}}, {"jwt": {"claims": {}}}, {"jwt": {"claims": {"sub": ""}}}]
)
def test_a_request_that_came_past_the_authorizer(authorizer: dict[str, object] | None) -> None:
    event = request("GET", f"/jobs/{new_id()}")
    del event["requestContext"]["authorizer"]
    if authorizer is not None:
        event["requestContext"]["authorizer"] = authorizer
    told = answer(event)
    assert (told.status, told.problem) == (401, "unauthenticated")
