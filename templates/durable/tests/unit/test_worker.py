"""worker.handler: one job, one durable execution.

The work is what stands here, so that yours may do what it likes.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext, InvocationError
from aws_durable_execution_sdk_python.config import Duration, StepConfig, WaitForCallbackConfig
from aws_durable_execution_sdk_python.exceptions import StepError
from aws_durable_execution_sdk_python.retries import RetryDecision, RetryPresets
from aws_durable_execution_sdk_python_testing.checkpoint.processor import CheckpointProcessor
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
)
from botocore.exceptions import EndpointConnectionError

import work
import worker
from jobs import JobCancelled, PermanentError
from jobs.context import JobContext
from retries import decide
from tests.unit import given
from tests.unit.conftest import Counted, Read
from tests.unit.executions import Execution, Executions, executions

Run = Callable[[dict[str, Any], DurableContext, JobContext], Any]
Do = Callable[..., Execution]

WAITED = ["queued", "running", "waiting", "running", "completed"]
SECOND, HOUR = Duration.from_seconds(1), Duration.from_hours(1)
OUT_OF_REACH = EndpointConnectionError(endpoint_url="https://dynamodb")


@pytest.fixture(scope="module")
def engine() -> Iterator[Executions]:
    """What runs executions."""
    with executions() as running:
        yield running


@pytest.fixture
def do(engine: Executions, monkeypatch: pytest.MonkeyPatch) -> Do:
    """Run a new job to its end, with another function in place of work.run."""

    def do(run: Run, **payload: Any) -> Execution:
        monkeypatch.setattr(work, "run", run)
        return engine.run(payload)

    return do


@pytest.fixture(autouse=True)
def _usual_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "run", usual)


def usual(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Take two steps, and between them wait or ask as the payload says."""
    context.step(Failing(*payload.get("fails", [])), name="first")
    job.progress(1, 2, "first step")
    if "wait" in payload:
        context.wait(Duration.from_seconds(payload["wait"]), name="pause")
    answer = ask(payload["ask"], context) if "ask" in payload else None
    context.step(lambda _: None, name="second")
    job.progress(2, 2, "second step")
    return {"answer": answer}


def ask(seconds: int, context: DurableContext) -> object:
    """Wait so long for an answer, and return it."""
    config = WaitForCallbackConfig(timeout=Duration.from_seconds(seconds))
    try:
        return context.wait_for_callback(lambda *_: None, name="approval", config=config)
    except CallbackTimeoutError:
        return "none in time"


class Failing:
    """Raises the errors in turn and then the last one again; counts how often."""

    def __init__(self, *errors: BaseException, for_ever: bool = True) -> None:
        self.errors, self.for_ever, self.calls = errors, for_ever, 0

    def __call__(self, *_: object) -> Any:
        self.calls += 1
        if self.errors and (self.for_ever or self.calls <= len(self.errors)):
            raise self.errors[min(self.calls, len(self.errors)) - 1]


def once(error: BaseException) -> Failing:
    """Return what fails the first time."""
    return Failing(error, for_ever=False)


PLACES: dict[str, Callable[[DurableContext, Callable[..., Any]], Any]] = {
    "outside": lambda _, act: act(),
    "step": lambda context, act: context.step(act, name="act"),
    "child context": lambda context, act: context.run_in_child_context(act, name="act"),
    "step of a child context": lambda context, act: context.run_in_child_context(
        lambda child: child.step(act), name="part"
    ),
    "submitter": lambda context, act: context.wait_for_callback(act, name="act"),
}
"""Where the work can do something."""
TRIED_AGAIN = ("step", "step of a child context", "submitter")


def doing(place: str, act: Callable[..., Any]) -> Run:
    """Return work that does something there."""
    return lambda _, context, job: PLACES[place](context, act) or {}


def statuses(execution: Execution) -> list[str]:
    return [status for status, _ in execution.life()]


# ------------------------------------------------------------------- the way of a job


def test_a_job_completes(engine: Executions, announced: Read) -> None:
    execution = engine.run({})

    job = execution.job
    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]
    assert job.result == {"answer": None}
    assert job.public()["progress"] == {"done": 2, "total": 2, "message": "second step"}
    assert [json.loads(m["Message"])["status"] for m in announced()] == ["completed"]


