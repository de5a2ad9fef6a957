"""A project's own tests pass as generated, all of them, whatever the answers."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS

Suite = tuple[str, str, str]
"""Worker, auth, and a folder of tests."""

SUITES: list[Suite] = [
    (worker, auth, folder)
    for folder in ("tests/contract", "tests/unit", "tests/local", "tests/prove")
    for worker in ("durable", "queue")
    for auth in QUESTIONS["auth"]
    if auth == QUESTIONS["auth"][0] or folder in ("tests/contract", "tests/unit")
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


@pytest.fixture(scope="module")
def done(
    request: pytest.FixtureRequest, baked: Oven
) -> "dict[Suite, subprocess.CompletedProcess[str]]":
    """What came of the suites that were asked for, two at a time: each waits a good deal."""
    items: list[Any] = [i for i in request.session.items if i.path == Path(__file__)]
    asked: list[Suite] = [item.callspec.params["suite"] for item in items]
    projects = [baked(worker=worker, auth=auth) for worker, auth, _ in asked]
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(project.run, "pytest", folder, check=False)
            for project, (_, _, folder) in zip(projects, asked, strict=True)
        ]
    return {suite: run.result() for suite, run in zip(asked, runs, strict=True)}


@pytest.mark.parametrize("suite", parameters())
def test_its_own_tests_pass(
    suite: Suite, done: "dict[Suite, subprocess.CompletedProcess[str]]"
) -> None:
    run = done[suite]
    assert run.returncode == 0, run.stdout + run.stderr
    assert "skipped" not in run.stdout
