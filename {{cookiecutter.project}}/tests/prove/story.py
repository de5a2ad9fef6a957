"""The story of one job: what was planned, what happened, and what is left at the end."""

from dataclasses import dataclass, field
from typing import Any

from tests.prove.faults import API, KILLS, TOO_SLOW, Card
from tests.prove.points import CALLS
from tests.prove.witness import Line

TERMINAL = frozenset({"completed", "failed", "cancelled"})
ENDINGS = frozenset(
    (function, name)
    for function, calls in CALLS.items()
    for name, call in calls.items()
    if call.request.startswith("UpdateItem JobsTable") and call.request.split()[-1] in TERMINAL
)
"""The calls, by function and name, that make a job terminal."""


@dataclass
class Story:
    """One job, as it is judged by `promises.py`."""

    number: int
    card: Card
    job_id: str = ""
    """Empty as long as the owner was not told of the job."""
    lines: list[Line] = field(default_factory=list)
    """What the witness saw, in order."""
    retries: int = 0
    """How often the owner asked for a retry."""
    seen: list[dict[str, Any]] = field(default_factory=list)
    """The job each time that its owner saw it terminal."""
    item: dict[str, Any] | None = None
    """The job as it is stored at the end."""
    announced: list[str] = field(default_factory=list)
    """`finished_at` in each message that came from the topic."""
    dead_letters: int = 0
    """How many messages about it are left in the dead-letter queue."""

    @property
    def status(self) -> str:
        """The job's status at the end, or why it has none."""
        return str(self.item["status"]) if self.item else "lost"

    @property
    def slow(self) -> bool:
        """Whether the machine was too busy for it, so that it may have failed for that."""
        return any(fault.what == TOO_SLOW for fault in self.faults)

    @property
    def faults(self) -> list[Line]:
        """The faults that struck it."""
        return [line for line in self.lines if line.kind == "fault"]

    def recoveries(self) -> list[float]:
        """Return the seconds from each killed delivery to the job's next terminal status."""
        found, killed = [], list[float]()
        for line in self.lines:
            if line.kind == "fault" and line.what in KILLS and line.function != API:
                killed.append(line.t)
            elif line.accepted and (line.function, line.name) in ENDINGS:
                found += [line.t - t for t in killed]
                killed.clear()
        return found
