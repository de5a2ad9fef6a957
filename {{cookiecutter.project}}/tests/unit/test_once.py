"""Side effects that happen once a job."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
)

from jobs import PermanentError
from jobs.once import note_deadline, once
from jobs.settings import settings
from tests.unit import given
from tests.unit.client import Context
from tests.unit.emulated import AWS


def effect(*outcomes: Any) -> Mock:
    """Return a side effect with its outcomes, in order; exceptions are raised."""
    return Mock(side_effect=outcomes)


@pytest.fixture(autouse=True)
def _invocation() -> None:
    note_deadline(Context())


@pytest.mark.parametrize("answer", ["done", {"id": 1.5}, 0, False, "", [], None, "x" * 49_998])
def test_an_effect_happens_once_and_its_answer_stays(answer: Any) -> None:
    job_id, pay = given.new_id(), effect(answer, "again")
    assert [once(job_id, "pay", pay) for _ in range(2)] == [answer, answer]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (datetime.now(UTC), "not JSON serializable"),
        (float("nan"), "Out of range float values"),
        ("\ud800", "surrogates not allowed"),
        ("x" * 50_000, "it has 50002 bytes and 50000 are allowed"),
    ],
)
def test_an_effect_whose_answer_cannot_be_kept_is_done_all_the_same(answer: Any, why: str) -> None:
    job_id, pay = given.new_id(), effect(answer, "again")
    for _ in range(2):
        with pytest.raises(PermanentError, match=f"pay is done, but .* cannot be kept: .*{why}"):
            once(job_id, "pay", pay)


def test_another_name_or_another_job_is_another_effect() -> None:
    job_id, pay = given.new_id(), effect(1, 2, 3)
    names = [(job_id, "pay"), (job_id, "pay again"), (given.new_id(), "pay")]
    assert [once(job, name, pay) for job, name in names] == [1, 2, 3]


def test_an_effect_that_failed_is_done_again() -> None:
    job_id, pay = given.new_id(), effect(ConnectionError("no answer"), "done")
    with pytest.raises(ConnectionError, match="no answer"):
        once(job_id, "pay", pay)
    assert once(job_id, "pay", pay) == "done"


def test_an_effect_under_way_is_not_done_beside() -> None:
    job_id, started, go_on = given.new_id(), threading.Event(), threading.Event()

    def pay() -> str:
        started.set()
        go_on.wait()
        return "first"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(once, job_id, "pay", pay)
        started.wait()
        with pytest.raises(IdempotencyAlreadyInProgressError):
            once(job_id, "pay", effect("second"))
        go_on.set()
        assert first.result() == "first"


def test_an_effect_that_was_killed_is_done_again_after_its_invocation() -> None:
    job_id, pay = given.new_id(), effect(KeyboardInterrupt(), "done")
    note_deadline(Context(remaining_ms=-1))

    with pytest.raises(KeyboardInterrupt):  # nothing cleans up after it, as after a kill
        once(job_id, "pay", pay)
    assert once(job_id, "pay", pay) == "done"


def test_the_record_outlives_the_job_and_its_retries() -> None:
    job_id = given.new_id()
    once(job_id, job_id, effect("done"))

    name = hashlib.md5(f'"{job_id}#{job_id}"'.encode(), usedforsecurity=False).hexdigest()
    record = AWS.client("dynamodb").get_item(
        TableName=settings.idempotency_table, Key={"id": {"S": f"once#{name}"}}
    )
    assert int(record["Item"]["expiration"]["N"]) > time.time() + 9 * 365 * 86_400


def test_the_record_of_an_earlier_release_is_found() -> None:
    # Under another id, what was done before a deployment would be done again after it.
    record = {
        "id": {"S": "once#0420fbcd848ef2bf6dcddbcbe0e4000c"},  # of "17#pay"
        "status": {"S": "COMPLETED"},
        "data": {"S": '["done"]'},
        "expiration": {"N": str(given.queued().expires_at)},
    }
    AWS.client("dynamodb").put_item(TableName=settings.idempotency_table, Item=record)

    assert once("17", "pay", effect("again")) == "done"
