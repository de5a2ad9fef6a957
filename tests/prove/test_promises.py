"""Each promise is broken once by hand and seen to be broken; a good job breaks none."""

import json
from collections.abc import Callable

import pytest

from tests.tools.prove.effect_log import Entry
from tests.tools.prove.engine import load_engine
from tests.tools.prove.fault_plan import scenarios
from tests.tools.prove.faults import TOO_SLOW, WORKER, Fault, FaultCase
from tests.tools.prove.observed_job import ObservedJob
from tests.tools.prove.promises import PROMISES, overlaps, window
from tests.tools.prove.report import Report

END = "2026-01-31T09:30:00.000Z"
MAIL = "send the mail"
QUEUE = load_engine("queue")
SCENARIOS = scenarios(QUEUE)


def give(job: ObservedJob, case: FaultCase) -> None:
    job.case, job.scenario = case, SCENARIOS[case.scenario]


def history(*statuses: str) -> list[dict[str, str]]:
    return [{"status": status, "at": END} for status in statuses]


def call(name: str, what: str = "200", invocation: str = "first") -> Entry:
    return Entry("call", name, what, 0, function=WORKER, invocation=invocation)


def work(kind: str, attempt: int, invocation: str = "first", name: str = "") -> Entry:
    return Entry(kind, name, "", 0, attempt, WORKER, invocation)


def announcement(invocation: str = "first", end: str = END) -> Entry:
    return Entry("sent", "announce", json.dumps({"finished_at": end}), 0, 0, WORKER, invocation)


def a_good_job() -> ObservedJob:
    """One attempt, one side effect, completed, announced."""
    return ObservedJob(
        0,
        FaultCase("no fault", "completes"),
        SCENARIOS["completes"],
        job_id="a-job",
        entries=[
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


def a_failed_job() -> ObservedJob:
    """One attempt, failed for good."""
    job = a_good_job()
    give(job, FaultCase("", "fails for good"))
    job.entries = [call("claim"), work("run", 1), call("fail")]
    job.seen = [{"status": "failed"}]
    assert job.item
    job.item |= {
        "status": "failed",
        "history": history("queued", "running", "failed"),
        "error": {"type": "PermanentError", "message": "attempt 1: no such card"},
    }
    return job


def broken_by(job: ObservedJob) -> set[str]:
    return {name for name, found in PROMISES.items() if list(found(job))}


@pytest.mark.parametrize("job", [a_good_job(), a_failed_job()])
def test_a_good_job_breaks_no_promise(job: ObservedJob) -> None:
    assert broken_by(job) == set()


def _lost(job: ObservedJob) -> None:
    job.item = None


def _stuck(job: ObservedJob) -> None:
    assert job.item
    job.item |= {"status": "running", "history": history("queued", "running")}
    job.seen.clear()


def _never_accepted(job: ObservedJob) -> None:
    job.job_id, job.item, job.entries = "", None, []


def _failed_for_a_fault(job: ObservedJob) -> None:
    assert job.item
    job.item |= {"status": "cancelled", "history": history("queued", "cancelled")}


def _run_again(job: ObservedJob) -> None:
    job.entries.append(work("run", 2, "second"))


def _effect_again(job: ObservedJob) -> None:
    job.entries[6:7] = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]


def _effect_again_without_record(job: ObservedJob) -> None:
    """Nothing kept the attempt from writing the record; it just did not."""
    job.entries[5:7] = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]


def _changed(job: ObservedJob) -> None:
    assert job.item
    job.item["history"] = history("queued", "running", "failed", "queued", "completed")


def _changed_after_completion(job: ObservedJob) -> None:
    assert job.item
    job.item["history"] = history("queued", "running", "completed", "queued", "completed")
    job.retries = 1


def _changed_as_the_client_sees(job: ObservedJob) -> None:
    job.seen[0] = {"status": "completed", "result": "another one"}


def _two_at_a_time(job: ObservedJob) -> None:
    job.entries.insert(2, work("run", 2, "second"))


def _stale_result(job: ObservedJob) -> None:
    assert job.item
    job.item["attempts"] = 2


def _not_announced(job: ObservedJob) -> None:
    job.announced.clear()


def _announced_again(job: ObservedJob) -> None:
    job.entries += [call("announce", invocation="second"), announcement("second")]


def _dead_letter(job: ObservedJob) -> None:
    job.dead_letters = 1


def _new_call(job: ObservedJob) -> None:
    job.entries.append(
        Entry("unnamed", "makes an AWS call that points.py does not name: DeleteTable")
    )


