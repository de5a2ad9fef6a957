"""The contract holds below an API mapping and in a named stage, whatever `rawPath` has of them."""

from email.message import Message
from typing import Any

import pytest

from local import http_api
from local.stack import Stack
from tests.conftest import Oven

PARAMETERS = {"RetryBaseSeconds": "0", "MaxAttempts": "3", "BasePath": "/orders/v1"}
TESTS = ("accept", "gateway")


@pytest.mark.parametrize(
    ("base", "stage", "kept"),
    [
        ("/orders/v1", "$default", ""),  # as AWS describes it
        ("/orders/v1", "prod", "/orders/v1"),  # as others have seen it
        ("/prod", "prod", "/prod"),  # at API Gateway's own domain
    ],
)
def test_the_contract_holds_below(
    base: str, stage: str, kept: str, baked: Oven, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = baked(auth="none")
    made = http_api.event

    def event(route: Any, method: str, target: str, headers: Message, body: bytes) -> Any:
        found = made(route, method, target, headers, body)
        found["rawPath"] = kept + found["rawPath"]
        found["requestContext"] |= {"stage": stage}
        return found

    respond = http_api.Front.respond

    def mapped(front: http_api.Front, method: str, target: str, *rest: Any) -> Any:
        return respond(front, method, target.removeprefix(base), *rest)

    monkeypatch.setattr(http_api, "event", event)
    monkeypatch.setattr(http_api.Front, "respond", mapped)
    with Stack(project.path, parameters=PARAMETERS) as stack:
        monkeypatch.setenv("API_URL", stack.url + base)
        project.run("pytest", "-q", *(f"tests/contract/test_{name}.py" for name in TESTS))
