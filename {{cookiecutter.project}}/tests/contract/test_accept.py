"""POST /jobs: a job is accepted."""

import json

import pytest

from tests import samples
from tests.contract.client import Caller, accepted


def test_c01_a_payload_is_accepted(alice: Caller) -> None:
    """202 with the queued job as its body, its address in Location, and Retry-After."""
    response = alice.post(samples.HAPPY)

    job = accepted(response)
    assert job["status"] == "queued"
    assert job["attempts"] == 0
    assert [(entry["status"], entry["attempt"]) for entry in job["history"]] == [("queued", 0)]
    assert int(response.headers["retry-after"]) >= 1
    assert "idempotent-replayed" not in response.headers


def test_c02_an_accepted_job_is_known_at_once(alice: Caller) -> None:
    """A GET of Location, right after the 202, finds the job."""
    response = alice.post(samples.HAPPY)

    found = alice.send("GET", str(response.url.join(response.headers["location"])))

    assert found.status_code == 200
    assert found.json()["job_id"] == response.json()["job_id"]


def test_c03_an_accepted_job_is_done(alice: Caller) -> None:
    """It completes without another request, and its result is there."""
    job = alice.run(samples.HAPPY)

    assert samples.HAPPY_RESULT.items() <= job["result"].items()
    assert job.get("progress") == samples.HAPPY_PROGRESS


def test_c04_without_a_key_every_request_is_a_job_of_its_own(alice: Caller) -> None:
    """The same payload twice, without a key, makes two jobs."""
    assert alice.start(samples.HAPPY) != alice.start(samples.HAPPY)


@pytest.mark.parametrize(
    "media_type",
    ["application/json; charset=utf-8", "Application/JSON", "application/json ;v=1"],
)
def test_c05_a_media_type_may_have_parameters(alice: Caller, media_type: str) -> None:
    """What counts is application/json, in upper or lower case, whatever follows a semicolon."""
    accepted(alice.post_body(json.dumps(samples.HAPPY).encode(), media_type=media_type))
