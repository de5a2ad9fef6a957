"""Calls api.handler as API Gateway does, with the events that the laptop stack makes."""

import json
import uuid
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import yaml
from aws_lambda_powertools.utilities.typing import LambdaContext

import api
from local.http_api import event, routes
from tests.unit.emulated import AWS

OPENAPI = Path(__file__).parents[2] / "docs" / "openapi.yaml"

ROUTES, _ = routes(AWS.template)


class Context(LambdaContext):
    """What a handler may ask Lambda about its invocation."""

    def __init__(self, remaining_ms: int = 60_000) -> None:
        self._function_name = "unit-test"
        self._memory_limit_in_mb = 512
        self._invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:unit-test"
        self._aws_request_id = str(uuid.uuid4())
        self.remaining_ms = remaining_ms

    def get_remaining_time_in_millis(self) -> int:  # type: ignore[override]
        """Return the milliseconds that are left."""
        return self.remaining_ms


@dataclass(frozen=True)
class Answer:
    """An answer of the API; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.text)

    @property
    def problem(self) -> str:
        """What the type of the problem says."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.body["status"] == self.status
        return str(self.body["type"]).removeprefix("urn:problem:")


def request(
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    caller: str = "local",
) -> dict[str, Any]:
    """Return the event of a request."""
    message = Message()
    message["X-Local-Caller"] = caller
    for name, value in (headers or {}).items():
        message[name] = value
    for route in ROUTES:
        if route.match(method, path) is not None:
            return event(route, method, path, message, body)
    raise LookupError(f"template.yaml has no route for {method} {path}")


def answer(event: dict[str, Any]) -> Answer:
    """Have an event answered."""
    made = api.handler(event, Context())
    headers = {name.lower(): value for name, value in made["headers"].items()}
    return Answer(made["statusCode"], headers, made["body"])


def post(payload: object, key: str | None = None, caller: str = "local") -> Answer:
    """Ask for a job."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    return answer(request("POST", "/jobs", json.dumps(payload).encode(), headers, caller))


def shown_problems(document: object = None) -> dict[str, Any]:
    """Return the problems that docs/openapi.yaml shows as examples, by type."""
    if document is None:
        document = yaml.safe_load(OPENAPI.read_text("utf-8"))
    if isinstance(document, list):
        document = dict(enumerate(document))
    if not isinstance(document, dict):
        return {}
    if str(document.get("type")).startswith("urn:problem:"):
        return {document["type"]: document}
    parts = document.values()
    return {name: problem for part in parts for name, problem in shown_problems(part).items()}


def get(job_id: str, caller: str = "local") -> Answer:
    """Ask for a job's status."""
    return answer(request("GET", f"/jobs/{job_id}", caller=caller))


def cancel(job_id: str, caller: str = "local") -> Answer:
    """Ask for a job to be cancelled."""
    return answer(request("POST", f"/jobs/{job_id}/cancel", caller=caller))


def retry(job_id: str, caller: str = "local") -> Answer:
    """Ask for another go of a job."""
    return answer(request("POST", f"/jobs/{job_id}/retry", caller=caller))
