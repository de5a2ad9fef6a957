"""The table that a campaign ends with."""

import statistics
from collections import Counter
from collections.abc import Iterator

from tests.tools.prove.engine import Engine
from tests.tools.prove.faults import (
    AT_POINTS,
    CLOCK_OFF,
    DELIVERED_AGAIN,
    TIMED_OUT,
    TOO_SLOW,
    WORKER,
)
from tests.tools.prove.observed_job import ObservedJob
from tests.tools.prove.promises import PROMISES, overlaps, window

_TRACES = 5
"""How many jobs with a broken promise are shown entry by entry."""

_PLANNED = "every fault that was planned twice has struck"
"""Once may be too little: whether a client cancels in time depends on the machine."""


class Report:
    """The result of a campaign.

    Args:
        engine: Of the project.
        jobs: All of the campaign's jobs.
        unnamed: Calls that points.py does not name and that belong to no job.
    """

    def __init__(self, engine: Engine, jobs: list[ObservedJob], unnamed: list[str]) -> None:
        self._engine = engine
        self._jobs = jobs
        self._struck = Counter((f.function, f.name, f.what) for job in jobs for f in job.faults)
        self.broken: dict[str, list[str]] = {}
        """A sentence for each violation, by promise."""
        hurt = dict[int, ObservedJob]()
        for promise, broken_by in PROMISES.items():
            found = [(job, problem) for job in jobs for problem in broken_by(job)]
            hurt |= {job.number: job for job, _ in found}
            self.broken[promise] = [_where(job) + problem for job, problem in found]
        self.broken["every AWS call is named in points.py"] += unnamed
        planned = Counter((f.function, f.call, f.what) for job in jobs for f in job.case.faults)
        self.broken[_PLANNED] = [
            " ".join(kind)
            for kind, times in sorted(planned.items())
            if times > 1 and kind not in self._struck
        ]
        self._hurt = list(hurt.values())
        self.faults = sum(self._struck.values())
        self.survived = sum(len(job.faults) for job in jobs if job.number not in hurt)

    @property
    def violations(self) -> int:
        """How often promises were broken."""
        return sum(map(len, self.broken.values()))

    def lines(self) -> Iterator[str]:
        """Yield the report, line by line."""
        yield from self._points()
        yield ""
        for what in (TIMED_OUT, TOO_SLOW, DELIVERED_AGAIN, CLOCK_OFF):
            yield f"{what:48}{sum(n for key, n in self._struck.items() if key[2] == what):6}"
        yield ""
        yield f"{'faults injected':48}{self.faults:6}"
        yield f"{'faults survived':48}{self.survived:6}"
        yield ""
        others = sum(entry.kind == "other" for job in self._jobs for entry in job.entries)
        yield f"{'AWS calls to other resources, left alone':48}{others:6}"
        yield ""
        ends = Counter(job.status if job.job_id else "never accepted" for job in self._jobs)
        for end, count in sorted(ends.items()):
            yield f"{'jobs ' + end:48}{count:6}"
        yield ""
        yield f"{'promise':48}violations"
        for promise, problems in self.broken.items():
            yield f"{promise:48}{len(problems):6}"
        yield ""
        yield from self._numbers()
        for promise, problems in self.broken.items():
            if problems:
                yield from ("", f"BROKEN: {promise}", *problems)
        for job in self._hurt[:_TRACES]:
            yield from ("", f"What happened to job {job.number}:", *_trace(job))

    def _points(self) -> Iterator[str]:
        yield f"{'struck at':26}" + "".join(f"{what:>14}" for what in AT_POINTS)
        for function, calls in self._engine.calls.items():
            yield function
            for call in (*calls, *(["work"] if function == WORKER else [])):
                counts = [self._struck[function, call, what] for what in AT_POINTS]
                yield f"  {call:24}" + "".join(f"{count or '-':>14}" for count in counts)

    def _numbers(self) -> Iterator[str]:
        effects = sum(len(window(job)[0]) for job in self._jobs)
        announcements = sum(len(window(job)[1]) for job in self._jobs)
        fenced = sum(any(overlaps(job)) for job in self._jobs)
        yield "Repeated since a fault struck before their record (Powertools documents this gap):"
        yield f"{effects} side effects and {announcements} announcements."
        yield f"Jobs whose attempts overlapped since clocks were a minute apart: {fenced}."
        times = sorted(t for job in self._jobs for t in job.recoveries())
        if len(times) > 1:
            median, p99 = statistics.median(times), statistics.quantiles(times, n=100)[-1]
            yield f"From a killed delivery to a terminal status ({len(times)} times):"
            yield f"median {median:.1f} s, p99 {p99:.1f} s; {self._engine.waits}."


def _where(job: ObservedJob) -> str:
    return f"job {job.number} ({job.case.title}): "


def _trace(job: ObservedJob) -> Iterator[str]:
    """Yield a job's entries, with seconds since the first."""
    yield f"  {job.case}"
    for entry in job.entries:
        told = (entry.kind, entry.name, entry.what[:80], f"attempt {entry.attempt or '-'}")
        invocation = f"{entry.function:18} {entry.invocation[:8]:8}"
        yield f"  {entry.t - job.entries[0].t:7.2f}  {invocation}  {' | '.join(told)}"
