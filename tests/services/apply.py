"""Makes a service of a generated project: its files replace those of the project, or edit them.

A file that begins with `@@` holds edits, in the order of the lines that they change:
`@@ after: LINE` and `@@ before: LINE` look for the next such line; what follows is inserted there.
"""

from pathlib import Path

from local import openapi
from tests.helpers.baked import tree

FOLDER = Path(__file__).parent


def files(service: str) -> dict[str, str]:
    """Return the files that a service touches, by their path in the project."""
    found = tree(FOLDER / service)
    return {name: text.decode() for name, text in found.items() if "__pycache__" not in name}


def apply(service: str, project: Path) -> None:
    """Turn the project into the service.

    Raises:
        LookupError: a line that an edit looks for is not there.
    """
    for name, text in files(service).items():
        path = project / name
        changed = _edited(path.read_text("utf-8"), text) if text.startswith("@@") else text
        path.write_text(changed, encoding="utf-8")
    openapi.main(project)  # as its author does after a change of src/payload.schema.json


def _edited(original: str, edits: str) -> str:
    lines, place = original.splitlines(), 0
    for line in edits.splitlines():
        if not line.startswith("@@ "):
            lines.insert(place, line)
            place += 1
            continue
        where, _, anchor = line.removeprefix("@@ ").partition(": ")
        try:
            place = lines.index(anchor, place) + (where == "after")
        except ValueError:
            raise LookupError(f"no line after line {place} is {anchor!r}") from None
    return "\n".join(lines) + "\n"
