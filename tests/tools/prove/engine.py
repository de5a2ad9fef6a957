"""What a campaign must know of an engine. Each engine has a folder beside this file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tests.tools.prove.faults import Call, FaultCase, Scenario

if TYPE_CHECKING:  # in a sandbox, `local` is not there to import
    from local.stack import Stack

ENGINES = ("queue", "durable")

KIT_RESOURCES = (
    "JobsTable",
    "IdempotencyTable",
    "JobsQueue",
    "DeadLetterQueue",
    "JobEventsTopic",
    "WorkerFunction",
)
"""Logical ids of the kit's own resources. Requests to others pass without faults."""

Calls = Mapping[str, Mapping[str, Call]]
"""By function and name: every AWS call that the functions make."""


@dataclass(frozen=True)
class Engine:
    """One engine.

    Args:
        name: Its folder, and the answer to the question `worker`.
        calls: Every AWS call of its functions.
        parameters: Template parameters for a campaign.
        visibility_seconds: Of queues, by logical id: short, so that a campaign takes minutes.
        waits: For the report: how long a killed delivery waits for the next one.
        given_up: The error of a job whose attempts all ended without reporting one.
        rivals: Functions whose conditional writes may be refused, since others write to the job.
        scenarios: In addition to those of `fault_plan.py`.
        cases: In addition to those of `fault_plan.py`.
        deliver_again: Delivers a job's messages once more.
        busy: Tells whether any delivery may still come.
        send_floor: Sends the AWS calls that a number of jobs cost, by so many callers.
    """

    name: str
    calls: Calls
    parameters: Mapping[str, str]
    visibility_seconds: Mapping[str, int]
    waits: str
    given_up: str
    rivals: frozenset[str]
    scenarios: Mapping[str, Scenario]
    cases: tuple[FaultCase, ...]
    deliver_again: Callable[["Stack", list[str]], None]
    busy: Callable[["Stack"], bool]
    send_floor: Callable[["Stack", int, int], None]


def load_engine(name: str) -> Engine:
    """Return an engine by its name."""
    engine: Engine = import_module(f"{__package__}.{name}.engine").ENGINE
    return engine


def load_calls(name: str) -> Calls:
    """Return an engine's AWS calls without what runs them: a sandbox needs no more."""
    calls: Calls = import_module(f"{__package__}.{name}.points").CALLS
    return calls
