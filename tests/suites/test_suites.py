"""A project's own tests pass: all with one `auth`, with the others those about callers."""

import re

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, BakedProject, tree

Suite = tuple[str, str, str]
"""Worker, auth, and a folder of tests."""

SUITES: list[Suite] = [
    (worker, auth, folder)
    for folder in ("tests/contract", "tests/unit", "tests/local")
    for worker in ("durable", "queue")
    for auth in QUESTIONS["auth"]
    if auth == QUESTIONS["auth"][0] or folder in ("tests/contract", "tests/unit")
]


ABOUT_CALLERS = {
    "tests/unit": r"tests\.unit\.client|openapi",
    "tests/contract": r"\b(bob|stranger)\b",
}
"""What a file of tests says that asks the API, or asks it as somebody else."""


def files(project: BakedProject, auth: str, folder: str) -> list[str]:
    """A folder of tests for the first `auth`; for another one its files about callers.

    No other Python depends on `auth`: see test_auth_changes_no_python_but_the_caller.
    """
    if auth == QUESTIONS["auth"][0]:
        return [folder]
    return [
        f"{folder}/{path.name}"
        for path in sorted((project.path / folder).glob("test_*.py"))
        if re.search(ABOUT_CALLERS[folder], path.read_text(encoding="utf-8"))
    ]


def parameters() -> list[object]:
    """Each suite; those that take long are proofs."""
    return [
        pytest.param(
            suite,
            id="-".join(suite).replace("tests/", ""),
            marks=() if suite[1:] == (QUESTIONS["auth"][0], "tests/unit") else pytest.mark.proof,
        )
        for suite in SUITES
    ]


@pytest.mark.parametrize("suite", parameters())
def test_its_own_tests_pass(suite: Suite, baked: Oven) -> None:
    worker, auth, folder = suite
    project = baked(worker=worker, auth=auth)
    run = project.run("pytest", *files(project, auth, folder), check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "skipped" not in run.stdout


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_auth_changes_no_python_but_the_caller(worker: str, baked: Oven) -> None:
    """So what is no question of callers is tested with one `auth`."""
    first, *others = (tree(baked(worker=worker, auth=auth).path) for auth in QUESTIONS["auth"])

    for other in others:
        differing = {
            name for name in first.keys() | other.keys() if first.get(name) != other.get(name)
        }
        python = {name for name in differing if name.endswith(".py")}
        assert {name.rpartition("/")[2] for name in python} == {"caller.py", "test_caller.py"}
