"""The payload of a job: strict JSON, checked against payload.schema.json."""

import json
import math
import re
from itertools import accumulate
from pathlib import Path
from typing import Any, NoReturn

import fastjsonschema

from jobs.problems import InvalidJson, InvalidPayload, NotAnObject, PayloadTooLarge

MAX_BYTES = 200_000
"""With a result of 100,000 bytes and its history, a job stays below DynamoDB's 400 KB an item."""

MAX_DEPTH = 100
"""Of brackets in brackets: whoever reads it again may have less of the stack left."""

_BESIDE_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*"|[^][{}"]+')

_validate = fastjsonschema.compile(
    json.loads((Path(__file__).parent.parent / "payload.schema.json").read_text("utf-8")),
    use_default=False,
)


def parse(body: bytes) -> dict[str, Any]:
    """Return the payload in a request's body, which `check_size` has let pass.

    Raises:
        InvalidJson, NotAnObject, PayloadTooLarge, InvalidPayload: in this order.
    """
    payload = read(body)
    try:
        _validate(payload)
    except fastjsonschema.JsonSchemaValueException as error:
        field, detail = _explain(error)
        raise InvalidPayload(
            f"{field or 'The payload'} {detail}.", errors=[{"field": field, "detail": detail}]
        ) from None
    return payload


def read(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a request's body.

    Stricter than `json.loads`: what two parsers might read differently (duplicate names, NaN,
    numbers out of range, lone surrogates) is refused, for a fingerprint is taken of the payload.

    Raises:
        InvalidJson, NotAnObject, PayloadTooLarge: in this order.
    """
    try:
        payload = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_refuse,
        )
        text = canonical(payload)
        size = len(text.encode("utf-8"))  # it can be longer than the body: 1e22
    except UnicodeError:
        raise InvalidJson("The body is not UTF-8 text.") from None
    except RecursionError:
        raise InvalidJson("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body cannot be read: {error}.") from None
    if not isinstance(payload, dict):
        raise NotAnObject("Send a JSON object, such as {}.")
    check_size(size)
    return payload


def check_size(size: int) -> None:
    """Check a payload's size in bytes.

    Raises:
        PayloadTooLarge: a job cannot hold it.
    """
    if size > MAX_BYTES:
        raise PayloadTooLarge(f"The payload has {size} bytes; {MAX_BYTES} are allowed.")


def canonical(value: Any) -> str:
    """Return the one JSON text of `value`: names sorted, no spaces.

    Raises:
        ValueError, TypeError, RecursionError: it is no JSON value, or nested too deeply.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    steps = (1 if bracket in "[{" else -1 for bracket in _BESIDE_BRACKETS.sub("", text))
    if max(accumulate(steps), default=0) > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return text


def _explain(error: fastjsonschema.JsonSchemaValueException) -> tuple[str, str]:
    """Return the field that is wrong, as a dotted path, and what is wrong with it."""
    path = [str(part) for part in error.path[1:]]
    if error.rule == "required":
        missing = next(name for name in error.rule_definition if name not in error.value)
        return ".".join([*path, missing]), "is missing"
    if error.rule == "additionalProperties":
        known = error.definition.get("properties", {})
        surplus = next((name for name in error.value if name not in known), "")
        return ".".join([*path, surplus or '""']), "is not known"
    return ".".join(path), error.message.removeprefix(error.name or "").strip()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name appears twice in one object")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")
