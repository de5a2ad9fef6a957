"""Side effects that happen once a job, however many attempts it takes."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.typing import LambdaContext

from jobs.canonical import canonical
from jobs.exceptions import PermanentError
from jobs.settings import client, settings

MAX_ANSWER = 50_000
"""Bytes; a record is one DynamoDB item of 400 KB."""
TEN_YEARS = 10 * 365 * 86_400
"""Longer than a job lives: each retry and each long wait prolongs it."""

_config = IdempotencyConfig(expires_after_seconds=TEN_YEARS)
_records = DynamoDBPersistenceLayer(
    table_name=settings.idempotency_table, boto3_client=client("dynamodb")
)


def note_deadline(context: LambdaContext) -> None:
    """Tell when this invocation ends, so that a record it leaves in progress ends with it."""
    _config.register_lambda_context(context)


def once(job_id: str, name: str, effect: Callable[[], Any]) -> Any:
    """Call `effect` unless it has already been done for this job under `name`.

    The first answer is kept and returned ever after. An attempt that is killed between the effect
    and its record does it again: keep `effect` to one request.
    https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/

    Raises:
        PermanentError: the answer is not JSON, or larger than a record; the effect is done.
        IdempotencyAlreadyInProgressError: another attempt is at it, or was killed at it.
    """
    answer, *problem = _guarded(key=f"{job_id}#{name}", effect=effect)
    if problem:
        raise PermanentError(f"{name} is done, but what it returned cannot be kept: {problem[0]}")
    return answer


def _do(*, key: str, effect: Callable[[], Any]) -> list[Any]:
    # In a list, since Powertools replays an answer that is false as None. An answer that it could
    # not keep would leave no record that the effect was done: the list then holds None and why.
    answer = effect()
    try:
        size = len(canonical(answer).encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        return [None, str(error)]
    if size > MAX_ANSWER:
        return [None, f"it has {size} bytes and {MAX_ANSWER} are allowed"]
    return [answer]


_guarded = idempotent_function(
    _do,
    data_keyword_argument="key",
    persistence_store=_records,
    config=_config,
    key_prefix="once",
)
