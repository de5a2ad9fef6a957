"""The vocabulary of the campaign: calls, faults, scenarios and cards."""

from dataclasses import dataclass

API, WORKER, DEAD_LETTERS = "ApiFunction", "WorkerFunction", "DeadLetterFunction"

KILLED_BEFORE = "killed before"
KILLED_AFTER = "killed after"
KILLS = (KILLED_BEFORE, KILLED_AFTER)
THROTTLED = "throttled"
"""The service refuses, and does nothing."""
LOST = "answer lost"
"""The service does what it is asked; the answer never arrives, and the function may ask again."""
REFUSED = "refused"
"""The condition of a write does not hold, as when somebody else was faster."""

DENIED = "denied"
"""The service refuses, and will refuse again."""

AT_POINTS = (*KILLS, THROTTLED, LOST, REFUSED)

TIMED_OUT = "timed out"
TOO_SLOW = "timed out, as this machine is busy"
DELIVERED_AGAIN = "delivered again"
CLOCK_OFF = "clock a minute off"

TRIES = 3
"""How often the functions' AWS clients send a request (`total_max_attempts` in src)."""


@dataclass(frozen=True)
class Fault:
    """Strikes the first `times` requests of a card's job that come to a point.

    `call` is a name in `points.py`, or "work": the user's code, to be killed or never to end.
    """

    function: str
    call: str
    what: str
    times: int = 1


@dataclass(frozen=True)
class Call:
    """An AWS call of a function: the request as `sandbox.py` writes it, and how to get there.

    `scenario` is one of `deck.SCENARIOS`; `after` are the faults without which the function has no
    reason to make the call. Without a scenario, the campaign does not get there.
    """

    request: str
    scenario: str = "completes"
    after: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """What a job's work does, what its owner does, and how it may end.

    `payload` is for the campaign's work.py. `cue` is the kind and name of the line at which
    the owner makes a request: the `action` "cancel" or "retry".
    """

    payload: dict[str, object]
    ends: frozenset[str]
    reason: str = ""
    """What the error of a failed job says, type or message."""
    cue: tuple[str, str] = ("", "")
    action: str = ""


@dataclass(frozen=True)
class Card:
    """What one job has to bear.

    Args:
        title: The row of the report that counts it.
        scenario: One of `deck.SCENARIOS`.
        faults: What strikes it.
        clocks: Seconds by which the clocks of the sandboxes that see the job are off, in turn.
        copies: The call after which all the job's messages are sent again, newest first.
        patient: Whether the owner sends a request again that was not answered.
    """

    title: str
    scenario: str
    faults: tuple[Fault, ...] = ()
    clocks: tuple[int, ...] = ()
    copies: str = ""
    patient: bool = True
