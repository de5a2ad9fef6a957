"""The same project comes out, whichever tool generates it, hooks or not."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, bake, cookiecutter, pairs, tree, type_answers
from tests.helpers.support.sam import SAM

# None of these is a default, so that an answer which gets lost on the way shows.
ANSWERS = {
    "project_name": "orders-api",
    "description": 'Prints "orders" — 注文を印刷 🖨️',
    "worker": "durable",
    "runtime": "python3.14",
    "auth": "jwt",
}


def test_no_answer_is_a_default() -> None:
    defaults = {
        question: given[0] if isinstance(given, list) else given
        for question, given in QUESTIONS.items()
    }
    assert ANSWERS.items() & defaults.items() == set()


@pytest.fixture(scope="module")
def hookless(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kit without hooks."""
    copy = tmp_path_factory.mktemp("hookless") / "kit"
    return Path(shutil.copytree(kit, copy, ignore=shutil.ignore_patterns("hooks")))


def by_prompts(kit: Path, output: Path) -> dict[str, bytes]:
    choices = {
        question: str(QUESTIONS[question].index(answer) + 1)
        for question, answer in ANSWERS.items()
        if isinstance(QUESTIONS[question], list)
    }
    return type_answers(kit, output, **(ANSWERS | choices)).files()


def by_cookiecutter(kit: Path, output: Path) -> dict[str, bytes]:
    done = cookiecutter(kit, output, *pairs(ANSWERS))
    assert done.returncode == 0, done.stderr
    return tree(output / "orders-api")


def by_cookiecutter_without_hooks(kit: Path, output: Path) -> dict[str, bytes]:
    done = cookiecutter(kit, output, "--accept-hooks", "no", *pairs(ANSWERS))
    assert done.returncode == 0, done.stderr
    return tree(output / "orders-api")


def by_cruft(kit: Path, output: Path) -> dict[str, bytes]:
    clone = output.parent / "clone"
    shutil.copytree(kit, clone)
    git = [
        "git",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@example.com",
        "-c",
        "core.autocrlf=false",
    ]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "kit"]):
        subprocess.run([*git, *command], cwd=clone, check=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "cruft", "create", "--no-input", "--output-dir", str(output)),
            *("--extra-context", json.dumps(ANSWERS), str(clone)),
        ],
        env={**os.environ, "HOME": str(output.parent)},
        check=True,
    )
    files = tree(output / "orders-api")
    assert files.pop(".cruft.json")
    return files


def sam_init(
    sam: list[str], kit: Path, output: Path, answers: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `sam init --location`, which gives `project_name` by an option of its own."""
    extra = {name: answer for name, answer in answers.items() if name != "project_name"}
    return subprocess.run(
        [
            *(*sam, "init", "--location", str(kit), "--name", answers["project_name"]),
            *("--no-input", "--output-dir", str(output), "--extra-context", json.dumps(extra)),
        ],
        env={**os.environ, "HOME": str(output.parent), "SAM_CLI_TELEMETRY": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def by_sam(kit: Path, output: Path) -> dict[str, bytes]:
    done = sam_init([str(SAM.find().path)], kit, output, ANSWERS)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in output.iterdir()] == ["orders-api"]
    return tree(output / "orders-api")


@pytest.mark.parametrize(
    "generate", [by_cookiecutter, by_cookiecutter_without_hooks, by_prompts, by_cruft, by_sam]
)
def test_every_generator_gives_the_same_files(
    generate: Callable[[Path, Path], dict[str, bytes]], kit: Path, baked: Oven, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    output.mkdir()

    assert generate(kit, output) == baked(**ANSWERS).files()


def packaged_sam() -> list[str]:
    """A SAM CLI that cannot run Python hooks, as the one from AWS's installer cannot.

    The one from PyPI can; made to believe that it is packaged, it decides in the same way.
    """
    path = SAM.find().path
    first, _, _ = path.read_bytes().partition(b"\n")
    if not first.startswith(b"#!"):
        return [str(path)]
    believe = (
        "from samcli.lib.utils import template_hooks\n"
        "template_hooks.is_pyinstaller_bundle = lambda: True\n"
        "from samcli.cli.main import cli\n"
        "cli(prog_name='sam')"
    )
    return [first.decode().removeprefix("#!").strip(), "-c", believe]


def test_packaged_sam_refuses_hooks_and_takes_a_copy_without_them(
    kit: Path, hookless: Path, baked: Oven, tmp_path: Path
) -> None:
    output = tmp_path / "output"

    refused = sam_init(packaged_sam(), kit, output, ANSWERS)
    assert refused.returncode != 0
    assert "Cannot run the template hook pre_gen_project.py" in refused.stderr
    assert tree(output) == {}

    done = sam_init(packaged_sam(), hookless, output, ANSWERS)
    assert done.returncode == 0, done.stderr
    assert tree(output / "orders-api") == baked(**ANSWERS).files()


def test_line_ends_of_a_clone_do_not_matter(kit: Path, baked: Oven, tmp_path: Path) -> None:
    clone = Path(shutil.copytree(kit, tmp_path / "kit"))
    for folder in ("templates", "{{cookiecutter.project}}"):
        for path in (clone / folder).rglob("*"):
            # local/ is copied as it is; .gitattributes keeps it right.
            if path.is_file() and "local" not in path.parts:
                path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert bake(clone, tmp_path / "output", ANSWERS).files() == baked(**ANSWERS).files()


def test_next_steps_name_commands_that_exist(kit: Path, tmp_path: Path) -> None:
    printed = cookiecutter(kit, tmp_path / "output").stdout

    targets = re.findall(r"^    make (\w+)", printed, re.M)
    makefile = (tmp_path / "output" / "jobs-api" / "Makefile").read_text(encoding="utf-8")
    assert targets == ["setup", "test", "local"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
    assert "    cd jobs-api\n" in printed
