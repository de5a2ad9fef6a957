"""The job: what its owner sees of it."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs import Job, Status
from jobs.job import SCHEMA, milliseconds, now, rfc3339
from tests.unit import given

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


def test_a_new_job_in_public() -> None:
    assert job("queued").public() == {
        "job_id": "an id",
        "status": "queued",
        "created_at": AT,
        "updated_at": AT,
        "attempts": 0,
        "history": [{"status": "queued", "at": AT, "attempt": 0}],
        "expires_at": "2026-01-31T09:30:00.000Z",
    }


def test_what_exists_later_is_public_when_it_exists() -> None:
    public = job(
        *("queued", "running", "completed"),
        started_at=AT,
        finished_at=AT,
        progress={"done": 1, "total": 2, "message": "half"},
        result='{"pages":2}',
        error={"type": "ValueError", "message": "no"},
        lease_until=1,
        cancel_requested=True,
        retry_of=3,
    ).public()

    assert public["started_at"] == public["finished_at"] == AT
    assert public["progress"] == {"done": 1, "total": 2, "message": "half"}
    assert public["result"] == {"pages": 2}
    assert public["error"] == {"type": "ValueError", "message": "no"}
    assert not public.keys() & {"owner", "payload", "fingerprint", "schema"}
    assert not public.keys() & {"lease_until", "cancel_requested", "retry_of"}


def test_a_waiting_job_tells_what_for_and_until_when() -> None:
    waiting = {"for": "approval", "until": AT, "callback_id": "a secret"}
    assert job("running", "waiting", waiting=waiting).public()["waiting"] == {
        "for": "approval",
        "until": AT,
    }
    assert "waiting" not in job("waiting", "running", waiting=waiting).public()


def test_numbers_come_back_from_the_table_as_they_went() -> None:
    stored = given.store.report(given.running(), {"done": 10**20, "total": 0})
    progress = stored.public()["progress"]
    assert progress == {"done": 10**20, "total": 0}
    assert {type(number) for number in progress.values()} == {int}
    assert {type(n) for n in (stored.attempts, stored.expires_at, stored.lease_until)} == {int}
    assert type(given.store.retry(given.cancelled().job_id, 2).retry_of) is int


@pytest.mark.parametrize(
    ("history", "attempts"),
    [
        ("queued running completed", [0, 1, 1]),
        ("queued running queued running failed", [0, 1, 1, 2, 2]),
        ("queued running running completed", [0, 1, 2, 2]),  # the first one was lost
        ("queued running waiting running completed", [0, 1, 1, 1, 1]),  # it went on after a wait
        ("queued running waiting running queued running failed", [0, 1, 1, 1, 1, 2, 2]),
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
    assert job(*["queued"] * 1_000).worn_out
    assert job(*["queued"] * 1_001).worn_out
    assert not job(*["queued"] * 999).worn_out


def test_leased() -> None:
    moment = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
    leased = job("running", lease_until=milliseconds(moment))
    assert leased.leased(moment - timedelta(hours=1))
    assert leased.leased(moment)
    assert not leased.leased(moment + timedelta(milliseconds=1))
    assert not job("running").leased(moment)


def test_an_older_schema_can_be_read() -> None:
    assert job("queued", schema=SCHEMA - 1).status == "queued"


def test_times() -> None:
    moment = datetime(2026, 1, 31, 9, 30, 0, 123_999, tzinfo=UTC)
    assert rfc3339(moment) == "2026-01-31T09:30:00.123Z"
    assert milliseconds(moment) == 1769851800_123
    assert now().tzinfo is UTC


def test_a_job_belongs_to_one_hand_over_of_its_latest_retry() -> None:
    mine = job("queued", retry_of=300, ticket="mine")
    assert not mine.belongs_elsewhere(int("300"), "mine")
    assert mine.belongs_elsewhere(None, "mine")
    assert mine.belongs_elsewhere(300, "other")
    assert not job("queued", retry_of=300).belongs_elsewhere(300, "other")
