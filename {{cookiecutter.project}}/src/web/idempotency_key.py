"""The Idempotency-Key header."""

import re

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from web.problems import InvalidIdempotencyKey

_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')


def idempotency_key(event: APIGatewayProxyEventV2) -> str | None:
    """Return the request's key, or None when it has none.

    Raises:
        InvalidIdempotencyKey: the header holds no key.
    """
    header = event.headers.get("idempotency-key")
    return None if header is None else parse_key(header)


def parse_key(header: str) -> str:
    """Return the key in an `Idempotency-Key` header: bare, or a string of RFC 8941.

    Raises:
        InvalidIdempotencyKey: it is not 1 to 255 printable ASCII characters.
    """
    key = header.strip(" \t")
    if quoted := _QUOTED.fullmatch(key):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey("A key has 1 to 255 printable ASCII characters.")
    return key
