"""The kit's tests of a project's recipes and test helpers, run inside a fresh project."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS

TESTS = Path(__file__).parent / "project"


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_recipes_and_helpers_do_what_they_say(worker: str, baked: Oven) -> None:
    project = baked.fresh(worker=worker)
    laid = []
    for folder in ("both", worker):
        for test in sorted((TESTS / folder).glob("*.py")):
            laid.append(f"tests/unit/test_{test.name}")
            shutil.copy(test, project.path / laid[-1])
    assert laid

    done = project.run("pytest", *laid)

    assert "skipped" not in done.stdout
