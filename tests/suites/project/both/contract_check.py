"""The check of tests/contract/openapi.py: it passes a good answer and notices a wrong one."""

import json
from typing import Any

import httpx
import pytest
import yaml

from tests.contract.openapi import DOCUMENT, Contract, ContractBroken
from tests.unit.client import shown_problems

OPENAPI: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text("utf-8"))
JOB = OPENAPI["components"]["examples"]
CREATED = JOB["Queued"]["value"]
LOCATION = f"/jobs/{CREATED['job_id']}"
BARE = {"Location": None, "Retry-After": None}
PROBLEM = BARE | {"Content-Type": "application/problem+json"}
REUSED = shown_problems(OPENAPI)["urn:problem:idempotency-key-reused"]
ERROR = JOB["Failed"]["value"]["error"]


def answer(
    status: int = 202, path: str = "/jobs", method: str = "POST", **changes: object
) -> httpx.Response:
    """Return an answer to a POST of a job as it should be, but for these changes.

    `headers` are added, or removed with None; `job` replaces members, or removes them with None;
    `body` replaces it all.
    """
    job = _changed(CREATED, changes.get("job", {}))
    usual = {"Location": LOCATION, "Retry-After": "2", "Cache-Control": "no-store"}
    usual["Content-Type"] = "application/json"
    return httpx.Response(
        status,
        headers=_changed(usual, changes.get("headers", {})),
        content=json.dumps(changes.get("body", job)).encode(),
        request=httpx.Request(method, f"http://api.example{path}"),
    )


def _changed(values: dict[str, Any], changes: Any) -> dict[str, Any]:
    return {name: v for name, v in (values | changes).items() if v is not None}


def test_a_good_answer_passes() -> None:
    """Otherwise the next test would show nothing."""
    Contract(OPENAPI).check(answer())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (answer(201), "status is not documented"),
        (answer(path="/elsewhere"), "no such route"),
        (answer(method="PUT"), "no such route"),
        (answer(headers={"Location": None}), "Location is missing"),
        (answer(headers={"Location": "/jobs/1"}), "Location: "),
        (answer(headers={"Location": LOCATION[:-1] + "2"}), "names another job"),
        (answer(headers={"Cache-Control": "max-age=60"}), "Cache-Control: "),
        (answer(headers={"Retry-After": None}), "Retry-After should"),
        (answer(headers={"Retry-After": "soon"}), "Retry-After: "),
        (answer(headers={"Retry-After": "0"}), "Retry-After: "),
        (answer(headers={"X-Powered-By": "us"}), "x-powered-by"),
        (answer(headers={"Idempotent-Replayed": "false"}), "Idempotent-Replayed: "),
        (answer(headers={"Content-Type": "text/plain"}), "media type"),
        (answer(job={"owner": "alice"}), "'owner' was unexpected"),
        (answer(job={"history": None}), "'history' is a required property"),
        (answer(job={"history": []}), "history"),
        (answer(job={"status": "done"}), "status"),
        (answer(job={"status": "running"}), "started_at"),
        (answer(job={"created_at": "2026-01-31 09:30"}), "created_at"),
        (answer(job={"result": {}}), "result"),
        (answer(job=JOB["Completed"]["value"] | {"result": None}), "result should"),
        (answer(job=JOB["Failed"]["value"] | {"error": None}), "error"),
        (answer(job=JOB["Cancelled"]["value"] | {"finished_at": None}), "finished_at should"),
        (answer(job=JOB["Cancelled"]["value"]), "Retry-After should"),
        (answer(job=JOB["Running"]["value"] | {"history": CREATED["history"]}), "does not end"),
        (answer(job=JOB["Completed"]["value"] | {"error": ERROR}), "error"),
        (answer(400, headers=PROBLEM, body=REUSED), "key-reused is not documented"),
        (answer(422, headers=PROBLEM, body=REUSED | {"status": 400}), "another status"),
        (answer(422, headers=PROBLEM, body=REUSED | {"errors": []}), "errors"),
        (answer(500, headers=BARE, body={"message": 'File "api.py", line 1'}), "stack trace"),
    ],
)
def test_a_wrong_answer_is_noticed(wrong: httpx.Response, says: str) -> None:
    """Each promise that the check keeps, broken once."""
    with pytest.raises(ContractBroken, match=says):
        Contract(OPENAPI).check(wrong)
