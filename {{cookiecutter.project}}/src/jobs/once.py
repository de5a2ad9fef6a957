"""Side effects that happen once per job, however many attempts it takes."""

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
"""Bytes. A record is one DynamoDB item, which holds 400 KB."""
TEN_YEARS = 10 * 365 * 86_400
"""Longer than a job lives, although each retry and each long wait prolongs its life."""

_config = IdempotencyConfig(expires_after_seconds=TEN_YEARS)
_records = DynamoDBPersistenceLayer(
    table_name=settings.idempotency_table, boto3_client=client("dynamodb")
)


def note_deadline(context: LambdaContext) -> None:
    """Note when this invocation ends: a record that it leaves in progress ends then."""
    _config.register_lambda_context(context)


def once(job_id: str, name: str, effect: Callable[[], Any]) -> Any:
    """Call `effect`, unless it has already happened for this job under `name`.

    The first answer is stored, and returned every time. If an attempt is killed between the effect
    and its record, the next attempt repeats the effect. So keep `effect` to one request.
    https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/

    Raises:
        PermanentError: the effect has happened, but its answer is not JSON or is too large.
        IdempotencyAlreadyInProgressError: another attempt is doing it, or was killed in it.
    """
    answer, *problem = _guarded(key=f"{job_id}#{name}", effect=effect)
    if problem:
        raise PermanentError(f"{name} is done, but what it returned cannot be kept: {problem[0]}")
    return answer


def _do(*, key: str, effect: Callable[[], Any]) -> list[Any]:
    # A list, because Powertools replays a false answer as None. An answer that cannot be stored
    # would leave no record of the effect. Then the list holds None and the reason.
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
