"""docs/openapi.yaml: it is valid, agrees with the rest of the project, and can be broken."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from jsonschema import Draft7Validator
from openapi_spec_validator import validate

from local.template import Template
from tests import samples
from tests.contract.openapi import DOCUMENT, Contract, ContractBroken
from web.problems import Problem

PROJECT = Path(__file__).parents[2]
OPENAPI: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text("utf-8"))
PAYLOAD = Draft7Validator(json.loads((PROJECT / "src" / "payload.schema.json").read_text("utf-8")))
VERBS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}

JOB = OPENAPI["components"]["examples"]
CREATED = JOB["Queued"]["value"]
LOCATION = f"/jobs/{CREATED['job_id']}"
BARE = {"Location": None, "Retry-After": None}


def test_the_document_is_openapi() -> None:
    """It holds to OpenAPI 3.1, and every reference in it leads somewhere."""
    validate(OPENAPI, base_uri=DOCUMENT.as_uri())


def test_the_document_has_the_routes_of_the_stack() -> None:
    """The routes in template.yaml are the operations in the document."""
    events = [
        event["Properties"]
        for function in Template.load(PROJECT / "template.yaml").functions()
        for event in function.events.values()
        if event["Type"] == "HttpApi"
    ]

    assert {(event["Method"].lower(), event["Path"]) for event in events} == {
        (verb, path) for path, item in OPENAPI["paths"].items() for verb in VERBS & item.keys()
    }


def test_the_document_has_every_problem() -> None:
    """Each type of problem that the code knows is documented, and no other one is."""
    known = {f"urn:problem:{problem.slug}" for problem in Problem.__subclasses__()}
    if Contract(OPENAPI).auth != "bearer":  # only a token can come without a caller
        known.remove("urn:problem:unauthenticated")

    assert {text for text in _strings(OPENAPI) if text.startswith("urn:problem:")} == known


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def _examples() -> Iterator[tuple[str, object]]:
    for name, response in OPENAPI["components"]["responses"].items():
        for media_type, content in response["content"].items():
            schema = f"#/components/responses/{name}/content/{media_type.replace('/', '~1')}/schema"
            if "example" in content:
                yield schema, content["example"]
            for example in content.get("examples", {}).values():
                found = JOB[example["$ref"].rpartition("/")[2]] if "$ref" in example else example
                yield schema, found["value"]


@pytest.mark.parametrize(("schema", "example"), [*_examples()])
def test_examples_keep_to_their_schema(schema: str, example: object) -> None:
    """What the document shows is what it says."""
    Contract(OPENAPI).check_value(example, schema, "the example")


@pytest.mark.parametrize("rule", samples.INVALID_BY_RULE)
def test_invalid_samples_break_one_rule(rule: str) -> None:
    """What the tests send as a bad payload breaks the schema in one place."""
    payload, field = samples.INVALID_BY_RULE[rule]

    (error,) = PAYLOAD.iter_errors(payload)

    place = "".join(f"{part}." for part in error.path)
    assert field in [(place + name).rstrip(".") for name in ("", *error.message.split("'"))]


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
        (answer(job={"status": "running"}), "'started_at' is a required property"),
        (answer(job={"created_at": "2026-01-31 09:30"}), "created_at"),
        (answer(job={"result": {}}), "result"),
        (answer(job=JOB["Completed"]["value"] | {"result": None}), "'result' is a required"),
        (answer(job=JOB["Failed"]["value"] | {"error": None}), "'error' is a required"),
        (answer(job=JOB["Cancelled"]["value"] | {"finished_at": None}), "'finished_at' is a"),
        (answer(job=JOB["Cancelled"]["value"]), "Retry-After should"),
        (answer(job=JOB["Running"]["value"] | {"history": CREATED["history"]}), "does not end"),
        (answer(500, headers=BARE, body={"message": 'File "api.py", line 1'}), "stack trace"),
    ],
)
def test_a_wrong_answer_is_noticed(wrong: httpx.Response, says: str) -> None:
    """Each promise that the check keeps, broken once."""
    with pytest.raises(ContractBroken, match=says):
        Contract(OPENAPI).check(wrong)
