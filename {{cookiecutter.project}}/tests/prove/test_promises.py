"""Each promise is broken here once by hand, and is seen to be broken; a good story breaks none."""

import json
from collections.abc import Callable

import pytest

from tests.prove.faults import TOO_SLOW, WORKER, Card, Fault
from tests.prove.promises import PROMISES, overlaps, window
from tests.prove.report import Report
from tests.prove.story import Story
from tests.prove.witness import Line

END = "2026-01-31T09:30:00.000Z"
MAIL = "send the mail"


def history(*statuses: str) -> list[dict[str, str]]:
    return [{"status": status, "at": END} for status in statuses]


def call(name: str, what: str = "200", invocation: str = "first") -> Line:
    return Line("call", name, what, 0, function=WORKER, invocation=invocation)


def work(kind: str, attempt: int, invocation: str = "first", name: str = "") -> Line:
    return Line(kind, name, "", 0, attempt, WORKER, invocation)


def announcement(invocation: str = "first", end: str = END) -> Line:
    return Line("sent", "announce", json.dumps({"finished_at": end}), 0, 0, WORKER, invocation)


def a_good_story() -> Story:
    """One attempt, one side effect, completed, announced."""
    return Story(
        0,
        Card("no fault", "completes"),
        job_id="a-job",
        lines=[
            call("claim"),
            work("run", 1),
            work("step", 1),
            call("once begins"),
            work("effect", 1, name=MAIL),
            call("once ends"),
            work("ran", 1),
            call("complete"),
            call("announce"),
            announcement(),
            call("announcement ends"),
        ],
        seen=[{"status": "completed"}, {"status": "completed"}],
        item={
            "status": "completed",
            "attempts": 1,
            "history": history("queued", "running", "completed"),
            "result": '{"attempt": 1}',
            "finished_at": END,
        },
        announced=[END],
    )


def a_failed_story() -> Story:
    """One attempt, failed for good."""
    story = a_good_story()
    story.card = Card("", "fails for good")
    story.lines = [call("claim"), work("run", 1), call("fail")]
    story.seen = [{"status": "failed"}]
    assert story.item
    story.item |= {
        "status": "failed",
        "history": history("queued", "running", "failed"),
        "error": {"type": "PermanentError", "message": "attempt 1: no such card"},
    }
    return story


def broken_by(story: Story) -> set[str]:
    return {name for name, found in PROMISES.items() if list(found(story))}


@pytest.mark.parametrize("story", [a_good_story(), a_failed_story()])
def test_a_good_story_breaks_no_promise(story: Story) -> None:
    assert broken_by(story) == set()


def _lost(story: Story) -> None:
    story.item = None


def _stuck(story: Story) -> None:
    assert story.item
    story.item |= {"status": "running", "history": history("queued", "running")}
    story.seen.clear()


def _never_accepted(story: Story) -> None:
    story.job_id, story.item, story.lines = "", None, []


def _failed_for_a_fault(story: Story) -> None:
    assert story.item
    story.item |= {"status": "cancelled", "history": history("queued", "cancelled")}


def _run_again(story: Story) -> None:
    story.lines.append(work("run", 2, "second"))


def _effect_again(story: Story) -> None:
    story.lines[6:7] = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]


def _effect_again_without_record(story: Story) -> None:
    """Nothing kept the attempt from writing the record; it just did not."""
    story.lines[5:7] = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]


def _changed(story: Story) -> None:
    assert story.item
    story.item["history"] = history("queued", "running", "failed", "queued", "completed")


def _changed_after_completion(story: Story) -> None:
    assert story.item
    story.item["history"] = history("queued", "running", "completed", "queued", "completed")
    story.retries = 1


def _changed_under_the_owners_eyes(story: Story) -> None:
    story.seen[0] = {"status": "completed", "result": "another one"}


def _two_at_a_time(story: Story) -> None:
    story.lines.insert(2, work("run", 2, "second"))


def _stale_result(story: Story) -> None:
    assert story.item
    story.item["attempts"] = 2


def _not_announced(story: Story) -> None:
    story.announced.clear()


def _announced_again(story: Story) -> None:
    story.lines += [call("announce", invocation="second"), announcement("second")]


def _dead_letter(story: Story) -> None:
    story.dead_letters = 1


def _new_call(story: Story) -> None:
    story.lines.append(Line("odd", "makes an AWS call that points.py does not name: DeleteTable"))


