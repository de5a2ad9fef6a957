"""Which fault hits which job: a deck of cards, shuffled by a seed and dealt."""

import random
from collections.abc import Iterator

from tests.prove.engine import CARDS
from tests.prove.faults import (
    DEAD_LETTERS,
    KILLED_AFTER,
    KILLED_BEFORE,
    LOST,
    REFUSED,
    THROTTLED,
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
    "times out once": Scenario({"fails": "by timeout, once"}, _COMPLETED),
    "times out always": Scenario({"fails": "by timeout"}, _FAILED, "AttemptLost"),
    "is killed always": Scenario({}, _FAILED, "AttemptLost"),
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


def deck() -> list[Card]:
    """Return every card once: each fault at each point, and what comes from elsewhere."""
    return [*_at_points(), *_elsewhere(), *CARDS]


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
            strikes = [(KILLED_BEFORE, 1), (KILLED_AFTER, 1)]
            strikes += [(what, times) for what in (THROTTLED, LOST) for times in (1, TRIES)]
            if call.request.startswith(("UpdateItem JobsTable", "DeleteItem JobsTable")):
                strikes.append((REFUSED, 1))
            for what, times in strikes:
                fault = Fault(function, name, what, times)
                yield Card(f"{function} {name}", call.scenario, (*call.after, fault))


def _elsewhere() -> Iterator[Card]:
    yield Card("no fault", "completes")
    yield Card("killed at work", "completes", (Fault(WORKER, "work", KILLED_BEFORE),))
    yield Card(
        "killed at every attempt",
        "is killed always",
        (Fault(WORKER, "work", KILLED_BEFORE, _OFTEN),),
    )
    yield Card("timed out", "times out once")
    yield Card("timed out at every attempt", "times out always")
    yield Card("cancelled, and then failed", "is cancelled, fails")
    for call, what in (
        ("claim", KILLED_AFTER),
        ("work", KILLED_BEFORE),
        ("once begins", KILLED_AFTER),
        ("once ends", KILLED_BEFORE),
        ("complete", KILLED_BEFORE),
    ):
        for clocks in ((60, 0), (-60, 0), (0, 60)):
            yield Card(
                "killed, clocks a minute apart",
                "completes",
                (Fault(WORKER, call, what),),
                clocks,
            )
    for ahead in ((60,), (-60,), (60, 0), (0, 60)):
        yield Card("given up, clocks a minute apart", "fails always", clocks=ahead)
    yield Card(
        "the dead-letter function fails again and again",
        "fails always",
        tuple(Fault(DEAD_LETTERS, call, KILLED_BEFORE, 2) for call in ("look", "give up")),
    )
