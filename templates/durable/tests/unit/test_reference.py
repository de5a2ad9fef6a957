"""The reference to a job in a message."""

import pytest

from jobs.reference import NotAReference, Reference


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (Reference("17"), '{"job_id": "17"}'),
        (Reference("17", retry_of=0), '{"job_id": "17", "retry_of": 0}'),
    ],
)
def test_there_and_back(reference: Reference, text: str) -> None:
    assert reference.dumps() == text
    assert Reference.loads(text) == reference


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the message is not JSON"),
        ("job 17", "the message is not JSON"),
        ("[]", "the message has no job_id"),
        ("{}", "the message has no job_id"),
        ('{"job_id": 17}', "the message has no job_id"),
        ('{"job_id": "17", "retry_of": "3"}', "the message's retry_of is not a whole number"),
        ('{"job_id": "17", "retry_of": null}', "the message's retry_of is not a whole number"),
        ('{"job_id": "17", "retry_of": true}', "the message's retry_of is not a whole number"),
    ],
)
def test_what_is_no_reference(text: str, why: str) -> None:
    with pytest.raises(NotAReference) as error:
        Reference.loads(text)
    assert str(error.value) == why
