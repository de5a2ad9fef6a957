"""Which fault hits which job: every fault case once, in an order given by a seed."""

import random
from collections.abc import Iterator

from tests.tools.prove.engine import Engine
from tests.tools.prove.faults import (
    DEAD_LETTERS,
    KILLED_AFTER,
    KILLED_BEFORE,
    LOST,
    REFUSED,
    THROTTLED,
    TIMED_OUT,
    TRIES,
    WORKER,
    Fault,
    FaultCase,
    Scenario,
)

_COMPLETED, _FAILED = frozenset({"completed"}), frozenset({"failed"})
_CANCELLED = frozenset({"cancelled", "completed"})  # the work may end before it is cancelled

_SCENARIOS = {
    "completes": Scenario({}, _COMPLETED),
    "takes longer": Scenario({"steps": 14}, _COMPLETED),
    "takes long": Scenario({"steps": 30}, _COMPLETED),
    "works in silence": Scenario({"steps": 30, "quiet": True}, _COMPLETED),
    "fails once": Scenario({"fails": "once"}, _COMPLETED),
    "fails in an effect": Scenario({"fails": "in an effect"}, _COMPLETED),
    "fails always": Scenario({"fails": "always"}, _FAILED, "the bank does not answer"),
    "fails for good": Scenario({"fails": "for good"}, _FAILED, "no such card"),
    "is retried": Scenario(
        {"fails": "for good, once"}, _COMPLETED, cue=("call", "fail"), action="retry"
    ),
    "is cancelled": Scenario({"steps": 40}, _CANCELLED, cue=("call", "claim"), action="cancel"),
    "is cancelled in the queue": Scenario({}, _CANCELLED, cue=("fault", "claim"), action="cancel"),
    "is cancelled, fails": Scenario(
        {"steps": 20, "fails": "always", "deaf": True},
        frozenset({"cancelled", "failed"}),
        "the bank does not answer",
        cue=("call", "claim"),
        action="cancel",
    ),
}

_OFTEN = 100


def scenarios(engine: Engine) -> dict[str, Scenario]:
    """Return every scenario by its name."""
    never_done = Scenario({}, _FAILED, engine.given_up)
    return {**_SCENARIOS, "is never done": never_done, **engine.scenarios}


def every_case(engine: Engine) -> list[FaultCase]:
    """Return each fault at each point, and the cases that no AWS call stands for."""
    return [*_at_points(engine), *_elsewhere(), *engine.cases]


def assign(engine: Engine, jobs: int, seed: int) -> list[FaultCase]:
    """Return a fault case for each job: all of them, shuffled, as often as it takes."""
    random_order, assigned = random.Random(seed), list[FaultCase]()
    while len(assigned) < jobs:
        cases = every_case(engine)
        random_order.shuffle(cases)
        assigned += cases
    return assigned[:jobs]


def _at_points(engine: Engine) -> Iterator[FaultCase]:
    for function, calls in engine.calls.items():
        for name, call in calls.items():
            if not call.scenario:
                continue
            strikes = [(KILLED_BEFORE, 1), (KILLED_AFTER, 1)]
            strikes += [(what, times) for what in (THROTTLED, LOST) for times in (1, TRIES)]
            conditional = call.request.startswith(("UpdateItem JobsTable", "DeleteItem JobsTable"))
            if conditional and function in engine.rivals:
                strikes.append((REFUSED, 1))
            for what, times in strikes:
                fault = Fault(function, name, what, times)
                yield FaultCase(f"{function} {name}", call.scenario, (*call.after, fault))


def _elsewhere() -> Iterator[FaultCase]:
    yield FaultCase("no fault", "completes")
    for what in (KILLED_BEFORE, TIMED_OUT):
        yield FaultCase(f"{what}, at work", "completes", (Fault(WORKER, "work", what),))
        fault = Fault(WORKER, "work", what, _OFTEN)
        yield FaultCase(f"{what}, whenever at work", "is never done", (fault,))
    yield FaultCase("cancelled, and then failed", "is cancelled, fails")
    yield FaultCase(
        "the dead-letter function fails again and again",
        "fails always",
        tuple(Fault(DEAD_LETTERS, call, KILLED_BEFORE, 2) for call in ("look", "give up")),
    )
