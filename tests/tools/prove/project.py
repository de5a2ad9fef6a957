"""The project that a campaign runs on: recognized, told apart by its engine, copied."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import KIT
from tests.tools.prove.faults import API, DEAD_LETTERS, WORKER

_KEPT_OUT = (".*", "tests", "node_modules", "__pycache__")
"""Names that no function needs: tools' folders and the project's own tests."""


class NotAProject(Exception):
    """The folder cannot be proven. The message is one line and says what to do."""


@dataclass(frozen=True)
class Project:
    """A generated project and the engine that it was generated for."""

    path: Path
    engine: str

    @classmethod
    def open(cls, path: Path) -> "Project":
        """Recognize a generated project, and import `local` from it from now on.

        Raises:
            NotAProject: The folder is not a generated project, or its engine cannot be told.
        """
        path = path.resolve()
        needed = ("template.yaml", "src/work.py", "local/stack.py")
        if missing := [name for name in needed if not (path / name).is_file()]:
            raise NotAProject(
                f"{path} is not a project of this kit: it has no {missing[0]}."
                " Give the folder that cookiecutter generated, or none for a fresh project."
            )
        sys.path.insert(0, str(path))
        from local.template import FUNCTION, Template, TemplateError

        try:
            functions = {
                name: raw
                for name, _, raw in Template.load(path / "template.yaml").resources(FUNCTION)
            }
        except TemplateError as error:
            raise NotAProject(f"The template cannot be used: {error}") from None
        for name in (API, WORKER, DEAD_LETTERS):
            if name not in functions:
                raise NotAProject(
                    f"{path}/template.yaml has no {name}, so there is nothing to prove."
                    " Keep the logical ids of the kit's functions."
                )
        events = (functions[WORKER].get("Events") or {}).values()
        if "DurableConfig" in functions[WORKER]:
            return cls(path, "durable")
        if any(event.get("Type") == "SQS" for event in events):
            return cls(path, "queue")
        raise NotAProject(
            f"{path}/template.yaml: {WORKER} has neither DurableConfig nor an SQS event, so its"
            " engine cannot be told. Restore the one that the kit generated."
        )


def generate(folder: Path, worker: str) -> Path:
    """Generate a project into `folder` and return its path."""
    from tests.helpers.baked import bake, copy_kit  # late: the project's own .venv lacks these

    kit = copy_kit(folder / "kit")
    return bake(kit, folder / "output", {"worker": worker}, hooks=False).path


def copy(project: Path, folder: Path, engine: str) -> Path:
    """Copy a project without its tests, with the campaign's work.py and a schema that allows it."""
    path = Path(
        shutil.copytree(
            project, folder / "project", symlinks=True, ignore=shutil.ignore_patterns(*_KEPT_OUT)
        )
    )
    work = KIT / "tests" / "tools" / "prove" / engine / "work.py"
    shutil.copy(work, path / "src" / "work.py")
    (path / "src" / "payload.schema.json").write_text('{"type": "object"}', encoding="utf-8")
    return path
