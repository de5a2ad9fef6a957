"""GET /jobs/{job_id}: the truth about a job."""

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tests import samples
from tests.contract.client import Caller, Job, refused
from tests.needed import needed

CLOCKS = timedelta(seconds=1)
"""How far the clocks of the machines behind one API may be apart."""


def life(job: Job) -> list[tuple[str, int]]:
    """Return each status that the job has had, with its attempt."""
    return [(entry["status"], entry["attempt"]) for entry in job["history"]]


def test_c23_a_job_goes_from_queued_over_running_to_completed(alice: Caller) -> None:
    """The history tells it all, even if nobody looked in between; the work may wait on the way."""
    job = alice.run(samples.HAPPY)

    moving = [entry for entry in life(job) if entry[0] != "waiting"]
    assert [*dict.fromkeys(moving)] == [("queued", 0), ("running", 1), ("completed", 1)]
    assert job["attempts"] == 1


def test_c24_times_go_forward(alice: Caller) -> None:
    """created, started, finished, and each entry of the history: none before the one before it."""
    began = datetime.now(UTC)

    job = alice.run(samples.HAPPY)

    time = {
        name: datetime.fromisoformat(job[name])
        for name in ("created_at", "started_at", "finished_at", "updated_at", "expires_at")
    }
    history = [datetime.fromisoformat(entry["at"]) for entry in job["history"]]
    assert (history[0], history[-1]) == (time["created_at"], time["finished_at"])
    assert time["started_at"] in history
    assert all(later - earlier > -CLOCKS for earlier, later in pairwise(history))
    assert began - CLOCKS < time["created_at"]
    assert time["finished_at"] <= time["updated_at"] < datetime.now(UTC) + CLOCKS
    assert time["expires_at"] > time["updated_at"] + timedelta(hours=23)


def test_c25_an_unfinished_job_tells_when_to_ask_again(alice: Caller) -> None:
    """Retry-After as long as the job is not terminal, and not afterwards; never a cached answer."""
    job_id = alice.start(needed("SLOW"))
    alice.wait_for(job_id, samples.SLOW_STATUS)
    running = alice.get(job_id)
    alice.cancel(job_id)
    alice.wait_for(job_id, "cancelled")
    ended = alice.get(job_id)

    assert int(running.headers["retry-after"]) >= 1
    assert "retry-after" not in ended.headers
    assert running.headers["cache-control"] == ended.headers["cache-control"] == "no-store"


def test_c26_a_failed_job_is_200(alice: Caller) -> None:
    """The request succeeds though the job did not; `error` says why, and there is no result."""
    job = alice.run(needed("PERMANENT"), until="failed")

    assert life(job) == [("queued", 0), ("running", 1), ("failed", 1)]
    assert job["error"]["message"]
    assert "result" not in job


def test_c27_what_fails_in_passing_is_tried_again(alice: Caller) -> None:
    """A failed attempt is followed by another one, and the job completes."""
    job = alice.run(needed("TRANSIENT"))

    assert job["attempts"] == 2
    assert life(job) == [
        ("queued", 0),
        ("running", 1),
        ("queued", 1),
        ("running", 2),
        ("completed", 2),
    ]
    assert "error" not in job


def test_c28_what_always_fails_is_given_up(alice: Caller) -> None:
    """When the engine has tried often enough the job is failed, with the last error."""
    job = alice.run(needed("POISON"), until="failed")

    assert job["attempts"] > 1
    assert [attempt for status, attempt in life(job) if status == "running"] == list(
        range(1, job["attempts"] + 1)
    )
    assert life(job)[-1] == ("failed", job["attempts"])
    assert samples.POISON_ERROR in job["error"]["message"]


def test_c29_what_has_been_told_stays_true(alice: Caller) -> None:
    """From one look to the next, attempts and history only grow."""
    job_id = alice.start(samples.TRANSIENT or samples.HAPPY)
    for earlier, later in pairwise(alice.follow(job_id)):
        assert later["attempts"] >= earlier["attempts"]
        assert later["history"][: len(earlier["history"])] == earlier["history"]
        assert later["created_at"] == earlier["created_at"]


@pytest.mark.parametrize(
    "job_id",
    [
        "6e1b3c1e-7a54-4c70-9d5f-1f3f0a0c9b52",
        str(uuid.UUID(int=0)),
        "1",
        "jobs",
        "%20",
        "%0A",
        "%F0%9F%92%A5",
        "x" * 1000,
        "0b9f3c1e8f5b5f0a9d570c1f5e0f6a11",
        "{0b9f3c1e-8f5b-5f0a-9d57-0c1f5e0f6a11}",
    ],
)
def test_c30_an_unknown_job_is_404(alice: Caller, job_id: str) -> None:
    """Whatever stands where a job id should be; for GET, cancel and retry."""
    for response in (alice.get(job_id), alice.cancel(job_id), alice.retry(job_id)):
        refused(response, 404, "job-not-found")


def test_c31_an_id_is_taken_literally(alice: Caller) -> None:
    """The id of a job in capitals is no job's id."""
    job_id = alice.start(samples.HAPPY)
    assert job_id != job_id.upper()

    refused(alice.get(job_id.upper()), 404, "job-not-found")
    refused(alice.get(job_id + "%0A"), 404, "job-not-found")


@pytest.mark.parametrize(("sample", "status"), [("HAPPY", "completed"), ("PERMANENT", "failed")])
def test_c32_a_job_is_its_owners_alone(
    alice: Caller, bob: Caller, sample: str, status: str
) -> None:
    """To another caller it is as unknown as one that does not exist, and nothing happens to it."""
    ended = alice.run(needed(sample), until=status)
    job_id, unknown = ended["job_id"], str(uuid.uuid4())

    for ask in (bob.get, bob.cancel, bob.retry):
        refused(ask(job_id), 404, "job-not-found")
        assert ask(job_id).json() == ask(unknown).json()
    assert alice.get(job_id).json() == ended
