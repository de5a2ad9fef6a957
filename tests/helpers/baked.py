"""Projects made from this kit, for tests to look at and to run.

    python -m tests.helpers.baked FOLDER [QUESTION=ANSWER ...]

generates one by hand, from a copy without the leftovers of tools.
"""

import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from cookiecutter.main import cookiecutter as generate

from tests import KIT

QUESTIONS: dict[str, Any] = json.loads((KIT / "cookiecutter.json").read_text(encoding="utf-8"))
"""cookiecutter.json."""

LEFTOVERS = (
    ".git",
    *(
        line.rstrip("/")
        for line in (KIT / ".gitignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ),
)
"""Names of what a clone would not have. It takes no git to know them: an archive will do."""


@dataclass(frozen=True)
class BakedProject:
    """A generated project: where it is, and the answers that were given."""

    path: Path
    answers: Mapping[str, Any]

    def read(self, name: str) -> str:
        """The text of the file `name`, as written (line ends included)."""
        return (self.path / name).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        """Every file's content, by its path with forward slashes."""
        return tree(self.path)

    def run(
        self, module: str, *arguments: str, check: bool = True, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m module` in the project, leaving nothing behind in it.

        The environment has no AWS settings. With `check`, a failure is an AssertionError that
        shows the output.
        """
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("AWS_")
        } | {
            "MYPY_CACHE_DIR": str(Path(tempfile.gettempdir()) / "sam-202-mypy"),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "PYTHONDONTWRITEBYTECODE": "1",
            "RUFF_NO_CACHE": "true",
        }
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        if check:
            command = " ".join((module, *arguments))
            assert done.returncode == 0, f"{command} in {self.path}\n{done.stdout}\n{done.stderr}"
        return done


def calls_of_a_job(project: BakedProject, sample: bool = False) -> dict[str, Any]:
    """Return what one job of a project asks of AWS; see tests/tools/scaling/calls.py.

    With `sample`, its work is that of work.py. Writes into the project.
    """
    code = (KIT / "tests" / "tools" / "scaling" / "calls.py").read_text(encoding="utf-8")
    (project.path / "tests" / "unit" / "test_calls.py").write_text(code, encoding="utf-8")
    with mock.patch.dict(os.environ, {"CALLS_OF_THE_SAMPLE": "1"} if sample else {}):
        out = project.run("pytest", "-q", "-s", "tests/unit/test_calls.py").stdout
    (line,) = (line for line in out.splitlines() if line.startswith("CALLS "))
    found: dict[str, Any] = json.loads(line.removeprefix("CALLS "))
    return found


def tree(folder: Path) -> dict[str, bytes]:
    """Every file's content below `folder`, by its path with forward slashes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def copy_kit(folder: Path) -> Path:
    """Copy the kit into the new `folder`, as a clone would have it; return that.

    What is not committed yet comes along.
    """
    shutil.copytree(KIT, folder, ignore=shutil.ignore_patterns(*LEFTOVERS))
    return folder


def bake(
    kit: Path, output: Path, answers: Mapping[str, Any], hooks: bool = True, typed: bool = False
) -> BakedProject:
    """Generate a project from the folder `kit` into the folder `output`.

    With `typed`, type the answers at the prompts, and let the others have their default.
    Raises what cookiecutter raises.
    """
    output.mkdir(parents=True, exist_ok=True)
    asked = [question for question in QUESTIONS if not question.startswith("_")]
    lines = "".join(f"{answers.get(question, '')}\n" for question in asked)
    with tempfile.TemporaryDirectory() as settings:
        config = Path(settings, "config.yaml")
        config.write_text(
            json.dumps({"cookiecutters_dir": settings, "replay_dir": settings}), encoding="utf-8"
        )
        with mock.patch("sys.stdin", io.StringIO(lines)):
            path = generate(
                str(kit),
                no_input=not typed,
                extra_context=None if typed else dict(answers),
                output_dir=str(output),
                config_file=str(config),
                accept_hooks=hooks,
            )
    return BakedProject(Path(path), dict(answers))


def cookiecutter(
    kit: Path, output: Path, *arguments: str, typed: Iterable[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the cookiecutter command; with `typed`, answer its prompts with these lines."""
    settings = output.parent / "settings"
    settings.mkdir(exist_ok=True)
    config = settings / "config.yaml"
    config.write_text(f'cookiecutters_dir: "{settings}"\nreplay_dir: "{settings}"\n')
    options = [] if typed is not None else ["--no-input"]
    output.mkdir(exist_ok=True)
    return subprocess.run(
        [
            *(sys.executable, "-m", "cookiecutter", *options, "--config-file", str(config)),
            *("-o", str(output), str(kit), *arguments),
        ],
        input="" if typed is None else "".join(f"{line}\n" for line in typed),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def pairs(answers: dict[str, str]) -> list[str]:
    """Answers as a command line has them."""
    return [f"{question}={answer}" for question, answer in answers.items()]


def type_answers(kit: Path, output: Path, **answers: str) -> BakedProject:
    """Generate by answering the command's prompts, some of them with the default."""
    asked = [question for question in QUESTIONS if not question.startswith("_")]
    done = cookiecutter(kit, output, typed=[answers.get(question, "") for question in asked])
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = output.iterdir()
    return BakedProject(path, answers)


def variants() -> Iterator[dict[str, Any]]:
    """Answers for every supported combination of choices."""
    choices = {name: options for name, options in QUESTIONS.items() if _is_choice(name, options)}
    for combination in itertools.product(*choices.values(), ("x86_64", "arm64")):
        *chosen, architecture = combination
        yield dict(zip(choices, chosen, strict=True)) | {"architectures": {"value": [architecture]}}


def _is_choice(name: str, options: object) -> bool:
    return isinstance(options, list) and not name.startswith("_")


def main() -> None:
    """Generate one project by hand."""
    output, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        kit = copy_kit(Path(folder, "kit"))
        print(bake(kit, Path(output), dict(answer.split("=", 1) for answer in rest)).path)


if __name__ == "__main__":
    main()
