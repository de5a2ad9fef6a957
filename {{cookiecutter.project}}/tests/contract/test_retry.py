"""POST /jobs/{job_id}/retry: a job that has ended badly gets another go."""

from tests import samples
from tests.contract.client import Caller, accepted, refused
from tests.needed import needed


def test_c37_a_failed_job_runs_again(alice: Caller) -> None:
    """202; its attempts and its history go on."""
    failed = alice.run(needed("PERMANENT"), until="failed")
    job_id = failed["job_id"]

    response = alice.retry(job_id)
    assert accepted(response)["status"] in {"queued", "running", "failed"}
    assert "location" in response.headers

    job = alice.wait_for(job_id, "failed")
    assert job["attempts"] == failed["attempts"] + 1
    assert job["started_at"] == failed["started_at"]
    assert job["history"][: len(failed["history"])] == failed["history"]
    assert [entry["status"] for entry in job["history"][len(failed["history"]) :]] == [
        "queued",
        "running",
        "failed",
    ]


def test_c38_a_cancelled_job_completes_after_all(alice: Caller) -> None:
    """202, and it runs from the start to its end; the history tells of the cancellation."""
    job_id = alice.start(needed("SLOW"))
    alice.cancel(job_id)
    alice.wait_for(job_id, "cancelled")

    accepted(alice.retry(job_id))

    job = alice.wait_for(job_id, "completed")
    assert "cancelled" in [entry["status"] for entry in job["history"]]
    assert job["history"][-1]["status"] == "completed"


def test_c39_a_completed_job_cannot_be_retried(alice: Caller) -> None:
    """409, and nothing changes."""
    completed = alice.run(samples.HAPPY)

    refused(alice.retry(completed["job_id"]), 409, "job-not-retryable")

    assert alice.get(completed["job_id"]).json() == completed


def test_c39_nor_can_one_that_is_under_way(alice: Caller) -> None:
    """409 for it, too."""
    job_id = alice.start(needed("SLOW"))

    refused(alice.retry(job_id), 409, "job-not-retryable")

    alice.cancel(job_id)
