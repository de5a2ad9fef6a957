"""YOUR TESTS: what the sample work does. They go when work.py becomes yours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import work
from tests import samples
from tests.needed import needed
from tests.unit.emulated import AWS
from tests.unit.executions import Executions, executions


@pytest.fixture(scope="module")
def runs() -> Iterator[Executions]:
    """What runs executions."""
    with executions() as running:
        yield running


def test_a_trial_is_followed_up(runs: Executions) -> None:
    """Validate, wait 20 minutes, publish."""
    job = runs.run({"customer": "ada"}).job

    assert job.status == "completed"
    assert (job.result or {}).keys() == {"customer", "follow_up"}
    assert "waiting" in [entry["status"] for entry in job.history]


def test_the_follow_up_is_published(runs: Executions) -> None:
    """To whoever subscribes to the topic."""
    sqs, sns = AWS.client("sqs"), AWS.client("sns")
    queue = sqs.create_queue(QueueName="follow-ups")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    sns.subscribe(
        TopicArn=work.FOLLOW_UP_TOPIC, Protocol="sqs", Endpoint=arn["Attributes"]["QueueArn"]
    )
    runs.run(samples.HAPPY)

    (message,) = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    assert json.loads(json.loads(message["Body"])["Message"]) == samples.HAPPY_RESULT


@pytest.mark.parametrize(
    ("answer", "withheld"),
    [({"approved": True}, False), ({"approved": False}, True), ({}, True), ({"approved": 1}, True)],
)
def test_somebody_says_whether(runs: Executions, answer: dict[str, Any], withheld: bool) -> None:
    """Only a clear yes is a yes."""
    execution = runs.start(needed("APPROVAL"))
    execution.answer(json.dumps(answer).encode())
    execution.result()

    assert ((execution.job.result or {})["follow_up"] == "withheld") is withheld


def test_nobody_says_in_time(runs: Executions) -> None:
    """That means no."""
    execution = runs.start(needed("APPROVAL"))
    execution.expire()
    execution.result()

    assert (execution.job.result or {})["follow_up"] == "withheld"


def test_a_transient_failure_passes(runs: Executions) -> None:
    """At the second attempt."""
    assert runs.run(needed("TRANSIENT")).job.status == "completed"


@pytest.mark.parametrize(
    ("sample", "error"), [("POISON", "ConnectionError"), ("PERMANENT", "PermanentError")]
)
def test_a_failure_stays(runs: Executions, sample: str, error: str) -> None:
    """Whether others are tried or not."""
    assert (runs.run(needed(sample)).job.error or {})["type"] == error
