"""The body of a request: one JSON object, read strictly."""

import base64
import json
import math
from typing import Any, NoReturn

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from jobs.canonical import canonical
from web.problems import InvalidJson, NotAnObject, PayloadTooLarge, UnsupportedMediaType

MAX_BYTES = 200_000
"""A job with such a payload, 100,000 bytes of result and its history fits into 400 KB, the most
that a DynamoDB item can have."""


def json_body(event: APIGatewayProxyEventV2) -> bytes:
    """Return the body of a request that declares JSON; `read_object` reads it.

    Raises:
        UnsupportedMediaType, InvalidJson, PayloadTooLarge: in this order.
    """
    media_type = event.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType("Send Content-Type: application/json.")
    body = event.raw_event.get("body") or ""
    try:
        sent = base64.b64decode(body) if event.is_base64_encoded else body.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidJson("The body is not UTF-8 text.") from None
    _check_size(len(sent))
    return sent


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Stricter than `json.loads`. Two parsers may read duplicate names, NaN, numbers out of range and
    lone surrogates differently, and the payload's fingerprint must not depend on the parser.

    Raises:
        InvalidJson, NotAnObject, PayloadTooLarge: in this order.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_refuse,
        )
        size = len(canonical(value).encode("utf-8"))
    except UnicodeError:
        raise InvalidJson("The body is not UTF-8 text.") from None
    except RecursionError:
        raise InvalidJson("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise NotAnObject("Send a JSON object, such as {}.")
    _check_size(size)  # once more: the store keeps 1e22 as 1e+22
    return value


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise PayloadTooLarge(f"The payload has {size} bytes; {MAX_BYTES} are allowed.")


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
