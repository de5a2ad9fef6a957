"""The Idempotency-Key header."""

import re

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from web.problems import InvalidIdempotencyKey

_BARE = re.compile(r"[ !#-+\--~]{1,255}")  # printable ASCII but quotation mark and comma
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\]){1,255})"')


def idempotency_key(event: APIGatewayProxyEventV2) -> str | None:
    """Return the request's key, or None when it has none.

    Raises:
        InvalidIdempotencyKey: the header holds no key.
    """
    header = event.headers.get("idempotency-key")
    return None if header is None else parse_key(header)


def parse_key(header: str) -> str:
    """Return the key in an `Idempotency-Key` header: bare, or a string of RFC 9651.

    API Gateway joins repeated headers with commas, so a bare key has none: two keys are no key.

    Raises:
        InvalidIdempotencyKey: it is neither.
    """
    key = header.strip(" \t")
    if quoted := _QUOTED.fullmatch(key):
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(key):
        raise InvalidIdempotencyKey(
            "Send one key of 1 to 255 printable ASCII characters."
            " Quote it if it has a comma or a quotation mark."
        )
    return key
