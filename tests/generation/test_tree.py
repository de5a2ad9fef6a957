"""The generated files, for every supported combination of choices."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest

from tests.conftest import Oven
from tests.helpers.baked import BakedProject, tree, variants
from tests.helpers.documents import read_yaml

VARIANTS = list(variants())


def name_of(variant: dict[str, Any]) -> str:
    """A readable test id."""
    return "-".join(
        answer["value"][0] if isinstance(answer, dict) else answer for answer in variant.values()
    )


@pytest.fixture(params=VARIANTS, ids=name_of)
def project(request: pytest.FixtureRequest, baked: Oven) -> BakedProject:
    """Every supported combination of choices."""
    return baked(**request.param)


def test_no_leftover_of_the_template(project: BakedProject) -> None:
    faults = []
    for name, content in project.files().items():
        text = content.decode()
        if "cookiecutter" in (name + text).lower():
            faults.append(f"{name}: says cookiecutter")
        # GitHub's ${{ }} and CloudFormation's {{resolve:}} may stay; local/ is never rendered.
        if not name.startswith("local/") and re.search(r"(?<!\$)\{\{(?!resolve:)|\{%|\{#", text):
            faults.append(f"{name}: has template syntax")
    assert faults == []


def test_text_files_are_tidy(project: BakedProject) -> None:
    faults = []
    for name, content in project.files().items():
        text = content.decode()
        blank_lines = 2 if name.endswith((".py", ".md")) else 1  # Markdown holds Python
        if not text.strip():
            faults.append(f"{name}: is empty")
        if "\r" in text:
            faults.append(f"{name}: has a carriage return")
        if not text.endswith("\n") or text.endswith("\n\n"):
            faults.append(f"{name}: does not end with one line break")
        if text.startswith("\n") or re.search(r"[ \t]$", text, re.M):
            faults.append(f"{name}: has blanks where none belong")
        if "\n" * (blank_lines + 2) in text:
            faults.append(f"{name}: has too many blank lines")
    assert faults == []


def test_an_included_file_arrives_unchanged(project: BakedProject, kit: Path) -> None:
    jinja = jinja2.Environment()
    files = project.files()
    included = 0
    for source, content in tree(kit / "{{cookiecutter.project}}").items():
        # The name of a file that only one variant has is empty in the others.
        name = jinja.from_string(source).render(cookiecutter=project.answers)
        line = re.fullmatch(rb"\{% include (.+) %\}\n", content)
        if line and not name.endswith("/"):
            path = jinja.compile_expression(line[1].decode())(cookiecutter=project.answers)
            wanted = (kit / "templates" / str(path)).read_bytes()
            if b"{%" not in wanted:
                assert files[name] == wanted, name
                included += 1
    assert included >= 5


def test_runtime_and_architecture_are_the_ones_asked_for(project: BakedProject) -> None:
    function = read_yaml(project.read("template.yaml"))["Globals"]["Function"]

    assert function["Runtime"] == project.answers["runtime"]
    assert function["Architectures"] == project.answers["architectures"]["value"]


def distinct_sources() -> list[Any]:
    """One variant for each set of Python sources: these do not depend on runtime and processor."""
    return [
        pytest.param(variant, id=name_of(variant))
        for variant in VARIANTS
        if variant["runtime"] == "python3.13" and variant["architectures"]["value"] == ["x86_64"]
    ]


def test_runtime_and_architecture_change_no_python(project: BakedProject, baked: Oven) -> None:
    same = {"runtime": "python3.13", "architectures": {"value": ["x86_64"]}}

    def sources(project: BakedProject) -> dict[str, bytes]:
        return {name: text for name, text in project.files().items() if name.endswith(".py")}

    assert sources(project) == sources(baked(**{**project.answers, **same}))


@pytest.mark.parametrize("answers", distinct_sources())
def test_the_python_is_clean(answers: dict[str, Any], baked: Oven) -> None:
    baked(**answers).run("ruff", "check")
    baked(**answers).run("ruff", "format", "--check")


@pytest.mark.parametrize("answers", distinct_sources())
def test_the_types_are_right(answers: dict[str, Any], baked: Oven) -> None:
    baked(**answers).run("mypy")


@pytest.mark.parametrize("answers", distinct_sources())
def test_its_samples_leave_out_nothing(answers: dict[str, Any], baked: Oven) -> None:
    """So none of its suites skips a test; in a project with other work a sample may be None."""
    samples = runpy.run_path(str(baked(**answers).path / "tests" / "samples.py"))
    assert [n for n, value in samples.items() if n.isupper() and value in (None, {}, "")] == []


@pytest.mark.proof
def test_make_sets_up_and_checks_a_fresh_project(baked: Oven) -> None:
    """In a virtual environment of its own: what it pins is all it needs."""
    project = baked.fresh()

    for command in (
        ["make", "setup", f"PYTHON={sys.executable}"],
        ["make", "check"],
        [".venv/bin/python", "-m", "pytest", "--collect-only", "-q"],
    ):
        done = subprocess.run(
            command,
            cwd=project.path,
            env=os.environ | {"PIP_NO_COMPILE": "1"},  # bytecode that is used once, if at all
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