PLANTED: list[tuple[Callable[[ObservedJob], None], str]] = [
    (_lost, "no accepted job is lost"),
    (_stuck, "every job is terminal"),
    (_never_accepted, "every job ends as its work does"),
    (_failed_for_a_fault, "every job ends as its work does"),
    (_run_again, "no completed job is run again"),
    (_effect_again, "no side effect under once is done twice"),
    (_effect_again_without_record, "no side effect under once is done twice"),
    (_changed, "no terminal status changes"),
    (_changed_after_completion, "no terminal status changes"),
    (_changed_as_the_client_sees, "no terminal status changes"),
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
def test_a_planted_violation_is_seen(plant: Callable[[ObservedJob], None], promise: str) -> None:
    job = a_good_job()
    plant(job)
    assert broken_by(job) == {promise}


@pytest.mark.parametrize(("error", "promise"), PLANTED_IN_FAILED)
def test_a_wrong_reason_is_seen(error: dict[str, str], promise: str) -> None:
    job = a_failed_job()
    assert job.item
    job.item["error"] = error
    assert broken_by(job) == {promise}


def test_every_promise_has_a_planted_violation() -> None:
    assert {promise for _, promise in (*PLANTED, *PLANTED_IN_FAILED)} == set(PROMISES)


def test_a_repetition_after_a_fault_before_the_record_is_counted_apart() -> None:
    """Powertools documents that gap: the attempt ended between effect and record."""
    job = a_good_job()
    fault = Entry("fault", "once ends", "killed before", 0, function=WORKER, invocation="first")
    again = [work("run", 2, "second"), work("effect", 2, "second", MAIL)]
    job.entries[5:7] = [fault, *again, call("once ends", invocation="second")]
    fault = Entry("fault", "announce", "answer lost", 0, function=WORKER, invocation="first")
    job.entries[-1:-1] = [fault, announcement()]
    assert broken_by(job) == set()
    assert window(job) == ([MAIL], [f"announcement of {END}"])


def test_a_repetition_after_a_busy_machine_is_counted_apart() -> None:
    job = a_good_job()
    _effect_again_without_record(job)
    job.entries.append(Entry("fault", "", TOO_SLOW, 0, 0, WORKER, "first"))
    assert broken_by(job) == set()
    assert window(job) == ([MAIL], [])


def test_another_end_is_another_announcement() -> None:
    job = a_good_job()
    job.entries.append(announcement("second", "2026-02-01T09:30:00.000Z"))
    assert broken_by(job) == set()


def test_clocks_that_are_off_may_let_attempts_overlap() -> None:
    job = a_good_job()
    _two_at_a_time(job)
    give(job, FaultCase("", "completes", clocks=(0, 60)))
    assert broken_by(job) == set()
    assert list(overlaps(job))


def test_a_job_may_fail_that_the_machine_was_too_slow_for() -> None:
    job = a_failed_job()
    give(job, FaultCase("", "completes"))
    assert broken_by(job) == {"every job ends as its work does"}
    job.entries.append(Entry("fault", "", TOO_SLOW, 0, function=WORKER))
    assert broken_by(job) == set()


def test_a_job_without_a_202_may_leave_a_dead_letter() -> None:
    case = FaultCase("", "completes", repeats=False)
    job = ObservedJob(0, case, SCENARIOS[case.scenario], dead_letters=1)
    assert broken_by(job) == set()


def test_the_report_counts_what_struck_and_what_was_survived() -> None:
    good, bad = a_good_job(), a_good_job()
    for job in (good, bad):
        job.entries.append(Entry("fault", "claim", "killed before", 0, function=WORKER))
    bad.number, bad.dead_letters = 1, 1
    report = Report(QUEUE, [good, bad], unnamed=[])
    assert (report.faults, report.survived, report.violations) == (2, 1, 1)


def test_a_fault_that_never_struck_is_seen() -> None:
    case = FaultCase("", "completes", (Fault(WORKER, "claim", "killed before"),))
    jobs = [a_good_job(), a_good_job()]
    for job in jobs:
        give(job, case)
    assert Report(QUEUE, jobs[:1], unnamed=[]).violations == 0
    assert Report(QUEUE, jobs, unnamed=[]).violations == 1


def test_time_to_recover_runs_from_the_kill_to_the_next_end() -> None:
    job = a_good_job()
    kill = Entry("fault", "claim", "killed after", 0, function=WORKER, t=100)
    end = Entry("call", "complete", "200", 0, function=WORKER, terminal=True, t=112.5)
    too_late = Entry("fault", "complete", "killed after", 0, function=WORKER, t=113)
    job.entries = [kill, end, too_late]
    assert job.recoveries() == [12.5]
