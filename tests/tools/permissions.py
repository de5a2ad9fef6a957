"""Write the tables of docs/permissions.md: the AWS calls of each function.

    python -m tests.tools.permissions

Runs jobs of each variant on the laptop stack and records their calls.
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tests import KIT
from tests.helpers.baked import QUESTIONS, bake, copy_kit

if TYPE_CHECKING:
    from tests.helpers.permissions.calls import Call

PAGE = KIT / "docs" / "permissions.md"
MARK = "<!-- From here on written by `python -m tests.tools.permissions`. -->\n"

_TITLES = {"queue": "Queue", "durable": "Durable function"}


def tables(calls: dict[str, list["Call"]]) -> str:
    """Return the generated part of the page, from each variant's calls."""
    lines = [MARK]
    for worker, every in calls.items():
        lines.append(f"\n## {_TITLES[worker]}\n")
        for function, own in groupby(every, key=lambda call: call.function):
            lines.append(
                f"\n### {worker}: {function}\n\n| On | Actions | By |\n| --- | --- | --- |\n"
            )
            lines += [f"| {' | '.join(row)} |\n" for row in _rows(own)]
    return "".join(lines)


def _rows(calls: "Iterable[Call]") -> Iterator[tuple[str, str, str]]:
    """Yield resource, actions and code; actions of the same code share a row."""
    places: dict[tuple[str, str], list[str]] = {}
    for call in calls:
        found = places.setdefault((call.resource, call.action), [])
        if (place := _place(call.place)) not in found:
            found.append(place)
    actions: dict[tuple[str, str], list[str]] = {}
    for (resource, action), by in places.items():
        actions.setdefault((_name(resource), ", ".join(by)), []).append(f"`{action}`")
    for (name, code), same in sorted(actions.items()):
        yield name, ", ".join(same), code


def _name(arn: str) -> str:
    if arn == "*":
        return "everything"
    name = arn.split(":", 5)[5]
    if found := re.match(r"function:(\w+):\d+/durable-execution/", name):
        return f"executions of `{found[1]}`"
    return f"`{re.sub(r'^(table/|function:|log-group:)|:log-stream:.*', '', name)}`"


def _place(place: str) -> str:
    """Return the name of the code, such as JobStore.create or dispatch.hand_over."""
    found = re.fullmatch(r"(?:\w+/)*(\w+)\.py: ([\w.]+)", place)
    if not found:
        return place
    module, name = found.groups()
    return name if "." in name or name == module else f"{module}.{name}"


def main() -> None:
    """Write the page again, from the mark on."""
    sys.path.append(str(KIT / "{{cookiecutter.project}}"))  # where `local` is
    sys.dont_write_bytecode = True
    from tests.helpers.permissions.calls import record

    calls = {}
    with tempfile.TemporaryDirectory() as folder:
        kit = copy_kit(Path(folder, "kit"))
        for worker in QUESTIONS["worker"]:
            project = bake(kit, Path(folder, worker), {"worker": worker})
            calls[worker] = record(project, worker, project.path)
    before = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(before + tables(calls), encoding="utf-8")


if __name__ == "__main__":
    main()
