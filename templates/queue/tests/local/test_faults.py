"""Workers that are killed, time out or give up: every job reaches a terminal status all the same.

The jobs run side by side, for each of them waits for a visibility timeout to end.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.stack import Stack
from tests import samples
from tests.contract.client import Caller
from tests.contract.conftest import CONTRACT, PARAMETERS
from tests.needed import needed

PROJECT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 5
VISIBILITY_SECONDS = 20
"""Instead of 6 x the timeout: longer than a lease of 10 s and a cold start, and no longer."""
SENT = [name for name in ("POISON", "SLOW", "ENDLESS") if getattr(samples, name) is not None]
"""Samples, in the order in which they are sent."""


class Campaign:
    """The jobs, one of each sample, sent together, and what the topic said of them."""

    def __init__(self, stack: Stack) -> None:
        sqs, sns = stack.aws.client("sqs"), stack.aws.client("sns")
        sqs.set_queue_attributes(
            QueueUrl=stack.aws.queue_url("JobsQueue"),
            Attributes={"VisibilityTimeout": str(VISIBILITY_SECONDS)},
        )
        self._announced = sqs.create_queue(QueueName="announced")["QueueUrl"]
        attributes = sqs.get_queue_attributes(
            QueueUrl=self._announced, AttributeNames=["QueueArn"]
        )["Attributes"]
        sns.subscribe(
            TopicArn=stack.template.arn("JobEventsTopic"),
            Protocol="sqs",
            Endpoint=attributes["QueueArn"],
        )
        samples.prepare(stack.aws.client, stack.aws.ref)
        self.stack = stack
        self._sqs = sqs
        self.caller = Caller(stack.url, CONTRACT, None, impatience=0.1, patience=90)
        self.jobs: dict[str, str] = {}
        for name in SENT:
            self.jobs[name] = self.caller.start(needed(name))
            if name == "SLOW":
                self.caller.wait_for(self.jobs[name], "running")
                stack.kill("WorkerFunction")

    def ended(self, sample: str) -> dict[str, Any]:
        """Wait for the end of a sample's job, and return it."""
        needed(sample)
        *_, job = self.caller.follow(self.jobs[sample])
        return job

    def announcements(self) -> dict[str, list[str]]:
        """Return the statuses that the topic has announced, by job."""
        told: dict[str, list[str]] = {}
        while messages := self._sqs.receive_message(
            QueueUrl=self._announced, MaxNumberOfMessages=10, WaitTimeSeconds=1
        ).get("Messages"):
            for message in messages:
                job = json.loads(json.loads(message["Body"])["Message"])
                told.setdefault(job["job_id"], []).append(job["status"])
        return told


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    """A stack whose workers may run for five seconds."""
    parameters = PARAMETERS | {"WorkerTimeout": str(TIMEOUT_SECONDS), "MaxAttempts": "2"}
    with Stack(PROJECT, parameters=parameters) as stack:
        yield Campaign(stack)


def test_a_killed_worker_loses_no_job(campaign: Campaign) -> None:
    """The message comes back, the lease has ended, and a second attempt completes the job."""
    job = campaign.ended("SLOW")
    assert job["status"] == "completed", (
        f"samples.SLOW has to end within {TIMEOUT_SECONDS} s: {job}"
    )
    assert job["attempts"] == 2
    assert [entry["status"] for entry in job["history"]] == [
        "queued",
        "running",
        "running",
        "completed",
    ]


def test_a_job_that_always_times_out_fails(campaign: Campaign) -> None:
    """After the last attempt the message is dead-lettered, and the job says what happened."""
    job = campaign.ended("ENDLESS")
    assert (job["status"], job["attempts"]) == ("failed", 2)
    assert job["error"]["type"] == "AttemptLost"


def test_a_job_that_always_fails_tells_the_last_error(campaign: Campaign) -> None:
    """The dead-letter function keeps what the last attempt said."""
    job = campaign.ended("POISON")
    assert (job["status"], job["attempts"]) == ("failed", 2)
    assert samples.POISON_ERROR in job["error"]["message"]


def test_nothing_is_left(campaign: Campaign) -> None:
    """Each end is announced once, the queues are empty, and no function left a thread behind."""
    ends = {job_id: [campaign.ended(sample)["status"]] for sample, job_id in campaign.jobs.items()}
    assert campaign.announcements() == ends
    for queue in ("JobsQueue", "DeadLetterQueue"):
        counts = campaign.stack.aws.client("sqs").get_queue_attributes(
            QueueUrl=campaign.stack.aws.queue_url(queue), AttributeNames=["All"]
        )["Attributes"]
        assert counts["ApproximateNumberOfMessages"] == "0"
        assert counts["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert campaign.stack.leaks == []