def test_a_job_waits_and_says_so(engine: Executions) -> None:
    """A wait of days takes no time here; the job says what it waited for."""
    execution = engine.run({"wait": 30 * 86_400})

    assert statuses(execution) == WAITED
    assert execution.job.attempts == 1
    assert (execution.job.waiting or {})["for"] == "pause"
    assert "waiting" not in execution.job.public()


def test_a_waiting_job_tells_until_when(engine: Executions) -> None:
    """And not the callback's id, nor anything else that is the service's own."""
    execution = engine.start({"ask": 60})
    callback_id = execution.callback_id()

    public = execution.job.public()
    assert (public["status"], public["waiting"]["for"]) == ("waiting", "approval")
    assert public["waiting"].keys() == {"for", "until"}
    assert callback_id not in json.dumps(public)
    assert execution.arn not in json.dumps(public)
    execution.answer(b'{"approved": true}')
    execution.result()


@pytest.mark.parametrize("answer", [{"approved": True, "by": ["ada"]}, {}])
def test_an_answer_reaches_the_work(engine: Executions, answer: object) -> None:
    execution = engine.start({"ask": 60})
    execution.answer(json.dumps(answer).encode())
    execution.result()

    assert (execution.job.status, execution.job.result) == ("completed", {"answer": answer})


def test_a_deadline_passes(engine: Executions) -> None:
    execution = engine.run({"ask": 1})

    assert statuses(execution) == WAITED
    assert execution.job.result == {"answer": "none in time"}


def test_a_step_that_fails_is_another_attempt(do: Do) -> None:
    execution = do(doing("step", once(ConnectionError("no answer"))))

    assert execution.life() == [
        *(("queued", 0), ("running", 1), ("queued", 1), ("running", 2), ("completed", 2))
    ]
    assert execution.job.error is None


def test_finished_steps_are_not_done_again(do: Do) -> None:
    """However often the handler starts from the top."""
    first = Failing()
    second = Failing(OSError("no"), OSError("not yet"), for_ever=False)

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.step(first, name="first")
        context.wait(HOUR)
        context.step(second, name="second")
        return {"attempt": job.attempt}

    assert do(run).job.result == {"attempt": 3}
    assert (first.calls, second.calls) == (1, 3)


def test_a_wait_in_a_child_context_shows_too(do: Do) -> None:
    def part(child: DurableContext) -> dict[str, Any]:
        child.wait(HOUR, name="an hour")
        return {"part": 7}

    execution = do(doing("child context", part))

    assert "waiting" in statuses(execution)
    assert execution.job.result == {"part": 7}


# ------------------------------------------------------------------- what the work raises


class Declined(PermanentError):
    """A permanent error of the work's own."""


class GivenIn(JobCancelled):
    """The work's own way to give in."""


class Silent(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


GROUP = ExceptionGroup("tasks", [PermanentError("no card"), OSError("late")])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError("customer"), "KeyError", "'customer'"),
        (ConnectionError("é" * 40_000), "ConnectionError", "é" * 2_000),
        (Silent(), "Silent", "(its text cannot be told)"),
        (SystemExit(3), "SystemExit", "3"),
        (PermanentError("no card"), "PermanentError", "no card"),
        (Declined("no card"), "Declined", "no card"),
        (GROUP, "PermanentError", "PermanentError: no card; OSError: late"),
    ],
)
def test_what_the_work_raises_fails_the_job(
    do: Do, error: BaseException, kind: str, message: str, place: str
) -> None:
    """After MaxAttempts if it can be tried again. The execution succeeds: it is no dead letter."""
    fail = Failing(error)
    execution = do(doing(place, fail))

    job = execution.job
    assert (job.status, job.error) == ("failed", {"type": kind, "message": message})
    permanent = error is GROUP or isinstance(error, PermanentError)
    assert fail.calls == (5 if place in TRIED_AGAIN and not permanent else 1)
    assert job.attempts == (1 if place == "submitter" else fail.calls)
    assert execution.result().status.value == "SUCCEEDED"


