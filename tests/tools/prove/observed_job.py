"""One job as the campaign saw it: what was planned, what happened, and what is stored."""

from dataclasses import dataclass, field
from typing import Any

from tests.tools.prove.effect_log import Entry
from tests.tools.prove.faults import API, KILLS, TOO_SLOW, FaultCase, Scenario

TERMINAL = frozenset({"completed", "failed", "cancelled"})


@dataclass
class ObservedJob:
    """One job, as `promises.py` judges it."""

    number: int
    case: FaultCase
    scenario: Scenario
    job_id: str = ""
    """Empty until the client gets a 202."""
    entries: list[Entry] = field(default_factory=list)
    """What the effect log holds about it, in order."""
    retries: int = 0
    """How often the client asked for a retry."""
    seen: list[dict[str, Any]] = field(default_factory=list)
    """The job, each time that the client saw it terminal."""
    item: dict[str, Any] | None = None
    """The job as it is stored at the end."""
    announced: list[str] = field(default_factory=list)
    """`finished_at` in each message from the topic."""
    dead_letters: int = 0
    """How many of its messages are left in the dead-letter queue."""

    @property
    def status(self) -> str:
        """The job's status at the end, or why it has none."""
        return str(self.item["status"]) if self.item else "lost"

    @property
    def slow(self) -> bool:
        """Whether an attempt timed out since this machine was busy; its job may fail for that."""
        return any(fault.what == TOO_SLOW for fault in self.faults)

    @property
    def faults(self) -> list[Entry]:
        """The faults that struck it."""
        return [entry for entry in self.entries if entry.kind == "fault"]

    def recoveries(self) -> list[float]:
        """Return the seconds from each killed delivery to the job's next terminal status."""
        found, killed = [], list[float]()
        for entry in self.entries:
            if entry.kind == "fault" and entry.what in KILLS and entry.function != API:
                killed.append(entry.t)
            elif entry.ends_job:
                found += [entry.t - t for t in killed]
                killed.clear()
        return found
