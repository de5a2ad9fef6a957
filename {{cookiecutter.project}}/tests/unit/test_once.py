"""Side effects that happen once a job."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

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


class Effect:
    """A side effect that counts how often it happens."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.times = 0

    def __call__(self) -> Any:
        """Happen, and give the next answer; an exception is raised."""
        self.times += 1
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _invocation() -> None:
    note_deadline(Context())


@pytest.mark.parametrize("answer", ["done", {"id": 1.5}, 0, False, "", [], None, "x" * 49_998])
def test_an_effect_happens_once_and_its_answer_stays(answer: Any) -> None:
    job_id, effect = given.new_id(), Effect(answer, "again")

    assert once(job_id, "pay", effect) == answer
    assert once(job_id, "pay", effect) == answer
    assert effect.times == 1


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
    job_id, effect = given.new_id(), Effect(answer, "again")

    for _ in range(2):
        with pytest.raises(PermanentError, match=f"pay is done, but .* cannot be kept: .*{why}"):
            once(job_id, "pay", effect)
    assert effect.times == 1


def test_another_name_or_another_job_is_another_effect() -> None:
    job_id, effect = given.new_id(), Effect(1, 2, 3)

    assert once(job_id, "pay", effect) == 1
    assert once(job_id, "pay again", effect) == 2
    assert once(given.new_id(), "pay", effect) == 3


def test_an_effect_that_failed_is_done_again() -> None:
    job_id, effect = given.new_id(), Effect(ConnectionError("no answer"), "done")

    with pytest.raises(ConnectionError, match="no answer"):
        once(job_id, "pay", effect)
    assert once(job_id, "pay", effect) == "done"


def test_an_effect_under_way_is_not_done_beside() -> None:
    job_id, started, go_on = given.new_id(), threading.Event(), threading.Event()

    def effect() -> str:
        started.set()
        go_on.wait()
        return "first"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(once, job_id, "pay", effect)
        started.wait()
        with pytest.raises(IdempotencyAlreadyInProgressError):
            once(job_id, "pay", Effect("second"))
        go_on.set()
        assert first.result() == "first"


def test_an_effect_that_was_killed_is_done_again_after_its_invocation() -> None:
    job_id = given.new_id()
    note_deadline(Context(remaining_ms=-1))

    with pytest.raises(KeyboardInterrupt):  # nothing cleans up after it, as after a kill
        once(job_id, "pay", Effect(KeyboardInterrupt()))

    assert once(job_id, "pay", Effect("done")) == "done"


def test_the_record_outlives_the_job_and_its_retries() -> None:
    before = expirations()
    once(given.new_id(), "pay", Effect("done"))

    ((_, expiration),) = expirations().items() - before.items()
    assert expiration > time.time() + 9 * 365 * 86_400


def expirations() -> dict[str, int]:
    """Return when each record expires, in epoch seconds."""
    records = AWS.client("dynamodb").scan(TableName=settings.idempotency_table)["Items"]
    return {record["id"]["S"]: int(record["expiration"]["N"]) for record in records}


def test_the_record_of_an_earlier_release_is_found() -> None:
    # Under another id, what was done before a deployment would be done again after it.
    record = {
        "id": {"S": "once#0420fbcd848ef2bf6dcddbcbe0e4000c"},  # of "17#pay"
        "status": {"S": "COMPLETED"},
        "data": {"S": '["done"]'},
        "expiration": {"N": str(given.queued().expires_at)},
    }
    AWS.client("dynamodb").put_item(TableName=settings.idempotency_table, Item=record)

    assert once("17", "pay", Effect("again")) == "done"
