"""The table that a campaign ends with."""

import statistics
from collections import Counter
from collections.abc import Iterator

from tests.prove import engine
from tests.prove.faults import AT_POINTS, CLOCK_OFF, DELIVERED_AGAIN, TIMED_OUT, TOO_SLOW, WORKER
from tests.prove.points import CALLS
from tests.prove.promises import PROMISES, overlaps, window
from tests.prove.story import Story

_TRACES = 5
"""Jobs whose broken promise is followed by all that happened to them."""

_DEALT = "every fault that was dealt twice has struck"
"""Once may be too little: whether an owner cancels in time depends on the machine."""


class Report:
    """What came of a campaign.

    Args:
        stories: Of all its jobs.
        odd: What the witness could not put down to a job.
    """

    def __init__(self, stories: list[Story], odd: list[str]) -> None:
        self._stories = stories
        self._struck = Counter(
            (f.function, f.name, f.what) for story in stories for f in story.faults
        )
        self.broken: dict[str, list[str]] = {}
        """What broke each promise, in words."""
        hurt = dict[int, Story]()
        for promise, broken_by in PROMISES.items():
            found = [(story, problem) for story in stories for problem in broken_by(story)]
            hurt |= {story.number: story for story, _ in found}
            self.broken[promise] = [_where(story) + problem for story, problem in found]
        self.broken["every AWS call is named in points.py"] += odd
        dealt = Counter((f.function, f.call, f.what) for s in stories for f in s.card.faults)
        self.broken[_DEALT] = [
            " ".join(kind)
            for kind, times in sorted(dealt.items())
            if times > 1 and kind not in self._struck
        ]
        self._hurt = list(hurt.values())
        self.faults = sum(self._struck.values())
        self.survived = sum(len(s.faults) for s in stories if s.number not in hurt)

    @property
    def violations(self) -> int:
        """How often a promise was broken."""
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
        ends = Counter(s.status if s.job_id else "never accepted" for s in self._stories)
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
        for story in self._hurt[:_TRACES]:
            yield from ("", f"What happened to job {story.number}:", *_trace(story))

    def _points(self) -> Iterator[str]:
        yield f"{'struck at':26}" + "".join(f"{what:>14}" for what in AT_POINTS)
        for function, calls in CALLS.items():
            yield function
            for call in (*calls, *(["work"] if function == WORKER else [])):
                counts = [self._struck[function, call, what] for what in AT_POINTS]
                yield f"  {call:24}" + "".join(f"{count or '-':>14}" for count in counts)

    def _numbers(self) -> Iterator[str]:
        effects = sum(len(window(story)[0]) for story in self._stories)
        announcements = sum(len(window(story)[1]) for story in self._stories)
        fenced = sum(any(overlaps(story)) for story in self._stories)
        yield "Repeated, as a fault tore them from their record (Powertools documents that gap):"
        yield f"{effects} side effects and {announcements} announcements."
        yield f"Jobs whose attempts overlapped, as clocks were a minute apart: {fenced}."
        times = sorted(t for story in self._stories for t in story.recoveries())
        if len(times) > 1:
            median, p99 = statistics.median(times), statistics.quantiles(times, n=100)[-1]
            yield f"From a killed delivery to a terminal status ({len(times)} times):"
            yield f"median {median:.1f} s, p99 {p99:.1f} s; {engine.WAITS}."


def _where(story: Story) -> str:
    return f"job {story.number} ({story.card.title}): "


def _trace(story: Story) -> Iterator[str]:
    """Tell a story line by line, with seconds since its beginning."""
    yield f"  {story.card}"
    for line in story.lines:
        told = (line.kind, line.name, line.what[:80], f"attempt {line.attempt or '-'}")
        invocation = f"{line.function:18} {line.invocation[:8]:8}"
        yield f"  {line.t - story.lines[0].t:7.2f}  {invocation}  {' | '.join(told)}"
