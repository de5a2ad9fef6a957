"""The job: what its owner sees of it."""

from datetime import UTC, datetime

import pytest

from jobs import Job, Status
from jobs.job import MAX_HISTORY, SCHEMA
from jobs.reference import Reference
from jobs.times import now, rfc3339

AT = "2026-01-31T09:30:00.000Z"


def job(*history: str, **attributes: object) -> Job:
    """Return a job that went through these statuses."""
    item = {
        "job_id": "an id",
        "owner": "alice",
        "payload": '{"site":"docs.example"}',
        "fingerprint": "f00d",
        "status": history[-1],
        "created_at": AT,
        "updated_at": AT,
        "expires_at": 1769851800,
        "attempts": history.count("running"),
        "history": [{"status": status, "at": AT} for status in history],
        "schema": SCHEMA,
    }
    return Job.from_item(item | attributes)


def test_what_is_public() -> None:
    public = {
        "job_id": "an id",
        "status": "queued",
        "created_at": AT,
        "updated_at": AT,
        "attempts": 0,
        "history": [{"status": "queued", "at": AT, "attempt": 0}],
        "expires_at": AT,
    }
    later = {
        "started_at": AT,
        "finished_at": AT,
        "progress": {"done": 1, "total": 2, "message": "half"},
        "error": {"type": "ValueError", "message": "no"},
    }
    internal = {"cancel_requested": True, "retry_of": 3, "schema": SCHEMA - 1}

    assert job("queued").public() == public
    assert job("queued", **later, **internal, result='{"pages":2}').public() == {
        **(public | later),
        "result": {"pages": 2},
    }


@pytest.mark.parametrize(
    ("history", "attempts"),
    [
        ("queued running completed", [0, 1, 1]),
        ("queued running queued running failed", [0, 1, 1, 2, 2]),
        ("queued running running completed", [0, 1, 2, 2]),  # the first one was lost
        ("queued cancelled queued running completed", [0, 0, 0, 1, 1]),
    ],
)
def test_history_tells_the_attempt(history: str, attempts: list[int]) -> None:
    public = job(*history.split()).public()
    assert [entry["attempt"] for entry in public["history"]] == attempts
    assert [entry["status"] for entry in public["history"]] == history.split()


@pytest.mark.parametrize("status", Status)
def test_three_statuses_are_terminal(status: Status) -> None:
    assert status.terminal == (status in ("completed", "failed", "cancelled"))


def test_worn_out() -> None:
    assert [job(*["queued"] * n).worn_out for n in (999, 1_000, 1_001)] == [False, True, True]
    assert MAX_HISTORY == 1_000


def test_a_job_belongs_to_its_latest_retry() -> None:
    retried = job("queued", retry_of=300)
    assert not retried.belongs_elsewhere(Reference("an id", int("300")))
    assert retried.belongs_elsewhere(Reference("an id"))


def test_times() -> None:
    assert rfc3339(datetime(2026, 1, 31, 9, 30, 0, 123_999, tzinfo=UTC)) == AT[:-4] + "123Z"
    assert now().tzinfo is UTC
