"""worker.handler: one job, one durable execution.

The work is what stands here, so that yours may do what it likes.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from aws_durable_execution_sdk_python import (
    CallbackTimeoutError,
    DurableContext,
    InvocationError,
    StepContext,
)
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
from durable_context import decide
from jobs import JobCancelled, PermanentError, Status
from jobs.context import JobContext
from jobs.reference import Reference
from tests.unit import given
from tests.unit.conftest import Counted, Read
from tests.unit.executions import Execution, Executions, executions

Run = Callable[[dict[str, Any], DurableContext, JobContext], dict[str, Any]]


@pytest.fixture(scope="module")
def engine() -> Iterator[Executions]:
    """What runs executions."""
    with executions() as running:
        yield running


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Take two steps, and between them wait or ask as the payload says."""
    context.step(lambda step: first(payload, step), name="first")
    job.progress(1, 2, "first step")
    if "wait" in payload:
        context.wait(Duration.from_seconds(payload["wait"]), name="pause")
    answer = ask(payload["ask"], context) if "ask" in payload else None
    context.step(lambda _: None, name="second")
    job.progress(2, 2, "second step")
    return {"answer": answer}


def first(payload: dict[str, Any], step: StepContext) -> None:
    """Fail if the payload says so."""
    fails = payload.get("fails", "never")
    if fails == "for good":
        raise PermanentError("no such card")
    if fails == "always" or (fails == "once" and step.attempt == 1):
        raise ConnectionError("the bank does not answer")


def ask(seconds: int, context: DurableContext) -> object:
    """Wait so long for an answer, and return it."""
    config = WaitForCallbackConfig(timeout=Duration.from_seconds(seconds))
    try:
        return context.wait_for_callback(lambda *_: None, name="approval", config=config)
    except CallbackTimeoutError:
        return "none in time"


@pytest.fixture
def doing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Put another function in place of work.run."""
    return lambda run: monkeypatch.setattr(work, "run", run)


@pytest.fixture(autouse=True)
def _own_work(doing: Callable[[Run], None]) -> None:
    """Put the work above in place of work.run."""
    doing(run)


def names(execution: Execution) -> list[str | None]:
    """Return the names of an execution's operations, in their order."""
    return [operation.name for operation in execution.operations[1:]]


# ------------------------------------------------------------------- the way of a job


def test_a_job_completes(engine: Executions, announced: Read) -> None:
    """One attempt, its result, its last progress, and one announcement."""
    execution = engine.run({})

    job = execution.job
    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]
    assert job.result == {"answer": None}
    assert job.public()["progress"] == {"done": 2, "total": 2, "message": "second step"}
    assert [json.loads(m["Message"])["status"] for m in announced()] == ["completed"]


def test_a_job_waits_and_says_so(engine: Executions) -> None:
    """A wait of days takes no time here; the job says what it waited for."""
    execution = engine.run({"wait": 30 * 86_400})

    assert [status for status, _ in execution.life()] == [
        *("queued", "running", "waiting", "running", "completed")
    ]
    assert execution.job.attempts == 1
    assert (execution.job.waiting or {})["for"] == "pause"
    assert "waiting" not in execution.job.public()


def test_a_waiting_job_tells_until_when(engine: Executions) -> None:
    """And not the callback's id, nor anything else that is the service's own."""
    execution = engine.start({"ask": 60})
    callback_id = execution.callback_id()

    public = execution.job.public()
    assert public["status"] == "waiting"
    assert public["waiting"].keys() == {"for", "until"}
    assert public["waiting"]["for"] == "approval"
    assert callback_id not in json.dumps(public)
    assert execution.arn not in json.dumps(public)
    execution.answer(b'{"approved": true}')
    execution.result()


@pytest.mark.parametrize("answer", [{"approved": True, "by": ["ada"]}, {}])
def test_an_answer_reaches_the_work(engine: Executions, answer: object) -> None:
    """As the JSON that it is."""
    execution = engine.start({"ask": 60})
    execution.answer(json.dumps(answer).encode())
    execution.result()

    assert execution.job.status == "completed"
    assert execution.job.result == {"answer": answer}


def test_a_deadline_passes(engine: Executions) -> None:
    """Nobody answered: the work goes on without."""
    execution = engine.run({"ask": 1})

    assert [status for status, _ in execution.life()] == [
        *("queued", "running", "waiting", "running", "completed")
    ]
    assert execution.job.result == {"answer": "none in time"}


