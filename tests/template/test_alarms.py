"""Each alarm would ring in the case that it is for, by the delays that AWS documents.

A data point is stamped, and visible later. CloudWatch evaluates an alarm every minute, over the
window that its period and its evaluation periods make:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.conftest import Oven
from tests.helpers.cloudformation import Stack
from tests.helpers.rules import put
from tests.helpers.rules.alarms import alarm_metrics
from tests.helpers.rules.rule import ALARM

HOUR = 3600
METRIC_DELAY = 120
"""Seconds until a data point is visible: Lambda sends them every minute, logs arrive meanwhile."""
LONGEST_TIMEOUT = 1800
LONGEST_BACK_OFF = 300
"""Seconds between Lambda's attempts to invoke an asynchronous function:
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html"""


class Point(NamedTuple):
    """A data point, in seconds after the beginning."""

    stamp: float
    visible: float
    value: float = 1


def at(*seconds: float, value: float = 1) -> list[Point]:
    """Points stamped when they are made, as the kit's own metrics and most of AWS's are."""
    return [Point(second, second + METRIC_DELAY, value) for second in seconds]


def errors(timeout: float, *starts: float) -> list[Point]:
    """Errors of timeouts: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html"""
    return [Point(start, start + timeout + METRIC_DELAY) for start in starts]


def each_minute(minutes: int, value: float = 1) -> list[Point]:
    """A gauge."""
    return at(*(60.0 * minute for minute in range(minutes)), value=value)


# What is wrong, as its metrics tell it: by metric, where an alarm looks at several.
COMMON: dict[str, dict[str, list[Point]]] = {
    "JobDeadLetteredAlarm": {"one job": at(0)},
    "DeadLetterQueueAlarm": {"one letter, received every 3 minutes": each_minute(20)},
    "ApiErrorsAlarm": {"two failed requests": at(0, 60)},
    "ApiFunctionErrorsAlarm": {"two timeouts": errors(20, 0, 60)},
    "DeadLetterFunctionErrorsAlarm": {"a letter that kills it": errors(30, 0, 180)},
}
CASES: dict[str, dict[str, dict[str, list[Point]]]] = {
    "queue": {
        **COMMON,
        "WorkerFunctionErrorsAlarm": {
            "two attempts of half an hour": errors(LONGEST_TIMEOUT, 0, 60),
            "a crash at the start, again after 6 x 60 s": errors(1, 0, 360),
        },
        "AttemptLostAlarm": {"one attempt, noticed 3 hours later": at(3 * HOUR)},
        "JobsQueueAgeAlarm": {"one old message": each_minute(10, value=901)},
    },
    "durable": {
        **COMMON,
        "WorkerFunctionErrorsAlarm": {
            "two invocations of half an hour": errors(LONGEST_TIMEOUT, 0, 60)
        },
        "WorkerCrashedAlarm": {"a crash loop with a day's back-off": at(24 * HOUR)},
        "JobsWaitForStartAlarm": {"one job that starts after 20 minutes": at(1200, value=1.2e6)},
        "WorkerThrottledAlarm": {
            "one job that is throttled": at(*range(0, 2 * HOUR, LONGEST_BACK_OFF + 60))
        },
        "RunningExecutionsAlarm": {"the quota is nearly used up": each_minute(3, value=81)},
        "ExecutionsTimedOutAlarm": {"one execution": at(0)},
        "DeadLetterErrorsAlarm": {"one lost letter": at(0)},
    },
}
QUIET: dict[str, list[Point]] = {
    "ApiErrorsAlarm": at(0),
    "WorkerFunctionErrorsAlarm": errors(60, 0),
    "JobsQueueAgeAlarm": each_minute(60, value=900),
    "WorkerThrottledAlarm": at(0, 1, 3, 7),
    "RunningExecutionsAlarm": each_minute(60, value=80),
}
"""What is no case for these."""


def rings(alarm: dict[str, Any], points: list[Point]) -> bool:
    """Whether an alarm rings, `points` being those of the metric that it looks at (of each)."""
    ((_, statistic, period), *_) = alarm_metrics(alarm)
    periods = int(alarm["EvaluationPeriods"])
    needed = int(alarm.get("DatapointsToAlarm", periods))
    last = max(point.visible for point in points)
    for now in range(0, int(last) + 120, 60):
        seen = [point for point in points if point.visible <= now]
        windows = [(now - (n + 1) * period, now - n * period) for n in range(periods)]
        values = [[p.value for p in seen if begin <= p.stamp < end] for begin, end in windows]
        combine = sum if statistic == "Sum" else max
        breaching = [v for v in values if v and combine(v) > float(alarm["Threshold"])]
        if len(breaching) >= needed:
            return True
    return False


@pytest.fixture(params=CASES)
def stack(request: pytest.FixtureRequest, baked: Oven) -> Stack:
    """Each variant."""
    return Stack.of(baked(worker=request.param))


def cases(stack: Stack) -> Iterator[tuple[str, str, list[Point]]]:
    """The cases of a variant: alarm, what is wrong, data points."""
    for name, by_case in CASES[stack.project.answers["worker"]].items():
        for what, points in by_case.items():
            yield name, what, points


def test_every_alarm_rings_in_its_cases(stack: Stack) -> None:
    alarms = stack.resources(ALARM)

    assert {name for name, _, _ in cases(stack)} == alarms.keys()
    assert [(n, what) for n, what, points in cases(stack) if not rings(alarms[n], points)] == []


def test_no_alarm_rings_too_early(stack: Stack) -> None:
    alarms = stack.resources(ALARM)

    assert [n for n, points in QUIET.items() if n in alarms and rings(alarms[n], points)] == []


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("WorkerFunctionErrorsAlarm", {"EvaluationPeriods": 5}),
        ("WorkerFunctionErrorsAlarm", {"EvaluationPeriods": 30}),
        ("WorkerFunctionErrorsAlarm", {"DatapointsToAlarm": 3}),
        ("JobsQueueAgeAlarm", {"Threshold": 1000}),
        ("JobsQueueAgeAlarm", {"EvaluationPeriods": 5}),
        ("DeadLetterQueueAlarm", {"DatapointsToAlarm": 20}),
        ("AttemptLostAlarm", {"EvaluationPeriods": 1}),
    ],
)
def test_an_alarm_that_cannot_ring_is_found(name: str, edits: dict[str, int], baked: Oven) -> None:
    stack = Stack.of(baked(worker="queue"))
    source = copy.deepcopy(stack.source)
    for key, value in edits.items():
        put(f"{name}/{key}", value)(source)
    alarm = replace(stack, source=source).resources(ALARM)[name]

    assert not all(rings(alarm, points) for n, _, points in cases(stack) if n == name)
