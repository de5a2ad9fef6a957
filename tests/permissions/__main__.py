"""`python -m tests.permissions`: runs each variant's jobs and writes docs/permissions.md."""

import sys
import tempfile
from pathlib import Path

from tests import KIT
from tests.baked import QUESTIONS, bake, copy_kit

sys.path.append(str(KIT / "{{cookiecutter.project}}"))  # where `local` is
sys.dont_write_bytecode = True


def main() -> None:
    """Write the page."""
    from tests.permissions import calls, document

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        kit = copy_kit(Path(folder, "kit"))
        for worker in QUESTIONS["worker"]:
            project = bake(kit, Path(folder, worker), {"worker": worker})
            found[worker] = calls.record(project, worker, project.path)
    document.write(found)
    print(document.PAGE)


main()
