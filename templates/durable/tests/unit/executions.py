"""Runs jobs in durable executions, in this process and with the waiting left out."""

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.exceptions import UnrecoverableError
from aws_durable_execution_sdk_python.execution import (
    DurableExecutionInvocationInputWithClient,
    InitialExecutionState,
)
from aws_durable_execution_sdk_python.lambda_service import Operation, OperationUpdate
from aws_durable_execution_sdk_python_testing import DurableFunctionTestRunner
from aws_durable_execution_sdk_python_testing.executor import Executor
from aws_durable_execution_sdk_python_testing.invoker import create_test_lambda_context
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestResult

import work
import worker
from durable_context import JobDurableContext, as_durable
from jobs import Job
from jobs.context import JobContext
from jobs.reference import Reference
from retries import PATIENT
from tests.unit import given

LATER = dt.timedelta(days=400)

Handler = Callable[[Any, Any], Any]


class Execution:
    """One execution, under way or ended."""

    def __init__(self, runner: DurableFunctionTestRunner, arn: str, job_id: str) -> None:
        self.runner = runner
        self.arn = arn
        self.job_id = job_id
        self._result: DurableFunctionTestResult | None = None

    @property
    def job(self) -> Job:
        """The job as it is stored now."""
        job = worker.store.get(self.job_id)
        assert job is not None
        return job

    @property
    def operations(self) -> list[Operation]:
        """What the execution has recorded."""
        return list(self.runner._store.load(self.arn).operations)

    def result(self) -> DurableFunctionTestResult:
        """Wait for the end of the execution."""
        if self._result is None:  # the runner tells it once
            self._result = self.runner.wait_for_result(self.arn, timeout=30)
        return self._result

    def callback_id(self) -> str:
        """Wait until the job waits for an answer, and return the callback's id."""
        self.runner.wait_for_callback(self.arn)
        return str((self.job.waiting or {})["callback_id"])

    def answer(self, answer: bytes) -> None:
        """Give the answer that the job waits for."""
        self.runner.send_callback_success(self.callback_id(), answer)

    def expire(self) -> None:
        """Let the deadline of the answer that the job waits for pass."""
        self.runner._executor._on_callback_timeout(self.arn, self.callback_id())

    def life(self) -> list[tuple[str, int]]:
        """Return each status of the job, with its attempt."""
        history = self.job.public()["history"]
        return [(entry["status"], entry["attempt"]) for entry in history]


class Executions:
    """Starts executions of one handler."""

    def __init__(self, handler: Handler = worker.handler) -> None:
        self.runner = DurableFunctionTestRunner(handler=handler, poll_interval=0.01)

    def start(
        self, payload: dict[str, Any], *, retry_of: int | None = None, job: Job | None = None
    ) -> Execution:
        """Start an execution of a new job, or of `job`."""
        job = job or worker.store.create(given.new_id(), given.OWNER, payload, "a request")
        arn = self.runner.run_async(
            input=Reference(job.job_id, retry_of).dumps(), execution_timeout=30
        )
        return Execution(self.runner, arn, job.job_id)

    def run(self, payload: dict[str, Any]) -> Execution:
        """Run a new job to its end."""
        execution = self.start(payload)
        execution.result()
        return execution


@contextmanager
def executions(handler: Handler = worker.handler) -> Iterator[Executions]:
    """Give executions, where an invocation that crashes is followed by another one at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Executor, "RETRY_BACKOFF_SECONDS", 0)
        patch.setattr(Executor, "MAX_CONSECUTIVE_FAILED_ATTEMPTS", 99)  # Lambda never gives up
        running = Executions(handler)
        try:
            yield running
        finally:
            running.runner.close()  # type: ignore[no-untyped-call]


class NotDeterministic(AssertionError):
    """A replay did something else than the first run."""


class Closed:
    """The engine's side of a replay of an execution that has ended: nothing is left to record."""

    def checkpoint(self, *, updates: list[OperationUpdate], **_: object) -> None:
        """Refuse what the first run did not do.

        Raises:
            NotDeterministic: always.
        """
        new = ", ".join(update.name or update.operation_type.value for update in updates)
        raise NotDeterministic(f"the replay does what the first run did not do: {new}")


def replay(execution: Execution) -> dict[str, Any]:
    """Run work.py again on the record of an execution that has ended, 400 days later.

    Returns:
        What `work.run` returned this time, as the job would hold it.

    Raises:
        NotDeterministic: it did more, less or something else than the record says.
        Exception: what `work.run` raised.
    """
    operations = execution.operations
    outcome: list[Any] = []

    @durable_execution
    def handler(_: Any, context: DurableContext) -> None:
        job = JobContext(execution.job, worker.store, lambda: 60_000)
        context.step(_not_again, name="start", config=PATIENT)
        durable = as_durable(JobDurableContext(context, job, worker.store))
        try:
            outcome.append(work.run(execution.job.payload, durable, job))
        except UnrecoverableError:
            raise
        except Exception as error:
            outcome.append(error)
        context.step(_not_again, name="end", config=PATIENT)
        done = context._step_counter.get_current()
        recorded = sum(op.parent_id is None for op in operations) - 1  # but the execution itself
        if done != recorded:
            raise NotDeterministic(f"the replay does {done} operations, the first run {recorded}")

    invocation = DurableExecutionInvocationInputWithClient(
        durable_execution_arn=execution.arn,
        checkpoint_token="none",
        initial_execution_state=InitialExecutionState(operations, ""),
        service_client=Closed(),  # type: ignore[arg-type]
    )
    with _later():
        answer = handler(invocation, create_test_lambda_context())
    if answer["Status"] != "SUCCEEDED":
        raise NotDeterministic(answer["Error"]["ErrorMessage"])
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return dict(json.loads(json.dumps(outcome[0])))


def _not_again(_: object) -> None:
    raise NotDeterministic("a step that has finished runs again")


@contextmanager
def _later() -> Iterator[None]:
    """Move the clocks that work.py may read: `time.time`, and `datetime` if it imports that."""
    now = time.time

    class Datetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            return dt.datetime.now(tz) + LATER

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + LATER.total_seconds())
        for name, value in list(work.run.__globals__.items()):
            if value is dt.datetime:
                patch.setitem(work.run.__globals__, name, Datetime)
        yield
