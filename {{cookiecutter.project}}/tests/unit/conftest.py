"""What the unit tests share. Nothing is cleared between them: each makes jobs of its own."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from tests.unit.emulated import AWS, set_environment  # first: it makes src importable
from tests.unit.queues import Queue
from tests.unit.receiver import Receiver


def pytest_unconfigure() -> None:
    """End the emulated AWS."""
    AWS.stop()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the functions."""
    set_environment(monkeypatch)


class Clock:
    """The time as the store reads it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stop the store's clock at 2026-01-31T09:30:00Z."""
    clock = Clock()
    for module in ("attempts", "store", "table"):
        monkeypatch.setattr(f"jobs.{module}.now", lambda: clock.now)
    return clock


Read = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], list[str]]


@pytest.fixture
def log() -> Iterator[Read]:
    """What the functions log from now on."""
    stream = io.StringIO()
    handler = Logger().registered_handler  # that of all functions
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    handler.setStream(before)


@pytest.fixture
def counted(capsys: pytest.CaptureFixture[str]) -> Counted:
    """The metrics that are counted from now on."""

    def read() -> list[str]:
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [line["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Name"] for line in lines]

    return read


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """What the API hands jobs over to; nothing has been handed over yet."""
    return Receiver(monkeypatch)


@pytest.fixture
def announced() -> Iterator[Read]:
    """What is published to the topic from now on, read from a queue that subscribes to it."""
    sns, queue = AWS.client("sns"), Queue("DeadLetterQueue")
    subscription = sns.subscribe(
        TopicArn=AWS.template.arn("JobEventsTopic"), Protocol="sqs", Endpoint=queue.arn
    )
    yield queue.take
    sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
