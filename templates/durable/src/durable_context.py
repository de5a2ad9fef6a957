"""The durable context that work.py receives: the SDK's, which also keeps the job up to date.

- During `wait` and `wait_for_callback`, the job is `waiting`, and says what for and until when.
- A failed step that will be tried again ends an attempt. Until then, the job is `queued`.
- A step whose sandbox dies has failed.
- `PermanentError` and `JobCancelled` are not tried again, and work.py can catch them.
- The answer of a callback is JSON.
- Names, results and errors that Lambda could not record are refused or cut.

Inside `map` and `parallel`, branches wait while others run. There, the context is the SDK's own:
give its steps `retries.BRANCH_STEP`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from aws_durable_execution_sdk_python import DurableContext, StepContext
from aws_durable_execution_sdk_python.config import (
    ChildConfig,
    Duration,
    StepConfig,
    WaitForCallbackConfig,
)
from aws_durable_execution_sdk_python.exceptions import (
    BackgroundThreadError,
    CallbackSubmitterError,
    DurableOperationError,
    OrphanedChildException,
    SerDesError,
    StepInterruptedError,
    SuspendExecution,
    UnrecoverableError,
)
from aws_durable_execution_sdk_python.retries import RetryDecision
from aws_durable_execution_sdk_python.serdes import (
    EXTENDED_TYPES_SERDES,
    JsonSerDes,
    SerDes,
    SerDesContext,
)
from aws_durable_execution_sdk_python.types import WaitForCallbackContext
from botocore.exceptions import BotoCoreError, ClientError

from answers import AnswerConfig
from jobs import Job
from jobs.attempts import AttemptStore
from jobs.context import JobContext
from jobs.failure import stand_in, telling, type_name
from jobs.metrics import Metric, count
from jobs.table import ConditionFailed
from retries import KILLED_COUNTS, NEVER_AGAIN, PATIENT, PATIENTLY, STEP_RETRIES, decide

MAX_STEP_RESULT = 256 * 1024
"""Bytes. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
NAME = re.compile(r"[\x20-\x7e]{1,200}")
"""Names of operations; Lambda takes 256 characters, and the SDK adds to some.
https://docs.aws.amazon.com/lambda/latest/api/API_OperationUpdate.html"""

T = TypeVar("T")


class AttemptLost(Exception):
    """The sandbox died in a step: a timeout, a crash or lack of memory."""


class Superseded(BaseException):
    """The job is no longer this execution's, so the execution ends.

    Not an `Exception`, like the SDK's own suspension: `except Exception` in work.py lets it pass.
    """

    def __init__(self, job: Job | None) -> None:
        super().__init__(f"the job is {job.status}" if job else "there is no such job")
        self.job = job


ENGINE = (
    *(SuspendExecution, BackgroundThreadError, OrphanedChildException, UnrecoverableError),
    Superseded,
)
"""What the engine raises through work.py, which is no failure of the work."""


class _Bounded(SerDes[Any]):
    """Refuses a result that is too large for a step."""

    def __init__(self, inner: SerDes[Any]) -> None:
        self._inner = inner

    def serialize(self, value: Any, serdes_context: SerDesContext) -> str:
        text = self._inner.serialize(value, serdes_context)
        if (size := len(text.encode())) > MAX_STEP_RESULT:
            raise SerDesError(
                f"the step's result has {size} bytes and {MAX_STEP_RESULT} are allowed:"
                " store it elsewhere and return where"
            )
        return text

    def deserialize(self, data: str, serdes_context: SerDesContext) -> Any:
        return self._inner.deserialize(data, serdes_context)


