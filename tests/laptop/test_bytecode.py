"""`make build` adds bytecode to what `sam build` made, and Python uses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Oven
from tests.helpers.baked import BakedProject, tree
from tests.helpers.rules.sources import environment
from tests.helpers.support import pythons
from tests.helpers.support.sam import SAM

RUNTIME = "3.13"
TEMPLATE = """\
Transform: AWS::Serverless-2016-10-31
Resources:
  ApiFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: ApiFunction
      Handler: api.handler
      Runtime: python{version}
"""


def python() -> Path:
    """Return the runtime's Python."""
    return pythons.find(RUNTIME) / f"python{RUNTIME}"


def make_build(project: BakedProject) -> None:
    """Do as `make build` does."""
    SAM.find().build(project.path, runtime=f"python{RUNTIME}")
    project.run("local.bytecode", "--python", str(python()))


@pytest.fixture(scope="module")
def project(baked: Oven) -> BakedProject:
    """A project after `make build`."""
    project = baked.fresh()
    make_build(project)
    return project


@pytest.fixture(scope="module")
def built(project: BakedProject) -> Path:
    """What `make build` left."""
    return project.path / ".aws-sam" / "build"


@pytest.mark.proof
def test_every_source_stays_and_has_bytecode(built: Path) -> None:
    for function in ("ApiFunction", "WorkerFunction", "DeadLetterFunction"):
        sources = list((built / function).rglob("*.py"))
        assert (built / function / "api.py") in sources
        for source in sources:
            compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
            content = compiled.read_bytes()
            assert content[4:8] == b"\1\0\0\0", source  # by hash, unchecked
            assert b"/var/task/" in content, source
            assert str(built).encode() not in content, source


@pytest.mark.proof
def test_the_runtime_uses_the_bytecode(project: BakedProject, built: Path, tmp_path: Path) -> None:
    """Sources that raise do no harm, so Python has not read them."""
    task = tmp_path / "task"
    shutil.copytree(built / "ApiFunction", task)
    for source in task.rglob("*.py"):
        source.write_text("raise AssertionError('compiled anew')\n", encoding="utf-8")
    path = f"{task}{os.pathsep}{pythons.runtime_packages(RUNTIME)}"
    done = subprocess.run(
        [python(), "-c", "import api; print('loaded')"],
        env=environment(project) | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "loaded\n", done.stderr


@pytest.fixture(scope="module")
def other(baked: Oven) -> BakedProject:
    """The same project after another `make build`, for the last test to change."""
    project = baked.fresh()
    make_build(project)
    return project


@pytest.mark.proof
def test_two_builds_give_the_same_bytes(built: Path, other: BakedProject) -> None:
    """So `sam deploy`, which names an archive by the hash of its content, uploads nothing anew."""
    again = other.path / ".aws-sam" / "build"
    assert again != built
    for function in ("ApiFunction", "WorkerFunction", "DeadLetterFunction"):
        assert tree(again / function) == tree(built / function), function


@pytest.mark.proof
def test_sam_build_alone_removes_bytecode(other: BakedProject) -> None:
    """Otherwise unchecked bytecode would hide a change of its source."""
    build = other.path / ".aws-sam" / "build"
    work = other.path / "src" / "work.py"
    for change in ("", "# changed\n"):
        other.run("local.bytecode", "--python", str(python()))
        assert list(build.rglob("work.cpython-313.pyc"))
        work.write_text(work.read_text(encoding="utf-8") + change, encoding="utf-8")
        SAM.find().build(other.path, runtime=f"python{RUNTIME}")
        assert list(build.rglob("*.pyc")) == []
        assert change in (build / "WorkerFunction" / "work.py").read_text(encoding="utf-8")


def refusal(project: BakedProject, *options: str) -> str:
    """Return the one line in which local.bytecode refuses to compile."""
    done = project.run("local.bytecode", *options, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def pretend_build(project: BakedProject, version: str) -> Path:
    """Put a small build for Python `version` into the project; return its code's folder."""
    build = project.path / ".aws-sam" / "build"
    code = build / "ApiFunction"
    code.mkdir(parents=True)
    (code / "api.py").write_text("handler = print\n", encoding="utf-8")
    (build / "template.yaml").write_text(TEMPLATE.format(version=version), encoding="utf-8")
    return code


def test_it_compiles_by_this_interpreter_when_that_is_right(baked: Oven) -> None:
    project = baked.fresh()
    code = pretend_build(project, f"{sys.version_info.major}.{sys.version_info.minor}")
    assert sys.executable in project.run("local.bytecode").stdout
    assert len(list(code.rglob("*.pyc"))) == 1


def test_it_refuses_an_interpreter_of_another_version(baked: Oven) -> None:
    project = baked.fresh()
    code = pretend_build(project, "3.9")
    line = refusal(project, "--python", sys.executable)
    assert f"{sys.executable} is cpython-3{sys.version_info.minor} final" in line
    assert "Name a released CPython 3.9" in line
    assert "does not run" in refusal(project, "--python", "/nowhere/python3.9")
    assert list(code.rglob("*.pyc")) == []


def test_it_says_which_python_to_install(baked: Oven) -> None:
    project = baked.fresh()
    pretend_build(project, "3.99")
    assert "`uv python install 3.99`" in refusal(project)


def test_it_says_when_nothing_is_built(baked: Oven) -> None:
    assert "Run `sam build` first" in refusal(baked.fresh())
