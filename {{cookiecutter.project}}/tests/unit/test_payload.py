"""The payload: strict JSON that obeys payload.schema.json."""

import json

import fastjsonschema
import pytest

from tests import samples
from web import payload
from web.body import MAX_BYTES, read_object
from web.payload import parse_payload
from web.problems import InvalidJson, InvalidPayload, NotAnObject, PayloadTooLarge, Problem


def test_a_payload_is_taken_as_it_is() -> None:
    assert parse_payload(json.dumps(samples.HAPPY).encode()) == samples.HAPPY


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "cannot be read: Expecting value"),
        (b"{", "cannot be read: Expecting property name"),
        (b"{} {}", "cannot be read: Extra data"),
        (b"{'site': 1}", "cannot be read: Expecting property name"),
        (b'{"site": "a", "site": "a"}', "cannot be read: a name appears twice in one object."),
        (b'{"in": {"a": 1, "a": 2}}', "cannot be read: a name appears twice in one object."),
        (b'{"pages": NaN}', "cannot be read: NaN is not a JSON value."),
        (b'{"pages": -Infinity}', "cannot be read: -Infinity is not a JSON value."),
        (b'{"pages": 1e400}', "cannot be read: 1e400 is out of range."),
        (b'{"pages": -1e400}', "cannot be read: -1e400 is out of range."),
        (b'{"pages": ' + b"9" * 5_000 + b"}", "cannot be read: Exceeds the limit"),
        (b'{"site": "\xff"}', "is not UTF-8 text."),
        (b'\xef\xbb\xbf{"site": "a"}', "cannot be read: Unexpected UTF-8 BOM"),
        (rb'{"site": "\ud800"}', "is not UTF-8 text."),
        (b"[" * 100_000, "is nested too deeply."),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "cannot be read: it is nested more than 100 levels"),
    ],
)
def test_what_is_not_plain_json(body: bytes, detail: str) -> None:
    with pytest.raises(InvalidJson) as problem:
        parse_payload(body)
    assert problem.value.detail.startswith(f"The body {detail}")


def test_an_object_may_have_many_names() -> None:
    many = {str(number): number for number in range(1_000)}
    assert read_object(json.dumps(many).encode()) == many


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"text"', b"true"])
def test_what_is_no_object(body: bytes) -> None:
    with pytest.raises(NotAnObject) as problem:
        parse_payload(body)
    assert problem.value.detail == "Send a JSON object, such as {}."


def test_what_counts_is_the_size_that_is_stored() -> None:
    body = b'{"numbers":[' + b",".join([b"1e22"] * 39_000) + b"]}"  # each is stored as 1e+22
    assert len(body) < MAX_BYTES

    with pytest.raises(PayloadTooLarge, match="The payload has 234013 bytes"):
        parse_payload(body)


@pytest.mark.parametrize("rule", samples.INVALID_BY_RULE)
def test_what_breaks_the_schema_names_the_field(rule: str) -> None:
    broken, field = samples.INVALID_BY_RULE[rule]

    problem = refusal(broken)

    assert isinstance(problem, InvalidPayload)
    (error,) = problem.members["errors"]
    assert error["field"] == field
    assert problem.detail == f"{field} {error['detail']}."


def refusal(value: object) -> Problem:
    """Return the problem that a payload is refused with."""
    with pytest.raises(Problem) as problem:
        parse_payload(json.dumps(value).encode())
    return problem.value


@pytest.fixture
def _nested(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that asks for {"sites": [{"host": ...}, ...]}."""
    host = {
        "type": "object",
        "properties": {"host": {"type": "string", "maxLength": 3}, "port": {"type": "integer"}},
        "required": ["host", "port"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"sites": {"type": "array", "items": host}},
        "minProperties": 1,
    }
    compiled = fastjsonschema.compile(schema, use_default=False)
    monkeypatch.setattr(payload, "_validate", compiled)


@pytest.mark.usefixtures("_nested")
@pytest.mark.parametrize(
    ("value", "field", "detail"),
    [
        ({"sites": [{"host": "a", "port": "b"}]}, "sites.0.port", "must be integer"),
        ({"sites": [{"host": "abcd", "port": 1}]}, "sites.0.host", "must be shorter than or"),
        ({"sites": [{"host": "a"}]}, "sites.0.port", "is missing"),
        ({"sites": [{"host": "a", "port": 1, "x": 1}]}, "sites.0.x", "is not known"),
        ({"sites": [{"host": "a", "port": 1, "": 1}]}, 'sites.0.""', "is not known"),
        ({}, "", "must contain at least 1 properties"),
    ],
)
def test_a_field_is_named_by_its_path(value: object, field: str, detail: str) -> None:
    problem = refusal(value)
    (error,) = problem.members["errors"]
    assert error["field"] == field
    assert error["detail"].startswith(detail)
    assert problem.detail == f"{field or 'The payload'} {error['detail']}."
