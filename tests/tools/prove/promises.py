"""The promises, checked against what was seen of each job.

Each function yields a sentence for each violation; `PROMISES` names them all.
"""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.tools.prove.effect_log import Entry
from tests.tools.prove.faults import TOO_SLOW
from tests.tools.prove.observed_job import TERMINAL, ObservedJob

Promise = Callable[[ObservedJob], Iterator[str]]


def kept(job: ObservedJob) -> Iterator[str]:
    """An accepted job is stored."""
    if job.job_id and job.item is None:
        yield "was accepted, and is not stored"


def terminal(job: ObservedJob) -> Iterator[str]:
    """An accepted job is terminal at the end."""
    if job.item and job.status not in TERMINAL:
        yield f"is still {job.status}"


def rightly_ended(job: ObservedJob) -> Iterator[str]:
    """A job ends as its work does: no fault that leaves attempts makes it fail."""
    ends = job.scenario.ends | ({"failed"} if job.slow else set())
    if job.case.repeats and not job.job_id:
        yield "was sent many times and never accepted"
    if job.status in TERMINAL - ends:
        yield f"is {job.status}, not {' or '.join(sorted(ends))}"


def completed_once(job: ObservedJob) -> Iterator[str]:
    """A completed job is never run again."""
    completed = False
    for entry in job.entries:
        completed |= entry.accepted and entry.name == "complete"
        if completed and entry.kind == "run":
            yield f"was completed, and attempt {entry.attempt} ran"
            return


def effects_once(job: ObservedJob) -> Iterator[str]:
    """A side effect under `once` is not repeated after its record is written."""
    yield from _effects(job)[0]


def unchanged(job: ObservedJob) -> Iterator[str]:
    """A terminal status changes only by a retry that the client asked for."""
    statuses = [entry["status"] for entry in job.item["history"]] if job.item else []
    left = [(now, then) for now, then in pairwise(statuses) if now in TERMINAL]
    for now, then in left:
        if now == "completed" or then != "queued":
            yield f"was {now}, and then {then}"
    if len(left) > job.retries:
        yield f"left a terminal status {len(left)} times, for {job.retries} retries"
    for before, after in pairwise(job.seen):
        if before != after and not job.retries:
            yield f"was seen as {before}, and then as {after}"


def one_attempt(job: ObservedJob) -> Iterator[str]:
    """No attempt works after the next one has begun, unless their clocks differ by too much."""
    if not job.case.clocks:
        yield from overlaps(job)


def latest_counts(job: ObservedJob) -> Iterator[str]:
    """The record at the end is the last attempt's: earlier attempts are fenced off."""
    if job.item is None:
        return
    last = int(job.item["attempts"])
    if job.status == "completed":
        by = json.loads(job.item["result"])["attempt"]
        if by != last:
            yield f"has the result of attempt {by}, and the last one was {last}"
    elif job.item.get("error", {}).get("type") == "PermanentError":
        message = job.item["error"]["message"]
        if not message.startswith(f"attempt {last}:"):
            yield f"tells {message!r}, and the last attempt was {last}"


def reason_told(job: ObservedJob) -> Iterator[str]:
    """A failed job says why."""
    if job.item and job.status == "failed":
        error = job.item.get("error", {})
        reason = "" if job.slow else job.scenario.reason
        if reason not in f"{error.get('type', '')}: {error.get('message', '')}" or not error:
            yield f"failed for {reason!r}, and tells {error}"


def announced_once(job: ObservedJob) -> Iterator[str]:
    """The end is announced, and not again after that is recorded."""
    end = job.item.get("finished_at") if job.item else None
    if end and end not in job.announced:
        yield "its end was not announced"
    yield from _announcements(job)[0]


def settled(job: ObservedJob) -> Iterator[str]:
    """The dead-letter queue holds no message of a job whose client got a 202."""
    if job.job_id and job.dead_letters:
        yield f"has {job.dead_letters} messages in the dead-letter queue"


def named(job: ObservedJob) -> Iterator[str]:
    """The functions make the AWS calls that points.py names, and no others."""
    for entry in job.entries:
        if entry.kind == "unnamed":
            yield f"{entry.function} {entry.name}"


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
    "every AWS call is named in points.py": named,
}


def overlaps(job: ObservedJob) -> Iterator[str]:
    """Yield a sentence for each thing an invocation did after another one had begun the work."""
    at_work = ""
    for entry in job.entries:
        if entry.kind == "run":
            at_work = entry.invocation
        elif entry.kind in ("step", "effect", "ran") and entry.invocation != at_work:
            yield f"attempt {entry.attempt} was at work after another one had begun"


def window(job: ObservedJob) -> tuple[list[str], list[str]]:
    """Return the side effects and the announcements whose repetition is allowed.

    When a fault strikes between an effect and its record, nothing tells the next attempt that the
    effect was done. Powertools documents this gap of its idempotency.
    """
    return _effects(job)[1], _announcements(job)[1]


def _effects(job: ObservedJob) -> tuple[list[str], list[str]]:
    def effect(entry: Entry) -> str:
        return entry.name if entry.kind == "effect" else ""

    return _repeats(job, effect, "once ends")


def _announcements(job: ObservedJob) -> tuple[list[str], list[str]]:
    def announcement(entry: Entry) -> str:
        if (entry.kind, entry.name) != ("sent", "announce"):
            return ""
        return f"announcement of {json.loads(entry.what).get('finished_at')}"

    return _repeats(job, announcement, "announcement ends", "announce")


def _repeats(
    job: ObservedJob, action: Callable[[Entry], str], record: str, *itself: str
) -> tuple[list[str], list[str]]:
    """Return the actions that were repeated wrongly, and those whose repetition is allowed.

    A repetition is allowed when a fault strikes between the action and its record, or when clocks
    that are off let another attempt take over from one that still runs.
    """
    recorded, unrecorded = set[str](), set[str]()
    done: dict[str, str] = {}  # by which invocation
    latest: dict[str, str] = {}  # action, by invocation
    too_slow = {entry.invocation for entry in job.entries if entry.what == TOO_SLOW}
    wrong, excused = [], []
    for entry in job.entries:
        if name := action(entry):
            excuse = name in unrecorded or done.get(name) in too_slow or job.case.clocks
            if name in recorded or (name in done and not excuse):
                wrong.append(f"{name}: done again")
            elif name in done:
                excused.append(name)
            done[name] = entry.invocation
            unrecorded.discard(name)
            latest[entry.invocation] = name
        elif entry.invocation not in latest:
            continue
        elif entry.kind == "fault" and entry.name in (record, *itself):
            unrecorded.add(latest[entry.invocation])
        elif entry.accepted and entry.name == record:
            recorded.add(latest[entry.invocation])
    return wrong, excused
