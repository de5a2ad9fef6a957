"""What Schemathesis is told besides docs/openapi.yaml. It runs in an environment of its own."""

from typing import Any

import schemathesis

CARRIERS = {"apigw-requestid", "connection", "content-length", "content-type", "date"}
"""Headers that HTTP and API Gateway add; every other one must be documented."""

GATEWAY = {401, 403, 404, 413}
"""Statuses that API Gateway may answer by itself, and not as a problem."""


def filter_failure(_: Any, failure: Any, case: Any, response: Any) -> bool:
    """Leave out what is reported though it is meant to be so."""
    if response.status_code == 422:  # a valid request, but its key came with another one
        return "idempotency-key-reused" not in response.text
    if "undeclared method" in failure.title:  # API Gateway answers 404, where a server would 405
        return bool(response.text != '{"message": "Not Found"}')
    if "Missing required header" in failure.title:  # and IAM 403, where a token's issuer would 401
        return bool(response.text != '{"message": "Forbidden"}')
    return True


def documented_headers(_: Any, response: Any, case: Any) -> None:
    """No answer has a header that the document does not give it."""
    documented = case.operation.responses.find_by_status_code(response.status_code)
    names = {name.lower() for name, _ in documented.headers.items()} if documented else set()
    unknown = {name.lower() for name in response.headers} - names - CARRIERS
    assert not unknown, f"undocumented headers: {sorted(unknown)}"


def problems(_: Any, response: Any, case: Any) -> None:
    """Every refusal is a problem, unless API Gateway refuses."""
    if response.status_code < 400:
        return
    kind, answer = response.headers["content-type"][0], response.json()
    if kind == "application/json" and response.status_code in GATEWAY:
        assert set(answer) == {"message"}, "a problem is application/problem+json"
        return
    assert kind == "application/problem+json", f"{response.status_code} is {kind}"
    assert answer["status"] == response.status_code
    assert "Traceback" not in response.text


schemathesis.hook(filter_failure)
for check in (documented_headers, problems):
    schemathesis.check(check)
