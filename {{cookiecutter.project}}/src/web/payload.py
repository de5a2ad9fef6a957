"""The payload of a new job, validated against payload.schema.json."""

import json
from pathlib import Path
from typing import Any

import fastjsonschema

from web.body import read_object
from web.problems import InvalidPayload

_SCHEMA = Path(__file__).parent.parent / "payload.schema.json"
try:
    _validate = fastjsonschema.compile(json.loads(_SCHEMA.read_text("utf-8")), use_default=False)
except ValueError as error:
    raise ValueError(f"payload.schema.json is not a JSON schema: {error}") from error


def parse_payload(body: bytes) -> dict[str, Any]:
    """Return the payload in a request's body.

    Raises:
        InvalidJson, NotAnObject, PayloadTooLarge, InvalidPayload: in this order.
    """
    payload = read_object(body)
    try:
        _validate(payload)
    except fastjsonschema.JsonSchemaValueException as error:
        field, detail = _explain(error)
        raise InvalidPayload(
            f"{field or 'The payload'} {detail}.", errors=[{"field": field, "detail": detail}]
        ) from None
    return payload


def _explain(error: fastjsonschema.JsonSchemaValueException) -> tuple[str, str]:
    """Return the wrong field as a dotted path, and what is wrong with it."""
    path = [str(part) for part in error.path[1:]]
    if error.rule == "required":
        missing = next(name for name in error.rule_definition if name not in error.value)
        return ".".join([*path, missing]), "is missing"
    if error.rule == "additionalProperties":
        known = error.definition.get("properties", {})
        surplus = next((name for name in error.value if name not in known), "")
        return ".".join([*path, surplus or '""']), "is not known"
    return ".".join(path), error.message.removeprefix(error.name or "").strip()
