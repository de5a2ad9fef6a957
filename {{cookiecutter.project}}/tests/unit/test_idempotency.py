"""Idempotency-Key: how it is read, and the job that it stands for."""

import uuid

import pytest

from jobs.idempotency import fingerprint, job_id_for, parse_key
from jobs.payload import canonical
from jobs.problems import InvalidIdempotencyKey


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("order-17", "order-17"),
        ("  X 17 X\t", "X 17 X"),
        ('"order-17"', "order-17"),
        (r'"a \"quoted\" \\ key"', r'a "quoted" \ key'),
        ('"not closed', '"not closed'),
        (r'"wrong \escape"', r'"wrong \escape"'),
        ("~" * 255, "~" * 255),
        (f'"{"~" * 255}"', "~" * 255),
    ],
)
def test_a_key_comes_bare_or_quoted(header: str, key: str) -> None:
    assert parse_key(header) == key


@pytest.mark.parametrize(
    "header",
    ["", " ", '""', "~" * 256, f'"{"~" * 256}"', "a\tb", "a\x00b", "\x7f", "\x1fa", "clé", "鍵"],
)
def test_what_is_no_key(header: str) -> None:
    with pytest.raises(InvalidIdempotencyKey) as problem:
        parse_key(header)
    assert problem.value.detail == "A key has 1 to 255 printable ASCII characters."


def test_a_key_always_gives_the_same_job() -> None:
    # Written out: with another derivation, old keys would start new jobs.
    assert job_id_for("alice", "order-17") == "51321b3f-ef02-52b1-bef5-cbf9f335c8d8"


def test_no_two_keys_give_one_job() -> None:
    asked = [("alice", "17"), ("bob", "17"), ("alice", "18"), ("alice1", "7"), ('alice", "1', "7")]
    assert len({job_id_for(owner, key) for owner, key in asked}) == len(asked)


def test_without_a_key_each_job_is_new() -> None:
    first, second = job_id_for("alice", None), job_id_for("alice", None)
    assert first != second
    assert uuid.UUID(first).version == uuid.UUID(second).version == 4


def test_a_fingerprint_tells_payloads_apart_not_their_spelling() -> None:
    assert canonical({"b": [1, True, None], "a": "é"}) == '{"a":"é","b":[1,true,null]}'
    assert fingerprint(canonical({"a": 1, "b": 2})) == fingerprint(canonical({"b": 2, "a": 1}))
    assert fingerprint(canonical({"a": 1})) != fingerprint(canonical({"a": 2}))
    known = "b3a092a6af48807fa9482b2ee140105575daa26d5b24b3c0e60a7e2dee6683b1"
    assert fingerprint('{"a":"é"}') == known
