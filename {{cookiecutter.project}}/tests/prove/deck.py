"""Which fault hits which job: a deck of cards, shuffled by a seed and dealt."""

import random
from collections.abc import Iterator

from tests.prove import engine
from tests.prove.faults import (
    DEAD_LETTERS,
    KILLED_AFTER,
    KILLED_BEFORE,
    LOST,
    REFUSED,
    THROTTLED,
    TIMED_OUT,
    TRIES,
    WORKER,
    Card,
    Fault,
    Scenario,
)
from tests.prove.points import CALLS

_COMPLETED, _FAILED = frozenset({"completed"}), frozenset({"failed"})
_CANCELLED = frozenset({"cancelled", "completed"})  # the work may be done before it is told

SCENARIOS = {
    "completes": Scenario({}, _COMPLETED),
    "takes longer": Scenario({"steps": 14}, _COMPLETED),
    "takes long": Scenario({"steps": 30}, _COMPLETED),
    "works in silence": Scenario({"steps": 30, "quiet": True}, _COMPLETED),
    "fails once": Scenario({"fails": "once"}, _COMPLETED),
    "fails in an effect": Scenario({"fails": "in an effect"}, _COMPLETED),
    "fails always": Scenario({"fails": "always"}, _FAILED, "the bank does not answer"),
    "fails for good": Scenario({"fails": "for good"}, _FAILED, "no such card"),
    "is never done": Scenario({}, _FAILED, engine.GIVEN_UP),
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
    **engine.SCENARIOS,
}

_OFTEN = 100


def deck() -> list[Card]:
    """Return every card once: each fault at each point, and what comes from elsewhere."""
    return [*_at_points(), *_elsewhere(), *engine.CARDS]


def deal(jobs: int, seed: int) -> list[Card]:
    """Return a card for each job: the shuffled deck, as often as it takes."""
    chance, dealt = random.Random(seed), list[Card]()
    while len(dealt) < jobs:
        cards = deck()
        chance.shuffle(cards)
        dealt += cards
    return dealt[:jobs]


def _at_points() -> Iterator[Card]:
    for function, calls in CALLS.items():
        for name, call in calls.items():
            if not call.scenario:
                continue
            strikes = [(KILLED_BEFORE, 1), (KILLED_AFTER, 1)]
            strikes += [(what, times) for what in (THROTTLED, LOST) for times in (1, TRIES)]
            conditional = call.request.startswith(("UpdateItem JobsTable", "DeleteItem JobsTable"))
            if conditional and function in engine.RIVALS:
                strikes.append((REFUSED, 1))
            for what, times in strikes:
                fault = Fault(function, name, what, times)
                yield Card(f"{function} {name}", call.scenario, (*call.after, fault))


def _elsewhere() -> Iterator[Card]:
    yield Card("no fault", "completes")
    for what in (KILLED_BEFORE, TIMED_OUT):
        yield Card(f"{what}, at work", "completes", (Fault(WORKER, "work", what),))
        fault = Fault(WORKER, "work", what, _OFTEN)
        yield Card(f"{what}, whenever at work", "is never done", (fault,))
    yield Card("cancelled, and then failed", "is cancelled, fails")
    yield Card(
        "the dead-letter function fails again and again",
        "fails always",
        tuple(Fault(DEAD_LETTERS, call, KILLED_BEFORE, 2) for call in ("look", "give up")),
    )
