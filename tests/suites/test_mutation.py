"""The list of mutants that may live, and the command that looks for others."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Oven
from tests.helpers.markdown import Document
from tests.tools import mutation
from tests.tools.mutation import PACKAGE, PAGE, Change, Mutant, reviewed, tidy

KNOWN = reviewed(PAGE.read_text(encoding="utf-8"))

MODULE = """\
LIMIT = 3


def fits(count: int) -> bool:
    \"\"\"Whether there are not more than 3.\"\"\"
    return count <= LIMIT
"""
TESTS = """\
from jobs.tiny import fits


def test_fits():
    assert fits(3)
    assert not fits(4)
"""
SETTINGS = """\
[tool.pytest.ini_options]
pythonpath = ["src"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test."""
    for name, text in {
        "pyproject.toml": SETTINGS,
        "src/jobs/tiny.py": MODULE,
        "tests/unit/test_tiny.py": TESTS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def mutant(before: str, after: str) -> Mutant:
    """A mutant of that module."""
    assert before in MODULE
    return Mutant.of("tiny", MODULE, MODULE.replace(before, after))


# ---------------------------------------------------------------- the list


def test_each_survivor_has_a_reason() -> None:
    blocks = Document(PAGE).blocks_in("diff")

    assert len(KNOWN) == sum(block.count("\n+") for block in blocks) > 0
    assert all(len(reason.split()) > 5 for reason in KNOWN.values())


def test_the_figures_count_the_list() -> None:
    rows = Document(PAGE).table("Module", "Mutants", "Killed", "Share")
    figures = {name: (int(made), int(killed)) for name, made, killed, _ in rows}
    made, killed = figures.pop("all")
    listed = Counter(change.module for change in KNOWN)

    assert {name: listed[name] for name in figures} == {
        name: made - killed for name, (made, killed) in figures.items()
    }
    assert [made, killed] == [sum(column) for column in zip(*figures.values(), strict=True)]
    known = sum(change.module in figures for change in KNOWN)
    assert killed == made - known >= mutation.GOAL * made


def test_each_survivor_changes_a_line_that_there_is(baked: Oven) -> None:
    durable = baked(worker="durable")  # has every module
    texts = {
        path.stem: tidy(path.read_text(encoding="utf-8"))
        for path in durable.path.glob("src/jobs/*.py")
    }

    assert [change for change in KNOWN if change.before not in texts[change.module]] == []
    assert [change for change in KNOWN if not change.before] == []


@pytest.mark.proof
def test_the_page_speaks_of_the_mutants_that_there_are(baked: Oven) -> None:
    made = mutation.mutants(baked(worker="durable").path / PACKAGE)
    changes = Counter(mutant.change for mutant in made)

    assert {change: changes[change] for change in KNOWN} == dict.fromkeys(KNOWN, 1)


# ---------------------------------------------------------------- the command


def test_a_change_is_told_by_its_lines() -> None:
    change = mutant("count <= LIMIT", "count <  LIMIT").change

    assert change == Change("tiny", "return count <= LIMIT", "return count < LIMIT")
    assert reviewed(f"Nobody counts.\n\n```diff\n{change}```\n") == {change: "Nobody counts.\n"}
    gone = mutant("LIMIT = 3\n", "").change
    assert reviewed(f"Nobody counts.\n\n```diff\n{change}{gone}```\n").keys() == {change, gone}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_it_tells_killed_from_alive(project: Path) -> None:
    mutants = [
        mutant("<=", "<"),
        mutant("count <= LIMIT", "not count > LIMIT"),
        mutant("return", "while True: pass\n    return"),
        mutant("LIMIT = 3", "LIMIT = THREE"),
        mutant("not more than", "at most"),
    ]

    codes = [code for _, code in mutation.outcomes(project, mutants, patience=1)]

    failed, broken = pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED
    assert codes == [failed, 0, -signal.SIGALRM, broken, 0]
    assert (project / "src/jobs/tiny.py").read_text(encoding="utf-8") == MODULE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_tests_that_fail_anyway_kill_nothing(project: Path) -> None:
    (project / "src/jobs/tiny.py").write_text(MODULE.replace("3", "2"), encoding="utf-8")

    with pytest.raises(subprocess.CalledProcessError):
        list(mutation.outcomes(project, [mutant("<=", "<")]))


@pytest.mark.parametrize(
    ("alive", "known", "code"),
    [(0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1), (2, 2, 1)],
    ids=["all killed", "one known", "one unknown", "one known and killed", "too many"],
)
def test_it_fails_when_the_list_is_wrong_or_too_many_live(
    alive: int, known: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baked: Oven
) -> None:
    source = baked().read("src/jobs/metrics.py")
    made = [Mutant.of("metrics", source, f"{source}# {number}\n") for number in range(10)]
    page = tmp_path / "mutants.md"
    page.write_text(
        "".join(f"A comment.\n\n```diff\n{mutant.change}```\n\n" for mutant in made[:known]),
        encoding="utf-8",
    )

    def outcomes(_: Path, chosen: list[Mutant]) -> Iterator[tuple[Mutant, int]]:
        yield from ((mutant, int(number >= alive)) for number, mutant in enumerate(chosen))

    monkeypatch.setattr(mutation, "PAGE", page)
    monkeypatch.setattr(mutation, "mutants", lambda _: made)
    monkeypatch.setattr(mutation, "outcomes", outcomes)
    monkeypatch.setattr(sys, "argv", ["mutation"])

    assert mutation.main() == code


@pytest.mark.proof
def test_docstrings_and_annotations_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(
        "def twice(number: int | None = None) -> int | None:\n"
        '    """Count 2 + 2."""\n'
        "    half: int | float = number\n"
        '    """Half of 4."""\n'
        "    return half * 2\n",
        encoding="utf-8",
    )

    changed = {mutant.change for mutant in mutation.mutants(tmp_path)}

    assert {change.before for change in changed} == {"return half * 2"}
    assert len(changed) == 11 + 2  # another operator, a number more or less
