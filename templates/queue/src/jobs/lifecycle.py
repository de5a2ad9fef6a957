"""The life of a job: its statuses, and the transitions between them."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
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


CLAIM = Transition((Status.QUEUED, Status.RUNNING), Status.RUNNING)
"""An attempt starts. From `running`, only after the lease of the attempt before has ended."""
RELEASE = Transition((Status.RUNNING,), Status.QUEUED)
"""The attempt failed, and another one will follow."""
COMPLETE = Transition((Status.RUNNING,), Status.COMPLETED)
FAIL = Transition((Status.RUNNING,), Status.FAILED)
"""The attempt failed, and no other one can help."""
CANCEL = Transition((Status.QUEUED,), Status.CANCELLED)
"""The owner cancels the job before or between attempts."""
STOP = Transition((Status.RUNNING,), Status.CANCELLED)
"""The attempt ends because the owner asked for it."""
GIVE_UP = Transition((Status.QUEUED, Status.RUNNING), Status.FAILED)
"""The queue does not deliver the job any more."""
DROP = Transition(GIVE_UP.sources, Status.CANCELLED)
"""The same, for a job whose owner has asked to cancel it."""
RETRY = Transition((Status.FAILED, Status.CANCELLED), Status.QUEUED)
"""The owner asks for another go. Nothing else leaves a terminal status."""
