"""The life of a job: its statuses, and the transitions between them."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether only an explicit retry can follow."""
        return self in TERMINAL


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


class Transition(NamedTuple):
    """A change of status: where it may start, and where it ends."""

    sources: tuple[Status, ...]
    target: Status


CLAIM = Transition((Status.QUEUED,), Status.RUNNING)
"""An attempt starts."""
RELEASE = Transition((Status.RUNNING,), Status.QUEUED)
"""The attempt failed, and another one will follow."""
COMPLETE = Transition((Status.RUNNING,), Status.COMPLETED)
FAIL = Transition((Status.RUNNING,), Status.FAILED)
"""The attempt failed, and no other one can help."""
CANCEL = Transition((Status.QUEUED,), Status.CANCELLED)
"""The owner cancels the job before or between attempts."""
WAIT = Transition((Status.RUNNING,), Status.WAITING)
"""The attempt waits for time to pass or for an answer. No function runs meanwhile."""
RESUME = Transition((Status.WAITING,), Status.RUNNING)
STOP = Transition((Status.RUNNING, Status.WAITING), Status.CANCELLED)
"""The owner cancels the job during an attempt."""
GIVE_UP = Transition((Status.QUEUED, Status.RUNNING, Status.WAITING), Status.FAILED)
"""The execution has ended, and the job has not."""
DROP = Transition(GIVE_UP.sources, Status.CANCELLED)
"""The same, for a job whose owner has asked to cancel it."""
RETRY = Transition((Status.FAILED, Status.CANCELLED), Status.QUEUED)
"""The owner asks for another go. Nothing else leaves a terminal status."""