def test_a_step_that_fails_is_tried_again(engine: Executions) -> None:
    """It is another attempt, and finished steps are not done again."""
    execution = engine.run({"fails": "once"})

    assert execution.life() == [
        *(("queued", 0), ("running", 1), ("queued", 1), ("running", 2), ("completed", 2))
    ]
    assert execution.job.error is None


def test_finished_steps_are_not_done_again(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """However often the handler starts from the top."""
    done: list[str] = []

    def fails_twice(step: Any) -> None:
        done.append("second")
        if step.attempt < 3:
            raise ConnectionError("not yet")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.step(lambda _: done.append("first"), name="first")
        context.wait(Duration.from_hours(1))
        context.step(fails_twice, name="second")
        return {"attempt": job.attempt}

    doing(run)
    execution = engine.run({})

    assert done == ["first", "second", "second", "second"]
    assert execution.job.result == {"attempt": 3}


def test_a_step_that_always_fails_fails_the_job(engine: Executions) -> None:
    """After MaxAttempts, with the last error; it is no dead letter."""
    execution = engine.run({"fails": "always"})

    job = execution.job
    assert job.status == "failed"
    assert job.attempts == 5
    assert job.error == {"type": "ConnectionError", "message": "the bank does not answer"}
    assert execution.result().status.value == "SUCCEEDED"


def test_a_permanent_error_fails_the_job_at_once(engine: Executions, announced: Read) -> None:
    """Raised in a step or not, the job tells it as it was raised."""
    execution = engine.run({"fails": "for good"})

    assert execution.life() == [("queued", 0), ("running", 1), ("failed", 1)]
    assert (execution.job.error or {})["type"] == "PermanentError"
    assert [json.loads(m["Message"])["status"] for m in announced()] == ["failed"]


def test_an_error_outside_of_steps_fails_the_job(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """There is nothing that could be tried again alone."""

    def run(*_: Any) -> dict[str, Any]:
        raise KeyError("customer")

    doing(run)
    execution = engine.run({})

    assert execution.job.error == {"type": "KeyError", "message": "'customer'"}


class Silent(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


GROUP = ExceptionGroup("tasks", [PermanentError("no card"), OSError("late")])


@pytest.mark.parametrize("where", ["outside", "step", "child context", "submitter"])
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (Silent(), "Silent", "(its text cannot be told)"),
        (SystemExit(3), "SystemExit", "3"),
        (GROUP, "PermanentError", "PermanentError: no card; OSError: late"),
        (ConnectionError("é" * 40_000), "ConnectionError", "é" * 2_000),
    ],
)
def test_whatever_the_work_raises_is_told(
    engine: Executions,
    doing: Callable[[Run], None],
    error: BaseException,
    kind: str,
    message: str,
    where: str,
) -> None:
    """It counts as any failure: MaxAttempts in a step, once elsewhere or if it is permanent."""
    calls: list[str] = []

    def fail(*_: object) -> None:
        calls.append("call")
        raise error

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        match where:
            case "step":
                context.step(fail, name="fail")
            case "child context":
                context.run_in_child_context(fail, name="fail")
            case "submitter":
                context.wait_for_callback(fail, name="fail")
            case _:
                fail()
        return {}

    doing(run)
    job = engine.run({}).job

    assert (job.status, job.error) == ("failed", {"type": kind, "message": message})
    tried = where in ("step", "submitter") and error is not GROUP
    assert len(calls) == (5 if tried else 1)


@pytest.mark.parametrize("name", ["é", "a\nb", "x" * 201])
def test_a_name_that_lambda_would_refuse_is_refused_first(
    engine: Executions, doing: Callable[[Run], None], name: str
) -> None:
    doing(lambda _, context, job: context.step(lambda _: {}, name=name))
    error = engine.run({}).job.error or {}
    assert error["type"] == "ValueError"
    assert "Use 1 to 200 printable ASCII letters" in error["message"]


def test_a_result_that_is_too_large_for_a_step_is_refused(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """It is not tried again: the effect is done."""
    doing(lambda _, context, job: context.step(lambda _: {"big": "x" * 262_144}, name="big"))
    job = engine.run({}).job
    assert (job.status, job.attempts) == ("failed", 1)
    assert "262144 are allowed: store it elsewhere" in (job.error or {})["message"]


@pytest.mark.parametrize("in_step", [True, False])
def test_the_work_can_end_a_cancelled_job(
    engine: Executions, doing: Callable[[Run], None], in_step: bool
) -> None:
    """JobCancelled, in a step or not."""

    def give_in(_: object) -> None:
        raise JobCancelled

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.step(give_in, name="look") if in_step else give_in(None)
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.life() == [("queued", 0), ("running", 1), ("cancelled", 1)]


@pytest.mark.parametrize("result", [None, [1], {"set": {1}}, {"big": "x" * 100_001}])
def test_a_result_that_cannot_be_kept_fails_the_job(
    engine: Executions, doing: Callable[[Run], None], result: Any
) -> None:
    """It is no JSON object, or too large."""
    doing(lambda *_: result)
    execution = engine.run({})

    assert execution.job.status == "failed"
    assert (execution.job.error or {})["type"] == "PermanentError"


def test_the_work_can_handle_a_failed_step(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """With a strategy of its own; the job goes on."""

    def fail(_: object) -> None:
        raise ConnectionError("no answer")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        try:
            context.step(fail, name="ask", config=StepConfig(retry_strategy=RetryPresets.none()))
        except StepError as error:
            return {"without": str(error)}
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]
    assert execution.job.result == {"without": "no answer"}


@pytest.mark.parametrize("nested", [False, True])
def test_the_work_can_catch_a_permanent_error(
    engine: Executions, doing: Callable[[Run], None], nested: bool
) -> None:
    """As itself, in a replay too: to take back what earlier steps have done, say."""

    def refuse(_: object) -> None:
        raise PermanentError("no such card")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        try:
            if nested:
                context.run_in_child_context(lambda child: child.step(refuse), name="pay")
            else:
                context.step(refuse, name="pay")
        except PermanentError as error:
            context.wait(Duration.from_seconds(1), name="pause")
            return {"taken back": str(error)}
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.job.result == {"taken back": "no such card"}


@pytest.mark.parametrize("base", [PermanentError, JobCancelled])
@pytest.mark.parametrize("where", ["step", "child context", "submitter"])
def test_it_may_be_an_error_of_the_works_own(
    engine: Executions, doing: Callable[[Run], None], base: type[Exception], where: str
) -> None:
    """Derived from PermanentError or JobCancelled, it ends the job as these do."""
    own = type(f"Own{base.__name__}", (base,), {})

    def decline(*_: object) -> None:
        raise own("no such card")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        with pytest.raises(base) if base is PermanentError else nullcontext():
            if where == "step":
                context.step(decline, name="pay")
            elif where == "child context":
                context.run_in_child_context(lambda child: child.step(decline), name="pay")
            else:
                context.wait_for_callback(decline, name="pay")
        decline()
        return {}

    doing(run)
    job = engine.run({}).job

    assert (job.status, job.attempts) == ("failed" if base is PermanentError else "cancelled", 1)
    assert base is JobCancelled or job.error == {"type": own.__name__, "message": "no such card"}


def test_a_record_that_cannot_be_written_is_no_failure_of_asking(
    engine: Executions, doing: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few tries the submitter is given."""
    wait, tries = worker.store.wait, iter([True, True])

    def fails_twice(*arguments: Any) -> Any:
        if next(tries, False):
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        return wait(*arguments)

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        once = WaitForCallbackConfig(
            timeout=Duration.from_seconds(1), retry_strategy=RetryPresets.none()
        )
        with suppress(CallbackTimeoutError):
            context.wait_for_callback(lambda *_: None, name="approval", config=once)
        return {}

    monkeypatch.setattr(worker.store, "wait", fails_twice)
    doing(run)
    assert engine.run({}).job.status == "completed"


@pytest.mark.parametrize(("error", "calls"), [(ConnectionError, 5), (PermanentError, 1)])
def test_asking_for_an_answer_is_tried_again_like_any_step(
    engine: Executions, doing: Callable[[Run], None], error: type[Exception], calls: int
) -> None:
    """At most MaxAttempts times, and not at all after a permanent error."""
    asked: list[str] = []

    def ask(callback_id: str, _: object) -> None:
        asked.append(callback_id)
        raise error("nobody is in")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.wait_for_callback(ask, name="approval")
        return {}

    doing(run)
    execution = engine.run({})

    assert len(asked) == calls
    assert execution.job.error == {"type": error.__name__, "message": "nobody is in"}


def test_a_wait_in_a_child_context_shows_too(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """Its answer comes back, too."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        def part(child: DurableContext) -> int:
            child.wait(Duration.from_days(1), name="a day")
            return 7

        return {"part": context.run_in_child_context(part, name="part")}

    doing(run)
    execution = engine.run({})

    assert "waiting" in [status for status, _ in execution.life()]
    assert execution.job.result == {"part": 7}


# ------------------------------------------------------------------- whose job it is


@pytest.mark.parametrize("make", [given.completed, given.failed, given.cancelled])
def test_a_job_at_its_end_is_left_alone(
    engine: Executions, make: Callable[[], Any], announced: Read
) -> None:
    """It is announced, if that has not happened, and the execution ends."""
    job = make()
    execution = engine.start({}, job=job)

    assert execution.result().status.value == "SUCCEEDED"
    assert execution.job == job
    assert len(announced()) == 1


def test_another_executions_job_is_left_alone(engine: Executions) -> None:
    """Two executions of one job: the second finds it taken."""
    first = engine.start({"ask": 60})
    callback_id = first.callback_id()
    second = engine.start({}, job=first.job)
    second.result()

    assert first.job.status == "waiting"
    assert (first.job.waiting or {})["callback_id"] == callback_id
    assert first.job.attempts == 1
    first.answer(b"{}")
    first.result()


def test_a_retry_is_another_execution(engine: Executions) -> None:
    """Of the same job, whose attempts and history go on."""
    failed = engine.run({"fails": "for good"})
    retry_of = len(failed.job.history)
    again = engine.start({}, retry_of=retry_of, job=failed.job)
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

    assert old.job.history == retried.history
    assert old.job.status == "queued"


def test_an_execution_that_comes_late_leaves_a_retried_job_alone(engine: Executions) -> None:
    """Lambda may start an execution hours after it was asked to."""
    job = given.cancelled()
    worker.store.retry(job.job_id, len(job.history))
    late = engine.start({}, job=job)
    late.result()

    assert late.job.status == "queued"
    assert late.job.attempts == 0


def test_a_cancelled_job_does_nothing_any_more(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """Should the execution not have been stopped, it ends by itself, whatever work.py catches."""
    done: list[str] = []

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        worker.store.ask_to_stop(job.job)
        worker.store.stop(job.job)
        try:
            context.wait(Duration.from_days(1))
        except Exception:
            done.append("caught")
        context.step(lambda _: done.append("step"), name="step")
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.job.status == "cancelled"
    assert done == []
    marks = [op.status.value for op in execution.operations if op.name == "time to pass: wait"]
    assert marks == ["STARTED"]  # it is not tried again


def test_an_unknown_job_fails_the_execution(engine: Executions) -> None:
    """So that it becomes a dead letter."""
    execution = engine.start({}, job=given.gone())

    assert execution.result().status.value == "FAILED"
    error = execution.result().error
    assert error is not None
    assert error.message == "there is no such job"


@pytest.mark.parametrize(
    "event", ["{}", "[]", '"x"', '{"job_id": 1}', '{"job_id": "a", "retry_of": "b"}']
)
def test_an_event_that_is_no_reference_fails_the_execution(engine: Executions, event: str) -> None:
    """So that it becomes a dead letter."""
    result = engine.runner.run(input=event, execution_timeout=30)

    assert result.status.value == "FAILED"
    assert result.error is not None
    assert (result.error.type or "").endswith("NotAReference")


# ------------------------------------------------------------------- crashes


class Crash(BaseException):
    """The sandbox is gone."""


@pytest.fixture
def crash_before(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let the invocation crash when a step has done its work and not yet recorded it."""

    def arm(step: str, action: str = "SUCCEED", times: int = 1) -> list[str]:
        crashed: list[str] = []
        process = CheckpointProcessor.process_checkpoint

        def checkpoint(self: Any, token: str, updates: Any, client_token: Any) -> Any:
            for update in updates:
                if update.name == step and update.action.value == action and len(crashed) < times:
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
    engine: Executions,
    crash_before: Callable[..., list[str]],
    step: str,
    attempts: int,
    announced: Read,
) -> None:
    """A step of the work has failed, one that keeps the record runs again; one announcement."""
    crashed = crash_before(step)
    execution = engine.run({"wait": 6})

    assert crashed == [step]
    assert (execution.job.status, execution.job.attempts) == ("completed", attempts)
    assert len([status for status, _ in execution.life() if status == "waiting"]) == 1
    assert len(announced()) == 1


def test_a_step_that_always_crashes_fails_the_job(
    engine: Executions, crash_before: Callable[..., list[str]], counted: Counted
) -> None:
    """After MaxAttempts, as a step that always fails."""
    crashed = crash_before("first", times=99)
    job = engine.run({}).job

    assert (job.status, job.attempts) == ("failed", 5)
    assert (job.error or {})["type"] == "AttemptLost"
    assert len(crashed) == 5
    assert counted() == ["WorkerCrashed"] * 5 + ["JobFailed"]


def test_a_worker_that_always_crashes_outside_of_steps_fails_the_job(
    engine: Executions, doing: Callable[[Run], None], counted: Counted, announced: Read
) -> None:
    """Not at the execution's timeout, but after MaxAttempts crashes in a row."""
    calls: list[str] = []

    def run(*_: Any) -> dict[str, Any]:
        calls.append("run")
        raise InvocationError("the sandbox is gone")

    doing(run)
    execution = engine.run({})

    job = execution.job
    assert (job.status, job.attempts) == ("failed", 1)
    assert (job.error or {})["type"] == "WorkerCrashed"
    assert len(calls) == 6  # the first one leaves a record: that the job has started
    assert counted() == ["WorkerCrashed"] * 5 + ["JobFailed"]
    assert len(announced()) == 1

    retried = engine.start({}, retry_of=len(job.history), job=job)
    doing(lambda *_: {})
    retried.result()
    assert retried.job.status == "completed"


def test_crashes_are_counted_anew_when_the_execution_gets_further(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    crashes = dict.fromkeys(("before", "between", "after"), 4)

    def crash(where: str) -> None:
        crashes[where] -= 1
        if crashes[where] >= 0:
            raise InvocationError("the sandbox is gone")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        crash("before")
        context.wait(Duration.from_seconds(60), name="pause")
        crash("between")
        context.step(lambda _: None, name="step")
        crash("after")
        return {}

    doing(run)
    assert engine.run({}).job.status == "completed"


def test_a_crash_before_a_failure_is_recorded_loses_nothing(
    engine: Executions, crash_before: Callable[..., list[str]]
) -> None:
    """The job says that its attempt has failed, Lambda does not know: the step runs again."""
    crashed = crash_before("first", "RETRY")
    execution = engine.run({"fails": "once"})

    assert crashed == ["first"]
    assert execution.job.status == "completed"


def test_a_wait_that_cannot_be_waited_for_fails_the_job(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """The SDK refuses it: less than a second."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.wait(Duration.from_seconds(0))
        return {}

    doing(run)
    job = engine.run({}).job

    assert (job.status, (job.error or {})["type"]) == ("failed", "ValidationError")


def test_a_job_that_cannot_go_on_is_no_success(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """Whatever the reason: its execution fails, so that the dead-letter function settles it."""

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        given.change(job.job, status="waiting")  # behind the store's back
        return {}

    doing(run)
    execution = engine.start({})

    assert execution.result().status.value == "FAILED"
    assert execution.job.status == "waiting"


def test_an_effect_happens_once_though_its_step_is_done_twice(
    engine: Executions,
    crash_before: Callable[..., list[str]],
    doing: Callable[[Run], None],
) -> None:
    """The crash comes between the effect and the record of its step."""
    done: list[str] = []

    def pay() -> str:
        done.append("pay")
        return "paid"

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        return {"bill": context.step(lambda _: job.once("pay", pay), name="effect")}

    doing(run)
    crashed = crash_before("effect")
    execution = engine.run({})

    assert crashed == ["effect"]
    assert execution.job.result == {"bill": "paid"}
    assert done == ["pay"]


@pytest.mark.parametrize("retried", [False, True])
def test_a_crashed_execution_does_not_go_on_with_a_job_that_it_has_lost(
    engine: Executions,
    crash_before: Callable[..., list[str]],
    doing: Callable[[Run], None],
    retried: bool,
) -> None:
    """It was cancelled, and perhaps retried, before Lambda invoked again: no step runs."""
    done: list[str] = []

    def effect(job: JobContext) -> None:
        done.append("effect")
        cancelled = worker.store.stop(job.job)
        if retried:
            worker.store.retry(job.id, len(cancelled.history))

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.step(lambda _: effect(job), name="effect")
        return {}

    doing(run)
    crashed = crash_before("effect")
    execution = engine.run({})

    assert crashed == done == ["effect"]
    assert execution.job.status == ("queued" if retried else "cancelled")


def test_errors_of_the_engine_are_not_the_jobs(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """Lambda invokes again; the job knows nothing of it."""
    done: list[str] = []

    def run(*_: Any) -> dict[str, Any]:
        done.append("run")
        if len(done) == 1:
            raise InvocationError("the engine is out of reach")
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]


def test_a_failure_that_cannot_be_recorded_is_no_harm(
    engine: Executions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is tried again; the job does not show the attempt that failed."""

    def release(*_: object) -> None:
        raise EndpointConnectionError(endpoint_url="dynamodb")

    monkeypatch.setattr(worker.store, "release", release)
    execution = engine.run({"fails": "once"})

    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]


def test_the_store_may_be_out_of_reach_for_a_while(
    engine: Executions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the worker's own is tried for an hour, an invocation is made again."""
    failures = {"start": 3, "note_position": 2, "complete": 3}
    for name in failures:
        right = getattr(worker.store, name)

        def flaky(*args: Any, _name: str = name, _right: Any = right, **kwargs: Any) -> Any:
            failures[_name] -= 1
            if failures[_name] >= 0:
                raise EndpointConnectionError(endpoint_url="dynamodb")
            return _right(*args, **kwargs)

        monkeypatch.setattr(worker.store, name, flaky)
    execution = engine.start({})
    execution.result()

    assert execution.life() == [("queued", 0), ("running", 1), ("completed", 1)]


def test_an_execution_that_is_not_deterministic_fails(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """The execution, not the job: it becomes a dead letter, which settles the job."""
    names = iter(["one", "two"])

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.step(lambda _: 1, name=next(names))
        context.wait(Duration.from_days(1))
        return {}

    doing(run)
    execution = engine.start({})
    result = execution.result()

    assert result.status.value == "FAILED"
    assert "Non-deterministic" in str(result.error and result.error.message)
    assert execution.job.status is Status.WAITING


def test_errors_of_the_work_are_told_by_their_own_names(
    engine: Executions, doing: Callable[[Run], None]
) -> None:
    """Also out of a child context; the SDK's wrappers say nothing to a job's owner."""

    def fail(_: object) -> None:
        raise PermanentError("no such customer")

    def run(_: Any, context: DurableContext, job: JobContext) -> dict[str, Any]:
        context.run_in_child_context(lambda child: child.step(fail, name="ask"), name="part")
        return {}

    doing(run)
    execution = engine.run({})

    assert execution.job.error == {"type": "PermanentError", "message": "no such customer"}
    assert execution.job.attempts == 1


def test_the_log_tells_why_a_job_failed(engine: Executions, log: Read) -> None:
    """With the stack trace, which the job's owner is not shown."""
    execution = engine.run({"fails": "for good"})

    (line,) = [line for line in log() if line.get("message") == "job failed"]
    assert line["job_id"] == execution.job_id
    assert "in first" in line["exception"] or "StepError" in line["exception"]


def test_every_line_of_the_log_names_the_job(engine: Executions, log: Read) -> None:
    """Those of the SDK, too; and nothing is told twice, though the handler starts over and over."""
    execution = engine.run({"fails": "once", "wait": 60})

    lines = [line for line in log() if "_aws" not in line]
    assert any("failed step" in line["message"] for line in lines)
    assert {line["job_id"] for line in lines} == {execution.job_id}
    assert [line["message"] for line in lines].count("job ended") == 1


def test_the_reference_is_the_same_bytes_every_time() -> None:
    """Lambda takes a name twice only with the same payload."""
    assert Reference("a", 3).dumps() == '{"job_id": "a", "retry_of": 3}'
    assert Reference("a").dumps() == '{"job_id": "a"}'


def test_a_locked_effect_is_waited_for_beyond_the_attempts_of_a_step() -> None:
    """Its lock may last for as long as a function may run, which is 15 minutes."""
    locked, failed = IdempotencyAlreadyInProgressError("locked"), ConnectionError("no answer")
    waits = [decide(locked, attempt) for attempt in range(1, 24)]
    assert all(wait.should_retry for wait in waits)
    assert sum(wait.delay.to_seconds() for wait in waits) > 900
    assert not decide(failed, 16).should_retry


def test_a_locked_effect_is_waited_for_as_long_as_its_step_is_tried() -> None:
    """A step's own strategy may allow more tries than the lock needs."""
    locked = IdempotencyAlreadyInProgressError("locked")
    assert decide(locked, 30, own=lambda *_: RetryDecision.retry(Duration())).should_retry
    assert not decide(locked, 30).should_retry