class JobDurableContext:
    """A durable context of the job's main line, or of a child context of it."""

    def __init__(self, context: DurableContext, job: JobContext, store: AttemptStore) -> None:
        self._context = context
        self._job = job
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def step(
        self,
        func: Callable[[StepContext], T],
        name: str | None = None,
        config: StepConfig | None = None,
    ) -> T:
        """Run a function once and keep its result: `DurableContext.step`.

        If its sandbox dies, the attempt has failed, whatever `step_semantics` says.
        """
        name, config = _name(name, func), config or StepConfig()
        own = config.retry_strategy or STEP_RETRIES

        def strategy(error: Exception, attempts: int) -> RetryDecision:
            if isinstance(error, StepInterruptedError):
                count(Metric.WORKER_CRASHED)
            decision = decide(error, attempts, own)
            if decision.should_retry:
                self._tell_failure(_lost() if isinstance(error, StepInterruptedError) else error)
            return decision

        def attempt(step: StepContext) -> T:
            with telling(*ENGINE):
                return func(step)

        ours = replace(
            config,
            retry_strategy=strategy,
            step_semantics=KILLED_COUNTS,
            serdes=_Bounded(config.serdes or EXTENDED_TYPES_SERDES),
        )
        with _as_raised():
            return self._context.step(attempt, name, config=ours)

    def wait(self, duration: Duration, name: str | None = None) -> None:
        """Wait without a sandbox: `DurableContext.wait`."""
        what = _name(name, None) or "time to pass"
        self._keep(f"{what}: wait", lambda job: self._store.wait(job, what, duration.to_seconds()))
        self._waited(what, lambda: self._context.wait(duration, name))

    def wait_for_callback(
        self,
        submitter: Callable[[str, WaitForCallbackContext], None],
        name: str | None = None,
        config: WaitForCallbackConfig | None = None,
    ) -> Any:
        """Wait for an answer from outside and return it: `DurableContext.wait_for_callback`.

        `POST /jobs/{job_id}/callback` gives it, with its caller as the member `by`; `AnswerConfig`
        says who may. Give a timeout: it is the promise to the owner that the job will end. The
        submitter is a step; when it fails for good, CallbackSubmitterError is
        raised.
        """
        config = config or WaitForCallbackConfig()
        own = config.retry_strategy or STEP_RETRIES
        what = _name(name, submitter) or "an answer"

        asked = config.record() if isinstance(config, AnswerConfig) else {}

        def submit(callback_id: str, context: WaitForCallbackContext) -> None:
            seconds = config.timeout_seconds or None
            self._hold(lambda job: self._store.wait(job, what, seconds, callback_id, asked))
            try:
                with telling(*ENGINE):
                    submitter(callback_id, context)
            except Exception as error:  # the SDK would keep nothing of its type
                raise DurableOperationError(str(error), data=type_name(type(error))) from error

        def strategy(error: Exception, attempts: int) -> RetryDecision:
            if isinstance(error, DurableOperationError) and isinstance(error.__cause__, Exception):
                return decide(error.__cause__, attempts, own)
            return PATIENTLY(error, attempts)  # the record could not be written

        ours = replace(config, serdes=config.serdes or JsonSerDes(), retry_strategy=strategy)
        return self._waited(
            what, lambda: self._context.wait_for_callback(submit, name=what, config=ours)
        )

    def run_in_child_context(
        self,
        func: Callable[[DurableContext], T],
        name: str | None = None,
        config: ChildConfig[T] | None = None,
    ) -> T:
        """Group operations: `DurableContext.run_in_child_context`."""

        def run(child: DurableContext) -> T:
            try:
                with telling(*ENGINE):
                    return func(as_durable(JobDurableContext(child, self._job, self._store)))
            except DurableOperationError as error:  # the SDK would keep no more than its own name
                raise original(error) from error

        with _as_raised():
            return self._context.run_in_child_context(run, name=_name(name, func), config=config)

    def _waited(self, what: str, wait: Callable[[], Any]) -> Any:
        """Note that the waiting is over, however it ended; not when it has only just begun."""
        name = f"{what}: resume"
        try:
            with _as_raised():
                answer = wait()
        except Exception:
            self._keep(name, lambda job: self._store.resume(job, what))
            raise
        by = answer.get("by") if isinstance(answer, dict) else None
        self._keep(name, lambda job: self._store.resume(job, what, by))
        return answer

    def _keep(self, name: str, write: Callable[[Job], Job]) -> None:
        """Write to the job's record, in a step."""
        self._context.step(lambda _: self._hold(write), name=name, config=PATIENT)

    def _hold(self, write: Callable[[Job], Job]) -> None:
        """Write to the job's record, if the job is still ours."""
        try:
            stored = write(self._job.job)
        except ConditionFailed as refused:
            raise Superseded(refused.job) from refused
        self._job.job = replace(self._job.job, attempts=stored.attempts)

    def _tell_failure(self, error: Exception) -> None:
        """Record the end of the attempt. If that fails, the next attempt's record replaces it."""
        try:
            self._store.release(self._job.job, error)
        except (ConditionFailed, BotoCoreError, ClientError) as refused:
            self._context.logger.warning(f"failed attempt not recorded: {refused}")


def as_durable(context: JobDurableContext) -> DurableContext:
    """Return the context as the SDK's type, whose methods it all has."""
    return context  # type: ignore[return-value]


def original(error: Exception) -> Exception:
    """Return what was raised in a step, in place of what the SDK has made of it.

    The SDK keeps only the name and the message. A class of that name shows the owner the type that
    work.py raised, which may be in no module that this process can import.
    """
    if not isinstance(error, DurableOperationError):
        return error
    told = (isinstance(error, CallbackSubmitterError) and error.data) or error.error_type
    if told == type_name(StepInterruptedError):
        return _lost()
    base = next((base for base in NEVER_AGAIN if told in _type_names(base)), Exception)
    return stand_in(told, base, error.message or "")


def _lost() -> AttemptLost:
    return AttemptLost("The worker died in a step: a timeout, a crash or lack of memory.")


@contextmanager
def _as_raised() -> Iterator[None]:
    """Raise what ends a job as itself, so that work.py can catch it; the SDK wraps it."""
    try:
        yield
    except DurableOperationError as error:
        if isinstance(cause := original(error), NEVER_AGAIN):
            raise cause from error
        raise


def _type_names(type_: type) -> set[str]:
    """Return the full names of a class and of all that are derived from it."""
    return {type_name(type_)}.union(*map(_type_names, type_.__subclasses__()))


def _name(name: str | None, func: object) -> str | None:
    """Return an operation's name, as the SDK finds it.

    Raises:
        ValueError: Lambda would refuse it.
    """
    found = name or getattr(func, "_original_name", None)
    if found and not NAME.fullmatch(found):
        raise ValueError(f"The name {found!r} is refused. Use 1 to 200 printable ASCII characters.")
    return found
