"""The notification that a job has finished."""

import json
from dataclasses import replace

import pytest

from jobs.notification import announce
from jobs.once import note_deadline, once
from jobs.settings import settings
from tests.unit import given
from tests.unit.client import Context
from tests.unit.conftest import Read
from tests.unit.given import store


@pytest.fixture(autouse=True)
def _invocation() -> None:
    note_deadline(Context())


def test_a_finished_job_is_announced_once(announced: Read) -> None:
    job = store.complete(given.running(), {"text": "é\uffff"})
    for _ in range(2):
        announce(job)

    (message,) = announced()
    assert message["Message"].isascii()  # SQS refuses U+FFFF, and may be a subscriber
    public = job.public()
    del public["history"]
    assert json.loads(message["Message"]) == public
    assert message["Subject"] == f"Job completed: {job.job_id}"
    assert message["MessageAttributes"] == {"status": {"Type": "String", "Value": "completed"}}


def test_a_result_that_is_too_large_for_sns_is_left_out(announced: Read) -> None:
    job = store.complete(given.running(), {"text": "é" * 49_000})
    announce(job)
    (message,) = announced()
    assert json.loads(message["Message"])["result"] is None


def test_a_job_that_finishes_again_is_announced_again(announced: Read) -> None:
    failed = given.failed()
    announce(failed)
    announce(store.cancel(store.retry(failed.job_id, len(failed.history))))

    subjects = {message["Subject"] for message in announced()}
    assert subjects == {f"Job failed: {failed.job_id}", f"Job cancelled: {failed.job_id}"}


def test_what_an_earlier_release_has_announced_is_not_announced_again(announced: Read) -> None:
    job = given.completed()
    once(job.job_id, f"announce/{job.finished_at}", lambda: "a message's id")

    announce(job)

    assert announced() == []


def test_without_a_topic_nothing_is_announced(
    announced: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_topic = replace(settings, job_events_topic="")
    monkeypatch.setattr("jobs.notification.settings", no_topic)
    announce(given.completed())
    assert announced() == []
