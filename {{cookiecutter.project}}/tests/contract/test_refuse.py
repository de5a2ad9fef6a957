"""POST /jobs: what is not accepted, and how the caller is told."""

import json

import pytest

from tests import samples
from tests.contract.client import Caller, accepted, refused

HAPPY = json.dumps(samples.HAPPY).encode()
TOO_LARGE = b" " * 200_001
NOT_JSON = b"{"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"hello", id="text"),
        pytest.param(b'{"a": 1', id="cut off"),
        pytest.param(b'{"a": 1} {}', id="two values"),
        pytest.param(b"{'a': 1}", id="apostrophes"),
        pytest.param(b'{"a": NaN}', id="NaN"),
        pytest.param(b'{"a": -Infinity}', id="Infinity"),
        pytest.param(b'{"a": 1e999}', id="number out of range"),
        pytest.param(b'{"a": 1' + b"0" * 5000 + b"}", id="number of 5001 digits"),
        pytest.param(b'{"a": 1, "a": 1}', id="name twice"),
        pytest.param(b'{"a": {"b": 1, "b": 2}}', id="name twice, further in"),
        pytest.param(rb'{"a": "\ud800"}', id="lone surrogate"),
        pytest.param(rb'{"\udfff": 1}', id="lone surrogate in a name"),
        pytest.param(b"[" * 100_000, id="deep and cut off"),
        pytest.param(b"[" * 90_000 + b"]" * 90_000, id="deep"),
        pytest.param(b'{"a":' * 20_000 + b"1" + b"}" * 20_000, id="deep objects"),
    ],
)
def test_c16_what_is_not_json_is_refused(alice: Caller, body: bytes) -> None:
    """400 for a body that two readers could not read alike, or not at all."""
    refused(alice.post_body(body), 400, "invalid-json")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"site": "\xff"}', id="stray byte"),
        pytest.param(b'{"site": "\xed\xa0\x80"}', id="surrogate"),
        pytest.param(b'{"site": "\xc0\xaf"}', id="overlong"),
        pytest.param('{"site": "a"}'.encode("utf-16"), id="UTF-16"),
    ],
)
def test_c17_what_is_not_utf8_is_refused(unfiltered: Caller, body: bytes) -> None:
    """400 for bytes that are not UTF-8; they are not repaired."""
    refused(unfiltered.post_body(body), 400, "invalid-json")


@pytest.mark.parametrize("value", [[], [{}], "text", 1, 1.5, True, None])
def test_c18_what_is_not_an_object_is_refused(alice: Caller, value: object) -> None:
    """400 for JSON that is something else than an object."""
    refused(alice.post(value), 400, "not-an-object")


@pytest.mark.parametrize(
    "media_type",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/problem+json",
        "text/json; application/json",
    ],
)
def test_c19_another_media_type_is_refused(alice: Caller, media_type: str | None) -> None:
    """415 for what is not declared as application/json."""
    refused(alice.post_body(HAPPY, media_type=media_type), 415, "unsupported-media-type")


def test_c20_a_body_has_at_most_200000_bytes(alice: Caller) -> None:
    """200,000 bytes are accepted, one more is 413."""
    accepted(alice.post_body(HAPPY.ljust(200_000)))
    refused(alice.post_body(HAPPY.ljust(200_001)), 413, "payload-too-large")


@pytest.mark.parametrize("rule", samples.INVALID_BY_RULE)
def test_c21_what_breaks_the_schema_is_refused(alice: Caller, rule: str) -> None:
    """422 for what breaks payload.schema.json; `errors` names the field."""
    payload, field = samples.INVALID_BY_RULE[rule]

    problem = refused(alice.post(payload), 422, "invalid-payload")

    assert field in [error["field"] for error in problem["errors"]]


@pytest.mark.parametrize(
    ("body", "key", "media_type", "status", "problem"),
    [
        (TOO_LARGE, "", "text/plain", 415, "unsupported-media-type"),
        (TOO_LARGE, "", "application/json", 413, "payload-too-large"),
        (NOT_JSON, "", "application/json", 400, "invalid-idempotency-key"),
        (json.dumps([samples.INVALID]).encode(), None, "application/json", 400, "not-an-object"),
        (b'{"unknown": NaN}', None, "application/json", 400, "invalid-json"),
    ],
    ids=["media type, size", "size, key", "key, JSON", "object, schema", "JSON, schema"],
)
def test_c22_checks_come_in_a_fixed_order(
    alice: Caller, body: bytes, key: str | None, media_type: str, status: int, problem: str
) -> None:
    """Of two things that are wrong, the first is told: media type, size, key, JSON, schema."""
    refused(alice.post_body(body, key=key, media_type=media_type), status, problem)
