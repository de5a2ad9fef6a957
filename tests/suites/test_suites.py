"""A project's own tests pass: all with one `auth`, with the others those about callers."""

import re

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, tree

ABOUT_CALLERS = (
    "tests/contract/test_follow.py",
    "tests/contract/test_gateway.py",
    "tests/contract/test_idempotency.py",
    "tests/unit/test_caller.py",
    "tests/unit/test_openapi.py",
)
"""What tests that the API knows its callers, and what it tells them of `auth`."""

FIRST, *OTHERS = QUESTIONS["auth"]

SUITES = [
    *((worker, FIRST, ("tests/unit",)) for worker in ("durable", "queue")),
    *((worker, FIRST, ("tests/local",)) for worker in ("durable", "queue")),
    *((worker, FIRST, ("tests/contract",)) for worker in ("durable", "queue")),
    # src/web/caller.py is the same with each worker: see the test below.
    *(
        (worker, auth, ABOUT_CALLERS)
        for worker, auth in zip(("queue", "durable"), OTHERS, strict=True)
    ),
]
"""Worker, auth, and tests."""


def parameters() -> list[object]:
    """Each suite; those that take long are proofs."""
    return [
        pytest.param(
            worker,
            auth,
            paths,
            id=f"{worker}-{auth}-{paths[0].split('/')[1] if len(paths) == 1 else 'callers'}",
            marks=() if paths == ("tests/unit",) else pytest.mark.proof,
        )
        for worker, auth, paths in SUITES
    ]


@pytest.mark.parametrize(("worker", "auth", "paths"), parameters())
def test_its_own_tests_pass(worker: str, auth: str, paths: tuple[str, ...], baked: Oven) -> None:
    run = baked(worker=worker, auth=auth).run("pytest", *paths, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "skipped" not in run.stdout


def test_auth_changes_no_python_but_the_caller(baked: Oven) -> None:
    """So what is no question of callers is tested with one `auth`, and callers with one worker."""
    callers = []
    for worker in QUESTIONS["worker"]:
        first, *others = (tree(baked(worker=worker, auth=auth).path) for auth in QUESTIONS["auth"])
        for other in others:
            differing = {
                name for name in first.keys() | other.keys() if first.get(name) != other.get(name)
            }
            python = {name for name in differing if name.endswith(".py")}
            assert python == {"src/web/caller.py", "tests/unit/test_caller.py"}
            callers.append([other[name] for name in sorted(python)])

    half = len(callers) // 2
    assert callers[:half] == callers[half:]


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_the_tests_about_callers_are_listed(worker: str, baked: Oven) -> None:
    """Those of the contract that ask as somebody else, but for the durable one's callbacks."""
    project = baked(worker=worker).path
    asking = {
        f"tests/contract/{path.name}"
        for path in (project / "tests/contract").glob("test_*.py")
        if re.search(r"\b(bob|stranger)\b", path.read_text(encoding="utf-8"))
    }

    assert asking - {"tests/contract/test_callback.py"} <= {*ABOUT_CALLERS}
    assert [name for name in ABOUT_CALLERS if not (project / name).exists()] == []