@pytest.mark.parametrize("place", PLACES)
def test_the_work_can_catch_a_permanent_error(do: Do, place: str) -> None:
    """As itself, in a replay too: to take back what earlier steps have done, say."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        try:
            PLACES[place](context, Failing(Declined("no card")))
        except PermanentError as caught:
            context.wait(SECOND, name="pause")
            return {"taken back": str(caught)}
        return {}

    assert do(run).job.result == {"taken back": "no card"}


@pytest.mark.parametrize("place", PLACES)
def test_the_work_can_end_a_cancelled_job(do: Do, place: str) -> None:
    job = do(doing(place, Failing(GivenIn()))).job
    assert (job.status, job.attempts) == ("cancelled", 1)


def test_the_work_can_handle_a_failed_step(do: Do) -> None:
    """With a strategy of its own; the job goes on."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        config = StepConfig(retry_strategy=RetryPresets.none())
        with pytest.raises(StepError, match="no answer"):
            context.step(Failing(OSError("no answer")), name="ask", config=config)
        return {}

    assert do(run).life() == [("queued", 0), ("running", 1), ("completed", 1)]


@pytest.mark.parametrize("result", [None, [1], {"set": {1}}, {"big": "x" * 100_001}])
def test_a_result_that_cannot_be_kept_fails_the_job(do: Do, result: Any) -> None:
    job = do(lambda *_: result).job
    assert (job.status, (job.error or {})["type"]) == ("failed", "PermanentError")


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        *(
            (lambda _, c, job, n=name: c.step(Failing(), name=n), "ValueError", "Use 1 to 200")
            for name in ("é", "a\nb", "x" * 201)
        ),
        (lambda _, c, job: c.step(lambda _: "x" * 262_144), "SerDesError", "262144 are allowed"),
        (lambda _, c, job: c.wait(Duration.from_seconds(0)), "ValidationError", "at least 1"),
    ],
)
def test_what_lambda_would_refuse_is_refused_first(
    do: Do, run: Run, kind: str, message: str
) -> None:
    """It is not tried again."""
    job = do(run).job
    error = job.error or {}
    assert (job.status, job.attempts, error["type"]) == ("failed", 1, kind)
    assert message in error["message"]


