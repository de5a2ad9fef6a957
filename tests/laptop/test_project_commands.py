"""`make` and `pytest` in a generated project, from shells that are not ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Oven
from tests.helpers.baked import BakedProject

PYTHON = """#!/bin/sh
echo "PYTHONSAFEPATH=$PYTHONSAFEPATH PIP_USER=$PIP_USER $*" >> "$PWD/called"
"""
HOSTILE_SHELL = {"PYTHONSAFEPATH": "1", "PIP_USER": "yes"}


@pytest.fixture
def project(baked: Oven) -> BakedProject:
    """A project whose .venv is there, with a Python that only writes down how it was called."""
    fresh = baked.fresh()
    binaries = fresh.path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").write_text(PYTHON, encoding="utf-8")
    (binaries / "python").chmod(0o755)
    (fresh.path / ".venv" / "installed").touch()
    return fresh


def make(project: BakedProject, *arguments: str) -> str:
    done = subprocess.run(
        ["make", *arguments],
        cwd=project.path,
        env={**os.environ, **HOSTILE_SHELL},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_setting_of_the_shell_reaches_python(project: BakedProject) -> None:
    make(project, "local", "ARGS=--port 3001")
    calls = (project.path / "called").read_text(encoding="utf-8").splitlines()
    assert calls[-1] == "PYTHONSAFEPATH= PIP_USER= -m local --port 3001"


@pytest.mark.parametrize("fault", ["none", "emptied", "dangling"])
def test_setup_makes_a_broken_virtual_environment_again(project: BakedProject, fault: str) -> None:
    python = project.path / ".venv" / "bin" / "python"
    if fault == "emptied":
        python.write_text("#!/bin/sh\necho \"No module named 'awslambdaric'\" >&2; exit 1\n")
    if fault == "dangling":
        python.unlink()
        python.symlink_to("/nowhere/python3")
    planned = make(project, "-n", "setup")
    assert ("-m venv --clear .venv" in planned) == (fault != "none")


@pytest.mark.parametrize("worker", ["queue", "durable"])
def test_test_ids_are_the_same_in_every_process(baked: Oven, worker: str) -> None:
    """`pytest -n 2` refuses to run when they differ."""
    project: Path = baked(worker=worker).path

    def collect(seed: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"],
            cwd=project,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )

    first, second = (process.communicate()[0] for process in [collect("1"), collect("2")])
    assert "::test_" in first
    assert first.rpartition("\n\n")[0] == second.rpartition("\n\n")[0]


@pytest.mark.parametrize("schema", ["{", '{"type": "nothing"}'])
def test_a_broken_payload_schema_is_named(baked: Oven, schema: str) -> None:
    project = baked.fresh()
    (project.path / "src" / "payload.schema.json").write_text(schema, encoding="utf-8")
    done = project.run("local", "--port", "0", check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "ApiFunction does not start: ValueError: payload.schema.json is not a JSON " in line
