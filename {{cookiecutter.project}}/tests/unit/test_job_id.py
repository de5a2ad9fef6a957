"""Job ids, and the idempotency keys that they are derived from."""

import uuid

import pytest

from jobs.job_id import is_job_id, job_id_for
from web.idempotency_key import parse_key
from web.problems import InvalidIdempotencyKey


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("order-17", "order-17"),
        ("  X 17 X\t", "X 17 X"),
        ('"order-17"', "order-17"),
        (r'"a \"quoted\" \\ key"', r'a "quoted" \ key'),
        (r"a\b", r"a\b"),
        ('"a, b"', "a, b"),
        ("~" * 255, "~" * 255),
        (f'"{"~" * 255}"', "~" * 255),
    ],
)
def test_a_key_comes_bare_or_quoted(header: str, key: str) -> None:
    assert parse_key(header) == key


@pytest.mark.parametrize(
    "header",
    [
        *("", " ", '""', "~" * 256, f'"{"~" * 256}"', "a\tb", "a\x00b", "\x7f", "\x1fa", "clé"),
        # two keys, or half of one
        *("a,a", "a, b", '"a", "b"', '"a","a"', '"abc', 'abc"', '"a"b"', '"a"; v=1', r'"\a"'),
    ],
)
def test_an_invalid_key(header: str) -> None:
    with pytest.raises(InvalidIdempotencyKey) as problem:
        parse_key(header)
    assert problem.value.detail.startswith("Send one key of 1 to 255 printable ASCII characters.")


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


@pytest.mark.parametrize(
    "text",
    ["", "17", "A" * 36, f"{uuid.UUID(int=4)}0", "51321B3F-EF02-52B1-BEF5-CBF9F335C8D8"],
)
def test_what_is_no_job_id(text: str) -> None:
    assert not is_job_id(text)
    assert is_job_id(job_id_for("alice", None))
