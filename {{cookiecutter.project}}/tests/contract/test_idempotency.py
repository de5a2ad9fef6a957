"""POST /jobs with an Idempotency-Key: a request that may be sent again."""

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests import samples
from tests.contract.client import Caller, accepted, refused


@pytest.fixture
def key() -> str:
    """A key that nobody has used before."""
    return str(uuid.uuid4())


def test_c06_the_same_request_again_is_the_same_job(alice: Caller, key: str) -> None:
    """Same key, same payload: 202 with the job as it is now, and Idempotent-Replayed: true."""
    first = alice.post(samples.HAPPY, key=key)
    done = alice.wait_for(accepted(first)["job_id"], "completed")

    again = alice.post(samples.HAPPY, key=key)

    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert accepted(again) == done
    assert alice.get(done["job_id"]).json() == done


def test_c07_payloads_are_compared_as_json(alice: Caller, key: str) -> None:
    """Another order of members and other white space make no other payload."""
    rewritten = json.dumps(dict(reversed(samples.HAPPY.items())), indent=3)

    first = alice.post(samples.HAPPY, key=key)
    again = alice.post_body(rewritten.encode(), key=key)

    assert accepted(again)["job_id"] == accepted(first)["job_id"]
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    ("bare", "quoted"),
    [("{}", '"{}"'), ("order {}", '"order {}"'), (r"back\slash {}", r'"back\\slash {}"')],
)
def test_c08_a_key_may_be_quoted(alice: Caller, key: str, bare: str, quoted: str) -> None:
    """A bare key and the same key as a structured-field string are one key."""
    first = alice.post(samples.HAPPY, key=bare.format(key))
    again = alice.post(samples.HAPPY, key=quoted.format(key))

    assert accepted(again)["job_id"] == accepted(first)["job_id"]
    assert again.headers["idempotent-replayed"] == "true"


def test_c09_a_key_belongs_to_its_payload(alice: Caller, key: str) -> None:
    """Same key, other payload: 422, and the job of the key is not touched."""
    job_id = accepted(alice.post(samples.HAPPY, key=key))["job_id"]
    done = alice.wait_for(job_id, "completed")

    refused(alice.post(samples.OTHER, key=key), 422, "idempotency-key-reused")

    assert alice.get(job_id).json() == done


def test_c10_a_key_belongs_to_its_caller(alice: Caller, bob: Caller, key: str) -> None:
    """Another caller's equal key is another key, whatever the payload."""
    hers = accepted(alice.post(samples.HAPPY, key=key))

    his = bob.post(samples.OTHER, key=key)

    assert accepted(his)["job_id"] != hers["job_id"]
    assert "idempotent-replayed" not in his.headers


@pytest.mark.parametrize(
    "refuse",
    [
        pytest.param(lambda a, k: a.post_body(b"{", key=k), id="invalid-json"),
        pytest.param(lambda a, k: a.post([], key=k), id="not-an-object"),
        pytest.param(lambda a, k: a.post(samples.INVALID, key=k), id="invalid-payload"),
        pytest.param(lambda a, k: a.post_body(b" " * 200_001, key=k), id="payload-too-large"),
        pytest.param(
            lambda a, k: a.post_body(b"{}", key=k, media_type="text/plain"),
            id="unsupported-media-type",
        ),
    ],
)
def test_c11_a_refused_request_does_not_use_its_key_up(
    alice: Caller, key: str, refuse: Callable[[Caller, str], httpx.Response]
) -> None:
    """After a refusal the same key makes a new job."""
    assert refuse(alice, key).is_client_error

    response = alice.post(samples.HAPPY, key=key)

    assert accepted(response)["status"] == "queued"
    assert "idempotent-replayed" not in response.headers


def test_c12_twenty_at_once_make_one_job(alice: Caller, key: str) -> None:
    """Twenty equal requests at the same time: twenty 202, one job, which runs once."""
    with ThreadPoolExecutor(20) as pool:
        responses = list(pool.map(lambda _: alice.post(samples.HAPPY, key=key), range(20)))

    (job_id,) = {accepted(response)["job_id"] for response in responses}
    assert sum("idempotent-replayed" not in response.headers for response in responses) == 1
    assert alice.wait_for(job_id, "completed")["attempts"] == 1


@pytest.mark.parametrize("length", [1, 255])
def test_c13_a_key_has_1_to_255_characters(alice: Caller, key: str, length: int) -> None:
    """The shortest and the longest key are accepted, bare and quoted."""
    text = (key * 8)[-length:]

    bare = alice.post(samples.HAPPY, key=text)
    quoted = alice.post(samples.HAPPY, key=f'"{text}"')

    assert accepted(bare)["job_id"] == accepted(quoted)["job_id"]


@pytest.mark.parametrize(
    "bad", ['""', "k" * 256, f'"{"k" * 256}"', "a,a", '"a", "b"', '"abc', 'a"b', '"a";v=1']
)
def test_c14_what_is_no_single_key_is_refused(alice: Caller, bad: str) -> None:
    """400 for 0 and for 256 characters, and for what may be two keys or half of one."""
    refused(alice.post(samples.HAPPY, key=bad), 400, "invalid-idempotency-key")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"a\x01b", id="control character"),
        pytest.param(b"a\tb", id="tab"),
        pytest.param(b"a\x7fb", id="delete"),
        pytest.param("schlüssel".encode(), id="UTF-8"),
        pytest.param("schlüssel".encode("latin-1"), id="Latin-1"),
    ],
)
def test_c15_a_key_is_printable_ascii(unfiltered: Caller, bad: bytes) -> None:
    """400 for a key with any other character."""
    refused(unfiltered.post(samples.HAPPY, key=bad), 400, "invalid-idempotency-key")
