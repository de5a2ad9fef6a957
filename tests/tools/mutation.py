"""`make mutants`: whether the unit tests of a generated project notice a change of `src/jobs/`.

    python -m tests.tools.mutation [--worker durable] [MODULE ...]

makes mutants of its modules, each with one small change, and runs the tests on every one of them.
A mutant is killed when a test fails. tests/tools/mutants.md tells why the others may live; exits
1 when one lives that is not there, when one there is killed, or when too few are.
"""

import argparse
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests import KIT
from tests.helpers.baked import QUESTIONS, bake, copy_kit
from tests.helpers.support import tools
from tests.helpers.support.machine import run

PAGE = KIT / "tests" / "tools" / "mutants.md"
PACKAGE = Path("src", "jobs")
GOAL = 0.9
"""The share of the mutants that has to be killed."""
PATIENCE = 30
"""Seconds; see mutation_server.py. What hangs is killed, by the clock instead of by a test."""

_ENTRY = re.compile(r"^(?P<reason>[\w`](?:.+\n)+)\n```diff\n(?P<diff>(?:.+\n)+)```$", re.M)


class Change(NamedTuple):
    """What tells a mutant from its module: the lines before and after, wherever they stand."""

    module: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"--- {self.module}\n-{self.before}\n+{self.after}\n"


class Mutant(NamedTuple):
    """A module's source with one small change."""

    change: Change
    source: str

    @classmethod
    def of(cls, module: str, original: str, source: str) -> "Mutant":
        """Find the change."""
        lines: dict[str, list[str]] = {"-": [], "+": []}
        for line in difflib.ndiff(original.splitlines(), source.splitlines()):
            lines.get(line[0], []).append(line[2:])
        return cls(Change(module, *(tidy(" ".join(lines[sign])) for sign in "-+")), source)


def tidy(code: str) -> str:
    """Code with no more than one space in a row, and none after a bracket: as people write it."""
    return re.sub(r"(?<=[(\[{]) ", "", " ".join(code.split()))


def reviewed(page: str) -> dict[Change, str]:
    """The survivors on a page, each with its reason: the paragraph before the diff."""
    found: dict[Change, str] = {}
    for entry in _ENTRY.finditer(page):
        module = before = ""
        for line in entry["diff"].splitlines():
            if line.startswith("--- "):
                module = line.removeprefix("--- ")
            elif line.startswith("-"):
                before = line[1:]
            else:
                found[Change(module, before, line[1:])] = entry["reason"]
    return found


def mutants(package: Path) -> list[Mutant]:
    """Every mutant of a package's modules."""
    python = tools.scripts("cosmic-ray") / "python"
    done = run(python, Path(__file__).with_name("mutation_operators.py"), package)
    originals = {path.stem: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    return [
        Mutant.of(made["module"], originals[made["module"]], made["source"])
        for made in json.loads(done.stdout)
    ]


def outcomes(
    project: Path, chosen: Sequence[Mutant], patience: float = PATIENCE
) -> Iterator[tuple[Mutant, int]]:
    """Run the project's unit tests on mutants, and tell of each how they ended; 0: it survived.

    Raises CalledProcessError when the tests do not pass on the unmutated code.
    """
    command = [sys.executable, str(Path(__file__).with_name("mutation_server.py")), str(patience)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=project, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        json.dump([{"module": m.change.module, "source": m.source} for m in chosen], server.stdin)
        server.stdin.close()
        for mutant, line in zip(chosen, server.stdout, strict=False):
            yield mutant, int(line)
    if server.returncode != 0:
        raise subprocess.CalledProcessError(server.returncode, command)


def table(made: Sequence[Change], survivors: Sequence[Change]) -> str:
    """The figures, for each module and for all."""
    left = Counter(change.module for change in survivors)
    rows = [
        (module, count, count - left[module])
        for module, count in Counter(change.module for change in made).items()
    ]
    rows.append(("all", len(made), len(made) - len(survivors)))
    return "\n".join(
        [
            "| Module | Mutants | Killed | Share |",
            "| --- | --- | --- | --- |",
            *(f"| {name} | {count} | {dead} | {dead / count:.0%} |" for name, count, dead in rows),
        ]
    )


def main() -> int:
    """Make the mutants, run the tests on them, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.mutation")
    parser.add_argument("--worker", choices=QUESTIONS["worker"], default="queue")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as store; default: all")
    arguments = parser.parse_args()
    if not hasattr(os, "fork"):
        parser.error("this system cannot fork a process")
    known = reviewed(PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="sam-202-mutants-") as name:
        kit = copy_kit(Path(name, "kit"))
        project = bake(kit, Path(name, "out"), {"worker": arguments.worker}, hooks=False).path
        print("making the mutants …", flush=True)
        chosen = [
            mutant
            for mutant in mutants(project / PACKAGE)
            if not arguments.modules or mutant.change.module in arguments.modules
        ]
        if not chosen:
            parser.error("there is no such module")
        survivors: list[Change] = []
        hung = 0
        try:
            for number, (mutant, code) in enumerate(outcomes(project, chosen), 1):
                hung += code == -signal.SIGALRM
                if code == 0:
                    survivors.append(mutant.change)
                    reason = known.get(mutant.change, "no reason is known\n")
                    print(f"{mutant.change}{reason}", flush=True)
                if number % 25 == 0 or number == len(chosen):
                    alive = f"{len(survivors)} survived, {hung} hung"
                    print(f"{number} of {len(chosen)}: {alive}", flush=True)
        except subprocess.CalledProcessError as error:
            return int(error.returncode)  # the server has said why
    made = [mutant.change for mutant in chosen]
    print(table(made, survivors))
    unknown = [change for change in survivors if change not in known]
    killed = [change for change in known if change in made and change not in survivors]
    for change in killed:
        print(f"{change}killed, and in tests/tools/mutants.md\n")
    share = 1 - len(survivors) / len(chosen)
    print(f"{len(unknown)} without a reason in tests/tools/mutants.md; the goal is {GOAL:.0%}")
    return 1 if unknown or killed or share < GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
