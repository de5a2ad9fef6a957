"""Check the English of the Markdown: the kit's, and a generated project's with each worker.

    python -m tests.tools.prose [FILE ...]

Runs Harper, a grammar checker, offline. The first run installs it into .cache. For each fault,
prints the file and line, the passage, the message and a suggestion. Exits 1 when there is a fault.
tests/tools/prose.toml lists the exceptions.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests import KIT
from tests.helpers.baked import QUESTIONS, bake, copy_kit
from tests.helpers.grammar import Exceptions, check
from tests.helpers.support.machine import SetupError

EXCEPTIONS = Path(__file__).with_suffix(".toml")


def documents(scratch: Path) -> Iterator[Path]:
    """Yield every Markdown file of the kit and, generated into `scratch`, of its projects."""
    yield from sorted(path for path in KIT.glob("*.md"))
    yield from sorted(path for folder in ("docs", "tests") for path in (KIT / folder).rglob("*.md"))
    kit = copy_kit(scratch / "kit")
    for worker in QUESTIONS["worker"]:
        project = bake(kit, scratch / worker, {"worker": worker}, hooks=False)
        yield from sorted(project.path.rglob("*.md"))


def main(names: list[str]) -> int:
    """Check the given files, or all; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="sam-202-prose-") as folder:
        scratch = Path(folder).resolve()
        paths = [Path(name).resolve() for name in names] or list(documents(scratch))
        try:
            faults = check(paths, Exceptions.read(EXCEPTIONS))
        except SetupError as error:
            print(error, file=sys.stderr)
            return 1
        for fault in faults:
            print(str(fault).removeprefix(f"{scratch}/").removeprefix(f"{KIT}/"))
    if faults:
        print(f"\n{len(faults)} faults. Rewrite them, or add exceptions to {EXCEPTIONS.name}.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
