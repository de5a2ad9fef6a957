"""POST /jobs/{job_id}/cancel: a job is called off."""

import pytest

from tests import samples
from tests.contract.client import Caller, accepted, refused
from tests.needed import needed


def test_c33_a_job_is_cancelled_at_any_time(alice: Caller) -> None:
    """Right after its acceptance: 202, and it ends cancelled, run or not yet run."""
    job_id = alice.start(needed("SLOW"))

    response = alice.cancel(job_id)

    assert accepted(response)["status"] in {"queued", "running", "waiting", "cancelled"}
    assert "location" in response.headers
    job = alice.wait_for(job_id, "cancelled")
    assert "result" not in job
    assert "error" not in job


def test_c34_a_running_job_is_stopped(alice: Caller) -> None:
    """202 while it is under way; soon after, its work stops and it is cancelled."""
    job_id = alice.start(needed("SLOW"))
    alice.wait_for(job_id, samples.SLOW_STATUS)

    assert accepted(alice.cancel(job_id))["status"] in {samples.SLOW_STATUS, "cancelled"}

    job = alice.wait_for(job_id, "cancelled")
    assert job["attempts"] == 1
    assert job["history"][-1]["status"] == "cancelled"


def test_c35_a_cancelled_job_stays_as_it_is(alice: Caller) -> None:
    """200 for another cancel, and nothing changes."""
    job_id = alice.start(needed("SLOW"))
    alice.cancel(job_id)
    cancelled = alice.wait_for(job_id, "cancelled")

    again = alice.cancel(job_id)

    assert again.status_code == 200
    assert again.json() == cancelled == alice.get(job_id).json()


@pytest.mark.parametrize(("sample", "status"), [("HAPPY", "completed"), ("PERMANENT", "failed")])
def test_c36_a_finished_job_cannot_be_cancelled(alice: Caller, sample: str, status: str) -> None:
    """409, and nothing changes."""
    finished = alice.run(needed(sample), until=status)

    refused(alice.cancel(finished["job_id"]), 409, "job-finished")

    assert alice.get(finished["job_id"]).json() == finished