def test_a_record_that_cannot_be_written_is_no_failure_of_asking(
    do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few tries the submitter is given."""
    wait, fails_twice = worker.store.wait, Failing(OUT_OF_REACH, OUT_OF_REACH, for_ever=False)
    monkeypatch.setattr(worker.store, "wait", lambda *told: fails_twice() or wait(*told))

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        config = WaitForCallbackConfig(timeout=SECOND, retry_strategy=RetryPresets.none())
        with suppress(CallbackTimeoutError):
            context.wait_for_callback(Failing(), name="approval", config=config)
        return {}

    assert do(run).job.status == "completed"


# ------------------------------------------------------------------- whose job it is


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_job_at_its_end_is_left_alone(engine: Executions, state: str, announced: Read) -> None:
    """It is announced, if that has not happened, and the execution ends."""
    job = given.STATES[state]()
    execution = engine.start({}, job=job)

    assert execution.result().status.value == "SUCCEEDED"
    assert execution.job == job
    assert len(announced()) == 1


def test_another_executions_job_is_left_alone(engine: Executions) -> None:
    first = engine.start({"ask": 60})
    callback_id = first.callback_id()
    engine.start({}, job=first.job).result()

    assert (first.job.status, first.job.attempts) == ("waiting", 1)
    assert (first.job.waiting or {})["callback_id"] == callback_id
    first.answer(b"{}")
    first.result()


def test_a_retry_is_another_execution(do: Do, engine: Executions) -> None:
    """Of the same job, whose attempts and history go on."""
    failed = do(doing("step", Failing(PermanentError("no card"))))
    again = engine.start({}, retry_of=len(failed.job.history), job=failed.job)
    again.result()

    assert again.life() == [
        *(("queued", 0), ("running", 1), ("failed", 1)),
        *(("queued", 1), ("running", 2), ("failed", 2)),
    ]


def test_the_execution_of_an_old_go_is_refused(engine: Executions) -> None:
    """It was under way when its job was cancelled and retried."""
    old = engine.start({"ask": 60})
    old.callback_id()
    worker.store.ask_to_stop(old.job)
    cancelled = worker.store.stop(old.job)
    retried = worker.store.retry(old.job_id, len(cancelled.history))
    old.answer(b'{"approved": true}')
    old.result()

    assert (old.job.status, old.job.history) == ("queued", retried.history)


def test_an_execution_that_comes_late_leaves_a_retried_job_alone(engine: Executions) -> None:
    """Lambda may start an execution hours after it was asked to."""
    job = given.cancelled()
    worker.store.retry(job.job_id, len(job.history))
    late = engine.start({}, job=job)
    late.result()

    assert (late.job.status, late.job.attempts) == ("queued", 0)


def test_a_cancelled_job_does_nothing_any_more(do: Do) -> None:
    """Should the execution not have been stopped, it ends by itself, whatever work.py catches."""
    goes_on = Failing()

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        worker.store.ask_to_stop(job.job)
        worker.store.stop(job.job)
        try:
            context.wait(HOUR)
        except Exception:
            goes_on()
        context.step(goes_on, name="step")
        return {}

    execution = do(run)

    assert (execution.job.status, goes_on.calls) == ("cancelled", 0)
    marks = [op.status.value for op in execution.operations if op.name == "time to pass: wait"]
    assert marks == ["STARTED"]  # it is not tried again


# ------------------------------------------------------------------- dead letters


def test_an_unknown_job_fails_the_execution(engine: Executions) -> None:
    error = engine.start({}, job=given.gone()).result().error
    assert error is not None
    assert error.message == "there is no such job"


@pytest.mark.parametrize("event", ["[]", '{"job_id": "a", "retry_of": "b"}'])
def test_an_event_that_is_no_reference_fails_the_execution(engine: Executions, event: str) -> None:
    error = engine.runner.run(input=event, execution_timeout=30).error
    assert error is not None
    assert (error.type or "").endswith("NotAReference")


def test_a_job_that_cannot_go_on_is_no_success(do: Do) -> None:
    """Whatever the reason: its execution fails, so that the dead-letter function settles it."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        given.change(job.job, status="waiting")  # behind the store's back
        return {}

    execution = do(run)

    assert execution.result().status.value == "FAILED"
    assert execution.job.status == "waiting"


# ------------------------------------------------------------------- crashes

CRASH = InvocationError("the sandbox is gone")
"""To the SDK it is one: the invocation ends, and Lambda invokes again."""


@pytest.fixture
def crash_before(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let the invocation crash when a step has done its work and not yet recorded it."""

    def arm(step: str, action: str = "SUCCEED", times: int = 1) -> list[str]:
        crashed: list[str] = []
        process = CheckpointProcessor.process_checkpoint

        def checkpoint(self: Any, token: str, updates: Any, client_token: Any) -> Any:
            for update in updates:
                named = (update.name, update.action.value) == (step, action)
                if named and len(crashed) < times:
                    crashed.append(step)
                    raise ConnectionError("the sandbox is gone")
            return process(self, token, updates, client_token)

        monkeypatch.setattr(CheckpointProcessor, "process_checkpoint", checkpoint)
        return crashed

    return arm


@pytest.mark.parametrize(
    ("step", "attempts"),
    [
        *(("start", 1), ("first", 2), ("pause: wait", 1), ("pause: resume", 1)),
        *(("second", 2), ("end", 1)),
    ],
)
def test_a_crash_between_a_step_and_its_record_loses_nothing(
    engine: Executions, crash_before: Any, step: str, attempts: int, announced: Read
) -> None:
    """A step of the work has failed, one that keeps the record runs again; one announcement."""
    crashed = crash_before(step)
    execution = engine.run({"wait": 6})

    assert crashed == [step]
    assert (execution.job.status, execution.job.attempts) == ("completed", attempts)
    assert statuses(execution).count("waiting") == 1
    assert len(announced()) == 1


def test_a_crash_before_a_failure_is_recorded_loses_nothing(do: Do, crash_before: Any) -> None:
    """The job says that its attempt has failed, Lambda does not know: the step runs again."""
    crashed = crash_before("act", "RETRY")
    assert do(doing("step", once(OSError("no answer")))).job.status == "completed"
    assert crashed == ["act"]


def test_a_step_that_always_crashes_fails_the_job(
    engine: Executions, crash_before: Any, counted: Counted
) -> None:
    """After MaxAttempts, as a step that always fails."""
    crashed = crash_before("first", times=99)
    job = engine.run({}).job

    assert (job.status, job.attempts, len(crashed)) == ("failed", 5, 5)
    assert (job.error or {})["type"] == "AttemptLost"
    assert counted() == ["WorkerCrashed"] * 5 + ["JobFailed"]


def test_a_worker_that_always_crashes_outside_of_steps_fails_the_job(
    do: Do, engine: Executions, counted: Counted, announced: Read
) -> None:
    """Not at the execution's timeout, but after MaxAttempts crashes in a row."""
    crash = Failing(*[CRASH] * 6, for_ever=False)  # the first leaves a record: the job has started
    job = do(doing("outside", crash)).job

    assert (job.status, job.attempts, crash.calls) == ("failed", 1, 6)
    assert (job.error or {})["type"] == "WorkerCrashed"
    assert counted() == ["WorkerCrashed"] * 5 + ["JobFailed"]
    assert len(announced()) == 1

    retried = engine.start({}, retry_of=len(job.history), job=job)
    retried.result()
    assert retried.job.status == "completed"


def test_crashes_are_counted_anew_when_the_execution_gets_further(do: Do) -> None:
    before, between, after = (Failing(*[CRASH] * 4, for_ever=False) for _ in range(3))

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        before()
        context.wait(HOUR, name="pause")
        between()
        context.step(lambda _: None, name="step")
        after()
        return {}

    assert do(run).job.status == "completed"


def test_an_effect_happens_once_though_its_step_is_done_twice(do: Do, crash_before: Any) -> None:
    """The crash comes between the effect and the record of its step."""
    pay = Failing()
    crashed = crash_before("effect")
    do(lambda _, context, job: context.step(lambda _: job.once("pay", pay), name="effect") or {})

    assert (crashed, pay.calls) == (["effect"], 1)


@pytest.mark.parametrize("retried", [False, True])
def test_a_crashed_execution_does_not_go_on_with_a_job_that_it_has_lost(
    do: Do, crash_before: Any, retried: bool
) -> None:
    """It was cancelled, and perhaps retried, before Lambda invoked again: no step runs."""
    done: list[str] = []

    def effect(job: JobContext) -> None:
        done.append("effect")
        cancelled = worker.store.stop(job.job)
        if retried:
            worker.store.retry(job.id, len(cancelled.history))

    crashed = crash_before("effect")
    execution = do(lambda _, context, job: context.step(lambda _: effect(job), name="effect"))

    assert crashed == done == ["effect"]
    assert execution.job.status == ("queued" if retried else "cancelled")


def test_a_failure_that_cannot_be_recorded_is_no_harm(
    do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is tried again; the job does not show the attempt that failed."""
    monkeypatch.setattr(worker.store, "release", Failing(OUT_OF_REACH))
    execution = do(doing("step", once(OSError("no answer"))))
    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]


def test_the_store_may_be_out_of_reach_for_a_while(
    engine: Executions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the worker's own is tried for an hour, an invocation is made again."""
    for name, times in {"start": 3, "note_position": 2, "complete": 3}.items():
        right, fail = getattr(worker.store, name), Failing(*[OUT_OF_REACH] * times, for_ever=False)

        def flaky(*args: Any, _right: Any = right, _fail: Failing = fail, **named: Any) -> Any:
            _fail()
            return _right(*args, **named)

        monkeypatch.setattr(worker.store, name, flaky)

    assert engine.run({}).life() == [("queued", 0), ("running", 1), ("completed", 1)]


# ------------------------------------------------------------------- the log, and locks


def test_the_log_tells_why_a_job_failed(do: Do, log: Read) -> None:
    """With the stack trace, which the job's owner is not shown."""
    execution = do(doing("step", Failing(PermanentError("no card"))))

    (line,) = [line for line in log() if line.get("message") == "job failed"]
    assert line["job_id"] == execution.job_id
    assert "StepError" in line["exception"]


def test_every_line_of_the_log_names_the_job(do: Do, log: Read) -> None:
    """Those of the SDK, too; and nothing is told twice, though the handler starts over and over."""
    execution = do(doing("step", once(OSError("no answer"))))

    lines = [line for line in log() if "_aws" not in line]
    assert any("failed step" in line["message"] for line in lines)
    assert {line["job_id"] for line in lines} == {execution.job_id}
    assert {line["correlation_id"] for line in lines[1:]} == {"a request"}  # once it is read
    assert [line["message"] for line in lines].count("job ended") == 1


def test_a_locked_effect_is_waited_for_beyond_the_attempts_of_a_step() -> None:
    """Its lock may last as long as a function may run. A step may bring more patience."""
    locked = IdempotencyAlreadyInProgressError("locked")
    waits = [decide(locked, attempt) for attempt in range(1, 32)]

    assert all(wait.should_retry for wait in waits)
    assert sum(wait.delay.to_seconds() for wait in waits) > 1800
    assert not decide(locked, 40).should_retry
    assert decide(locked, 40, own=lambda *_: RetryDecision.retry(Duration())).should_retry
    assert not decide(ConnectionError("no answer"), 16).should_retry
