"""The result of a job: a JSON object of limited size."""

from collections.abc import Mapping
from typing import Any

from jobs.canonical import canonical
from jobs.exceptions import PermanentError

MAX_RESULT_BYTES = 100_000


def as_result(result: Mapping[str, Any]) -> str:
    """Return a result as a job keeps it.

    Raises:
        PermanentError: the result is not a JSON object, or larger than a job can hold.
    """
    if not isinstance(result, Mapping):
        raise PermanentError(f"run() returned {type(result).__name__}; it returns a JSON object")
    try:
        text = canonical(result)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise PermanentError(f"the result is not JSON: {error}") from error
    if size > MAX_RESULT_BYTES:
        raise PermanentError(
            f"the result has {size} bytes and {MAX_RESULT_BYTES} are allowed:"
            " store it elsewhere and return where"
        )
    return text
