"""docs/openapi.yaml: it is valid and agrees with the rest of the project."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from openapi_spec_validator import validate

from local.openapi import payload_schemas
from local.template import Template
from tests import samples
from tests.contract.openapi import DOCUMENT, Contract
from web.problems import Problem

PROJECT = Path(__file__).parents[2]
OPENAPI: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text("utf-8"))
PAYLOAD = Draft7Validator(json.loads((PROJECT / "src" / "payload.schema.json").read_text("utf-8")))
VERBS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}

JOB = OPENAPI["components"]["examples"]


def test_the_document_is_openapi() -> None:
    """It holds to OpenAPI 3.1, and every reference in it leads somewhere."""
    validate(OPENAPI)


def test_the_document_has_the_schema_of_the_payload() -> None:
    """It stands alone: client generators do not read src/payload.schema.json."""
    schemas = OPENAPI["components"]["schemas"]
    copy = {name: schema for name, schema in schemas.items() if name.startswith("Payload")}

    assert copy == payload_schemas(PROJECT), "run `python -m local.openapi` to copy it again"


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
