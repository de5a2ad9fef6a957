"""The promises, held against the story of each job.

Each function yields what breaks its promise, in words; `PROMISES` names them all.
"""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.prove.deck import SCENARIOS
from tests.prove.faults import TOO_SLOW
from tests.prove.story import TERMINAL, Story
from tests.prove.witness import Line

Promise = Callable[[Story], Iterator[str]]


def kept(story: Story) -> Iterator[str]:
    """An accepted job is stored."""
    if story.job_id and story.item is None:
        yield "was accepted, and is not stored"


def terminal(story: Story) -> Iterator[str]:
    """An accepted job is terminal at the end."""
    if story.item and story.status not in TERMINAL:
        yield f"is still {story.status}"


def rightly_ended(story: Story) -> Iterator[str]:
    """A job ends as its work does: no fault that leaves attempts makes it fail."""
    ends = SCENARIOS[story.card.scenario].ends | ({"failed"} if story.slow else set())
    if story.card.patient and not story.job_id:
        yield "was sent again and again, and never accepted"
    if story.status in TERMINAL - ends:
        yield f"is {story.status}, not {' or '.join(sorted(ends))}"


def completed_once(story: Story) -> Iterator[str]:
    """A completed job is never run again."""
    completed = False
    for line in story.lines:
        completed |= line.accepted and line.name == "complete"
        if completed and line.kind == "run":
            yield f"was completed, and attempt {line.attempt} ran"
            return


def effects_once(story: Story) -> Iterator[str]:
    """A side effect under `once` is not done again once its record is written."""
    yield from _effects(story)[0]


def unchanged(story: Story) -> Iterator[str]:
    """A terminal status does not change, but by a retry that the owner asked for."""
    statuses = [entry["status"] for entry in story.item["history"]] if story.item else []
    left = [(now, then) for now, then in pairwise(statuses) if now in TERMINAL]
    for now, then in left:
        if now == "completed" or then != "queued":
            yield f"was {now}, and then {then}"
    if len(left) > story.retries:
        yield f"left a terminal status {len(left)} times, for {story.retries} retries"
    for before, after in pairwise(story.seen):
        if before != after and not story.retries:
            yield f"was seen as {before}, and then as {after}"


def one_attempt(story: Story) -> Iterator[str]:
    """No attempt works once the next one has begun, unless their clocks differ by too much."""
    if not story.card.clocks:
        yield from overlaps(story)


def latest_counts(story: Story) -> Iterator[str]:
    """What is recorded at the end is the last attempt's: those before it are fenced off."""
    if story.item is None:
        return
    last = int(story.item["attempts"])
    if story.status == "completed":
        by = json.loads(story.item["result"])["attempt"]
        if by != last:
            yield f"has the result of attempt {by}, and the last one was {last}"
    elif story.item.get("error", {}).get("type") == "PermanentError":
        message = story.item["error"]["message"]
        if not message.startswith(f"attempt {last}:"):
            yield f"tells {message!r}, and the last attempt was {last}"


def reason_told(story: Story) -> Iterator[str]:
    """A failed job says why."""
    if story.item and story.status == "failed":
        error = story.item.get("error", {})
        reason = "" if story.slow else SCENARIOS[story.card.scenario].reason
        if reason not in f"{error.get('type', '')}: {error.get('message', '')}" or not error:
            yield f"failed for {reason!r}, and tells {error}"


def announced_once(story: Story) -> Iterator[str]:
    """The end is announced, and not again once that is recorded."""
    end = story.item.get("finished_at") if story.item else None
    if end and end not in story.announced:
        yield "its end was not announced"
    yield from _announcements(story)[0]


def settled(story: Story) -> Iterator[str]:
    """The dead-letter queue holds nothing about a job that its owner was told of."""
    if story.job_id and story.dead_letters:
        yield f"has {story.dead_letters} messages in the dead-letter queue"


def foreseen(story: Story) -> Iterator[str]:
    """The functions make the AWS calls that points.py names, and no others."""
    for line in story.lines:
        if line.kind == "odd":
            yield f"{line.function} {line.name}"


PROMISES: dict[str, Promise] = {
    "no accepted job is lost": kept,
    "every job is terminal": terminal,
    "every job ends as its work does": rightly_ended,
    "no completed job is run again": completed_once,
    "no side effect under once is done twice": effects_once,
    "no terminal status changes": unchanged,
    "one attempt at a time": one_attempt,
    "only the last attempt is recorded": latest_counts,
    "every failed job tells the reason": reason_told,
    "every end is announced once": announced_once,
    "nothing unsettled leaves, nothing settled stays": settled,
    "every AWS call is named in points.py": foreseen,
}


def overlaps(story: Story) -> Iterator[str]:
    """Yield what an invocation did after another one had begun the work."""
    at_work = ""
    for line in story.lines:
        if line.kind == "run":
            at_work = line.invocation
        elif line.kind in ("step", "effect", "ran") and line.invocation != at_work:
            yield f"attempt {line.attempt} was at work after another one had begun"


def window(story: Story) -> tuple[list[str], list[str]]:
    """Return the side effects and the announcements that were repeated, and may have been.

    An attempt that is torn between an effect and its record cannot tell that the effect was done,
    and neither can anybody else: the one gap that Powertools documents for its idempotency.
    """
    return _effects(story)[1], _announcements(story)[1]


def _effects(story: Story) -> tuple[list[str], list[str]]:
    def effect(line: Line) -> str:
        return line.name if line.kind == "effect" else ""

    return _repeats(story, effect, "once ends")


def _announcements(story: Story) -> tuple[list[str], list[str]]:
    def announcement(line: Line) -> str:
        if (line.kind, line.name) != ("sent", "announce"):
            return ""
        return f"announcement of {json.loads(line.what).get('finished_at')}"

    return _repeats(story, announcement, "announcement ends", "announce")


def _repeats(
    story: Story, deed: Callable[[Line], str], record: str, *itself: str
) -> tuple[list[str], list[str]]:
    """Return the deeds that were repeated wrongly, and those that were torn from their record.

    A deed is torn when a fault strikes between it and its record, or when clocks that are off let
    another attempt take the one that is doing it for dead.
    """
    recorded, torn = set[str](), set[str]()
    done: dict[str, str] = {}  # by which invocation
    latest: dict[str, str] = {}  # deed, by invocation
    too_slow = {line.invocation for line in story.lines if line.what == TOO_SLOW}
    wrong, excused = [], []
    for line in story.lines:
        if name := deed(line):
            excuse = name in torn or done.get(name) in too_slow or story.card.clocks
            if name in recorded or (name in done and not excuse):
                wrong.append(f"{name}: done again")
            elif name in done:
                excused.append(name)
            done[name] = line.invocation
            torn.discard(name)
            latest[line.invocation] = name
        elif line.invocation not in latest:
            continue
        elif line.kind == "fault" and line.name in (record, *itself):
            torn.add(latest[line.invocation])
        elif line.accepted and line.name == record:
            recorded.add(latest[line.invocation])
    return wrong, excused
