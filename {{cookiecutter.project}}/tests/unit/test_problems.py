"""Problem details: what clients may rely on."""

import pytest

from web import problems
from web.problems import InvalidPayload, Problem

KINDS = [kind for kind in Problem.__subclasses__() if kind.__module__ == problems.__name__]

# Clients switch on these: a change here breaks them.
STABLE = {
    "invalid-json": 400,
    "not-an-object": 400,
    "invalid-idempotency-key": 400,
    "job-not-found": 404,
    "job-finished": 409,
    "job-not-retryable": 409,
    "payload-too-large": 413,
    "unsupported-media-type": 415,
    "invalid-payload": 422,
    "idempotency-key-reused": 422,
    "internal-error": 500,
    "intake-paused": 503,
    "service-unavailable": 503,
}


def test_types_and_statuses_are_stable() -> None:
    assert {kind.slug: kind.status for kind in KINDS} == STABLE


def test_a_document() -> None:
    problem = InvalidPayload("pages is missing.", errors=[{"field": "pages"}])
    assert str(problem) == "pages is missing."
    assert problem.document() == {
        "type": "urn:problem:invalid-payload",
        "title": "The body breaks the schema",
        "status": 422,
        "detail": "pages is missing.",
        "errors": [{"field": "pages"}],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_may_pass_is_worth_another_try(kind: type[Problem]) -> None:
    waits = {problems.ServiceUnavailable: "5", problems.IntakePaused: "60"}
    assert kind.headers.get("Retry-After") == waits.get(kind)
