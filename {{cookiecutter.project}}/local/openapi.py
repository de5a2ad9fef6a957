"""docs/openapi.yaml: one document that tools can read alone, so it holds the payload's schema.

`python -m local.openapi` copies src/payload.schema.json into it: to `Payload` in
components/schemas, and what stands in `definitions` to names that begin with `Payload`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

_COPY = re.compile(r"(?m)(?:^    Payload[\w.-]*:.*\n(?:\n* {5}.*\n)*)+")
_SHELVES = ("definitions", "$defs")


def payload_schemas(project: Path) -> dict[str, Any]:
    """Return src/payload.schema.json as components of an OpenAPI document, by name."""
    schema = json.loads((project / "src" / "payload.schema.json").read_text(encoding="utf-8"))
    parts = {"": {k: v for k, v in schema.items() if k not in ("$schema", "$id", *_SHELVES)}}
    parts |= {k: v for shelf in _SHELVES for k, v in schema.get(shelf, {}).items()}
    return {_name(part): _moved(content) for part, content in parts.items()}


def _name(part: str) -> str:
    return f"Payload{part[:1].upper()}{part[1:]}"


def _moved(node: Any) -> Any:
    """Return a part of the schema with its references as they are in the document."""
    if isinstance(node, list):
        return [_moved(item) for item in node]
    if not isinstance(node, dict):
        return node
    moved = {key: _moved(value) for key, value in node.items()}
    if isinstance(target := node.get("$ref"), str) and target.startswith("#"):
        found = re.match(r"#/(?:definitions|\$defs)/([^/]+)", target)
        name, rest = (_name(found[1]), target[found.end() :]) if found else ("Payload", target[1:])
        moved["$ref"] = f"#/components/schemas/{name}{rest}"
    return moved


def updated(project: Path) -> str:
    """Return the text of docs/openapi.yaml with the payload's schema as it is now.

    Raises:
        ValueError: The document has no place for it; one line.
    """
    text = (project / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    old = _COPY.search(text, max(text.find("\n  schemas:\n"), 0))
    if old is None:
        raise ValueError("docs/openapi.yaml: add `Payload: {}` to components/schemas")
    copy = yaml.safe_dump(payload_schemas(project), sort_keys=False, allow_unicode=True, width=92)
    block = "".join(f"    {line}\n" for line in copy.splitlines())
    return text[: old.start()] + block + text[old.end() :]


def document(project: Path, server: str) -> dict[str, Any]:
    """Return docs/openapi.yaml of an API that runs at `server`, with the payload's schema."""
    read: dict[str, Any] = yaml.safe_load(updated(project))
    return read | {"servers": [{"url": server}]}


def main(project: Path) -> int:
    """Copy the payload's schema into docs/openapi.yaml. Returns the exit code."""
    try:
        text = updated(project)
    except (OSError, ValueError) as error:
        print(f"local.openapi: {error}", file=sys.stderr)
        return 2
    (project / "docs" / "openapi.yaml").write_text(text, encoding="utf-8", newline="\n")
    print("docs/openapi.yaml has the schema of src/payload.schema.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