PLANTED: list[tuple[Callable[[Story], None], str]] = [
    (_lost, "no accepted job is lost"),
    (_stuck, "every job is terminal"),
    (_never_accepted, "every job ends as its work does"),
    (_failed_for_a_fault, "every job ends as its work does"),
    (_run_again, "no completed job is run again"),
    (_effect_again, "no side effect under once is done twice"),
    (_effect_again_without_record, "no side effect under once is done twice"),
    (_changed, "no terminal status changes"),
    (_changed_after_completion, "no terminal status changes"),
    (_changed_under_the_owners_eyes, "no terminal status changes"),
    (_two_at_a_time, "one attempt at a time"),
    (_stale_result, "only the last attempt is recorded"),
    (_not_announced, "every end is announced once"),
    (_announced_again, "every end is announced once"),
    (_dead_letter, "nothing unsettled leaves, nothing settled stays"),
    (_new_call, "every AWS call is named in points.py"),
]
PLANTED_IN_FAILED: list[tuple[dict[str, str], str]] = [
    ({}, "every failed job tells the reason"),
    ({"type": "AttemptLost", "message": "without a word"}, "every failed job tells the reason"),
    (
        {"type": "PermanentError", "message": "attempt 2: no such card"},
        "only the last attempt is recorded",
    ),
]


@pytest.mark.parametrize(("plant", "promise"), PLANTED)
def test_a_planted_violation_is_seen(plant: Callable[[Story], None], promise: str) -> None:
    story = a_good_story()
    plant(story)
    assert broken_by(story) == {promise}


@pytest.mark.parametrize(("error", "promise"), PLANTED_IN_FAILED)
def test_a_wrong_reason_is_seen(error: dict[str, str], promise: str) -> None:
    story = a_failed_story()
    assert story.item
    story.item["error"] = error
    assert broken_by(story) == {promise}


def test_every_promise_has_a_planted_violation() -> None:
    assert {promise for _, promise in (*PLANTED, *PLANTED_IN_FAILED)} == set(PROMISES)


def test_what_is_torn_from_its_record_is_counted_apart() -> None:
    """The window that Powertools documents: the attempt ended between effect and record."""
    story = a_good_story()
    torn = Line("fault", "once ends", "killed before", 0, function=WORKER, invocation="first")
    again = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]
    story.lines[5:7] = [torn, *again, call("once ends", invocation="second")]
    torn = Line("fault", "announce", "answer lost", 0, function=WORKER, invocation="first")
    story.lines[-1:-1] = [torn, announcement()]
    assert broken_by(story) == set()
    assert window(story) == ([MAIL], [f"announcement of {END}"])


def test_what_the_machine_was_too_slow_to_record_is_counted_apart() -> None:
    story = a_good_story()
    _effect_again_without_record(story)
    story.lines.append(Line("fault", "", TOO_SLOW, 0, 0, WORKER, "first"))
    assert broken_by(story) == set()
    assert window(story) == ([MAIL], [])


def test_another_end_is_another_announcement() -> None:
    story = a_good_story()
    story.lines.append(announcement("second", "2026-02-01T09:30:00.000Z"))
    assert broken_by(story) == set()


def test_clocks_that_are_off_may_let_attempts_overlap() -> None:
    story = a_good_story()
    _two_at_a_time(story)
    story.card = Card("", "completes", clocks=(0, 60))
    assert broken_by(story) == set()
    assert list(overlaps(story))


def test_a_job_may_fail_that_the_machine_was_too_slow_for() -> None:
    story = a_failed_story()
    story.card = Card("", "completes")
    assert broken_by(story) == {"every job ends as its work does"}
    story.lines.append(Line("fault", "", TOO_SLOW, 0, function=WORKER))
    assert broken_by(story) == set()


def test_a_job_that_nobody_was_told_of_may_leave_a_dead_letter() -> None:
    story = Story(0, Card("", "completes", patient=False), dead_letters=1)
    assert broken_by(story) == set()


def test_the_report_counts_what_struck_and_what_was_survived() -> None:
    good, bad = a_good_story(), a_good_story()
    for story in (good, bad):
        story.lines.append(Line("fault", "claim", "killed before", 0, function=WORKER))
    bad.number, bad.dead_letters = 1, 1
    report = Report([good, bad], odd=[])
    assert (report.faults, report.survived, report.violations) == (2, 1, 1)


def test_a_fault_that_never_struck_is_seen() -> None:
    card = Card("", "completes", (Fault(WORKER, "claim", "killed before"),))
    stories = [a_good_story(), a_good_story()]
    for story in stories:
        story.card = card
    assert Report(stories[:1], odd=[]).violations == 0
    assert Report(stories, odd=[]).violations == 1


def test_time_to_recover_runs_from_the_kill_to_the_next_end() -> None:
    story = a_good_story()
    kill = Line("fault", "claim", "killed after", 0, function=WORKER, t=100)
    end = Line("call", "complete", "200", 0, function=WORKER, t=112.5)
    too_late = Line("fault", "complete", "killed after", 0, function=WORKER, t=113)
    story.lines = [kill, end, too_late]
    assert story.recoveries() == [12.5]
