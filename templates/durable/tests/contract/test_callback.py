"""POST /jobs/{job_id}/callback: a job that waits for an answer is given one."""

import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests import samples
from tests.contract.client import Caller, refused
from tests.needed import needed

JSON = {"Content-Type": "application/json"}


def answer(caller: Caller, job_id: str, value: object) -> httpx.Response:
    """Give a job an answer."""
    return caller.send("POST", f"/jobs/{job_id}/callback", json.dumps(value).encode(), JSON)


def waiting(caller: Caller) -> str:
    """Have a job accepted that waits for an answer, and return its id when it does."""
    job_id = caller.start(needed("APPROVAL"))
    caller.wait_for(job_id, "waiting")
    return job_id


def test_d1_a_waiting_job_tells_what_for_and_until_when(alice: Caller) -> None:
    """And nothing that would let somebody past the API answer it."""
    before = datetime.now(UTC)
    job = alice.get(waiting(alice)).json()

    assert job["waiting"].keys() == {"for", "until"}
    assert datetime.fromisoformat(job["waiting"]["until"]) > before + timedelta(minutes=1)


def test_d2_an_answer_lets_it_go_on(alice: Caller) -> None:
    """200, and the answer reaches the work."""
    job_id = waiting(alice)

    assert answer(alice, job_id, samples.APPROVED).status_code == 200

    job = alice.wait_for(job_id, "completed")
    assert not samples.REFUSED_RESULT.items() <= job["result"].items()
    assert "waiting" not in job
    assert [entry["status"] for entry in job["history"]] == [
        *("queued", "running", "waiting", "running", "completed")
    ]
    assert job["attempts"] == 1


def test_d3_another_answer_has_another_end(alice: Caller) -> None:
    """It is the work that decides."""
    job_id = waiting(alice)
    answer(alice, job_id, {})
    job = alice.wait_for(job_id, "completed")
    assert samples.REFUSED_RESULT.items() <= job["result"].items()


def test_d4_only_the_first_answer_counts(alice: Caller) -> None:
    """409 for the next one, at once and after the end."""
    job_id = waiting(alice)
    answer(alice, job_id, samples.APPROVED)

    refused(answer(alice, job_id, {}), 409, "job-not-waiting")
    job = alice.wait_for(job_id, "completed")
    refused(answer(alice, job_id, {}), 409, "job-not-waiting")

    assert not samples.REFUSED_RESULT.items() <= job["result"].items()
    assert alice.get(job_id).json() == job


def test_d5_a_job_that_waits_for_time_takes_no_answer(alice: Caller) -> None:
    """409, and it waits on."""
    job_id = alice.start(needed("SLOW"))
    alice.wait_for(job_id, samples.SLOW_STATUS)

    refused(answer(alice, job_id, {}), 409, "job-not-waiting")

    assert alice.get(job_id).json()["status"] == samples.SLOW_STATUS
    alice.cancel(job_id)


def test_d6_nobody_answers_in_time(alice: Caller) -> None:
    """The job goes on without."""
    job = alice.run(needed("DEADLINE"))
    assert "waiting" in [entry["status"] for entry in job["history"]]


def test_d7_only_the_owner_may_answer(alice: Caller, bob: Caller) -> None:
    """To others there is no such job."""
    job_id = waiting(alice)

    refused(answer(bob, job_id, samples.APPROVED), 404, "job-not-found")

    assert alice.get(job_id).json()["status"] == "waiting"
    alice.cancel(job_id)


def test_d10_who_is_asked_answers(alice: Caller, bob: Caller, bob_id: str) -> None:
    """The owner may not, and learns who did."""
    if samples.APPROVER is None:
        pytest.skip("samples.APPROVER is None: your work names nobody to answer")
    job_id = alice.start({**needed("APPROVAL"), samples.APPROVER: bob_id})
    alice.wait_for(job_id, "waiting")

    refused(answer(alice, job_id, samples.APPROVED), 404, "job-not-found")
    refused(bob.get(job_id), 404, "job-not-found")
    question = bob.send("GET", f"/jobs/{job_id}/callback")
    assert question.json()["job_id"] == job_id
    assert answer(bob, job_id, samples.APPROVED | {"by": "alice"}).status_code == 200

    job = alice.wait_for(job_id, "completed")
    assert job["answered"]["by"] == bob_id
    refused(answer(bob, job_id, {}), 409, "job-not-waiting")


def test_d8_what_is_no_answer_is_refused(alice: Caller) -> None:
    """And the job waits on."""
    job_id = waiting(alice)
    path = f"/jobs/{job_id}/callback"

    refused(alice.send("POST", path, b"{", JSON), 400, "invalid-json")
    refused(alice.send("POST", path, b"[]", JSON), 400, "not-an-object")
    refused(alice.send("POST", path, b"{}", {}), 415, "unsupported-media-type")

    assert alice.get(job_id).json()["status"] == "waiting"
    alice.cancel(job_id)


def test_d9_a_waiting_job_can_be_cancelled_and_retried(alice: Caller) -> None:
    """The answer to its second go is another one."""
    job_id = waiting(alice)
    alice.cancel(job_id)
    alice.wait_for(job_id, "cancelled")
    refused(answer(alice, job_id, samples.APPROVED), 409, "job-not-waiting")

    alice.retry(job_id)
    alice.wait_for(job_id, "waiting")
    answer(alice, job_id, samples.APPROVED)

    assert alice.wait_for(job_id, "completed")["attempts"] == 2
