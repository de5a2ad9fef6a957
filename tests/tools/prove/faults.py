"""The vocabulary of the campaign: calls, faults, scenarios and fault cases."""

from dataclasses import dataclass

API, WORKER, DEAD_LETTERS = "ApiFunction", "WorkerFunction", "DeadLetterFunction"

KILLED_BEFORE = "killed before"
KILLED_AFTER = "killed after"
KILLS = (KILLED_BEFORE, KILLED_AFTER)
THROTTLED = "throttled"
"""The service rejects the request and does nothing."""
LOST = "answer lost"
"""The service carries out the request; its answer never arrives, so the client may repeat it."""
REFUSED = "refused"
"""The condition of a write does not hold, as when another writer was faster."""
DENIED = "denied"
"""The service rejects the request, and would reject a repeated one."""

AT_POINTS = (*KILLS, THROTTLED, LOST, REFUSED)

BROKEN = "not importable"
"""The function's own module cannot be imported."""

TIMED_OUT = "timed out"
TOO_SLOW = "timed out, since this machine is busy"
DELIVERED_AGAIN = "delivered again"
CLOCK_OFF = "clock a minute off"

TRIES = 3
"""How often the functions' AWS clients send a request (`total_max_attempts` in src/)."""


@dataclass(frozen=True)
class Fault:
    """Strikes the first `times` requests of a job at a point.

    `call` is a name in `points.py`, or one of these:

    - "work": the campaign's work.py is killed in its step, or never ends.
    - "run": it is killed outside of steps.
    - "import", "import again": the first, or a later, invocation cannot import the worker.
    """

    function: str
    call: str
    what: str
    times: int = 1


@dataclass(frozen=True)
class Call:
    """An AWS call of a function.

    Args:
        request: What it is for, as `fault_injector.py` describes a request.
        scenario: The scenario that leads to it; empty for a call that no campaign reaches.
        after: Faults without which the function has no reason to make the call.
    """

    request: str
    scenario: str = "completes"
    after: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """What a job's work does, what its client does, and how the job may end.

    `payload` is for the campaign's work.py. `cue` is the kind and name of the log entry at which
    the client makes a request: the `action` "cancel", "retry" or "callback".
    """

    payload: dict[str, object]
    ends: frozenset[str]
    reason: str = ""
    """What the type or message of a failed job's error contains."""
    cue: tuple[str, str] = ("", "")
    action: str = ""


@dataclass(frozen=True)
class FaultCase:
    """The faults of one job.

    Args:
        title: The row of the report that counts it.
        scenario: A name in `fault_plan.scenarios`.
        faults: What strikes it.
        clocks: Seconds by which the clocks of the sandboxes that run the job are off, in turn.
        copies: The call after which all of the job's messages are delivered again, newest first.
        repeats: Whether the client repeats a request that was not answered.
    """

    title: str
    scenario: str
    faults: tuple[Fault, ...] = ()
    clocks: tuple[int, ...] = ()
    copies: str = ""
    repeats: bool = True
