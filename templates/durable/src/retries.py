"""When a step is tried again: the back-off of durable jobs."""

from collections.abc import Callable

from aws_durable_execution_sdk_python.config import (
    Duration,
    JitterStrategy,
    StepConfig,
    StepSemantics,
)
from aws_durable_execution_sdk_python.retries import (
    RetryDecision,
    RetryStrategyConfig,
    create_retry_strategy,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
)

from jobs import JobCancelled, PermanentError
from jobs.settings import required_int
from jobs.table import ConditionFailed

Strategy = Callable[[Exception, int], RetryDecision]

MAX_ATTEMPTS = required_int("MAX_ATTEMPTS", minimum=1)

STEP_RETRIES = create_retry_strategy(
    RetryStrategyConfig(
        max_attempts=MAX_ATTEMPTS,
        initial_delay=Duration.from_seconds(required_int("RETRY_BASE_SECONDS", minimum=0)),
        max_delay=Duration.from_seconds(900),
        jitter_strategy=JitterStrategy.HALF,
    )
)
"""For steps of work.py that have no strategy of their own."""

LOCK_TRIES = 32
"""A minute apart, for the lock that a dead sandbox left at an effect. It may last as long as the
invocation could have: 30 minutes."""

PATIENTLY = create_retry_strategy(
    RetryStrategyConfig(
        max_attempts=24,
        initial_delay=Duration.from_seconds(1),
        max_delay=Duration.from_minutes(5),
    )
)
PATIENT = StepConfig(retry_strategy=PATIENTLY)
"""For steps that keep the job's record: a throttled write must not fail a job.

If the sandbox dies in such a step, the step runs again, which changes nothing.
"""

KILLED_COUNTS = StepSemantics.AT_MOST_ONCE_PER_RETRY
"""A step whose sandbox dies has failed, and is tried again as its strategy says. By the SDK's
default it runs again in the same attempt, as often as it dies, until the execution times out.
https://docs.aws.amazon.com/durable-execution/patterns/best-practices/idempotency/
"""

NEVER_AGAIN: tuple[type[Exception], ...] = (PermanentError, JobCancelled)
"""What a step raises to end the job."""


def decide(error: Exception, attempts: int, own: Strategy = STEP_RETRIES) -> RetryDecision:
    """Return whether to try a step of work.py again, and when; `own` is the step's own strategy."""
    if isinstance(error, (*NEVER_AGAIN, ConditionFailed)):
        return RetryDecision.no_retry()
    if isinstance(error, IdempotencyAlreadyInProgressError) and attempts < LOCK_TRIES:
        return RetryDecision.retry(Duration.from_minutes(1))
    return own(error, attempts)


BRANCH_STEP = StepConfig(retry_strategy=decide, step_semantics=KILLED_COUNTS)
"""For steps inside `map` and `parallel`, which would follow the SDK's own strategy."""
