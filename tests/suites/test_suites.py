"""A project's own tests pass as generated, all of them, whatever the answers."""

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS

pytestmark = pytest.mark.apart

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


@pytest.mark.parametrize("suite", parameters())
def test_its_own_tests_pass(suite: Suite, baked: Oven) -> None:
    worker, auth, folder = suite
    run = baked(worker=worker, auth=auth).run("pytest", folder, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "skipped" not in run.stdout
