"""Two processes run the kit's tests: each file's in one of them."""

import subprocess
import sys
from pathlib import Path

from tests import KIT
from tests.helpers.schedule import APART, LONG

TESTS = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("text", ["a::b", *map(str, range(12))])
def test_it(text):
    with Path(__file__).with_suffix(".ran").open("a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""


def test_one_process_runs_a_whole_file(tmp_path: Path) -> None:
    """Otherwise what a module's fixtures build for minutes is built twice."""
    for name in ("test_one.py", "test_two.py"):
        (tmp_path / name).write_text(TESTS, encoding="utf-8")
    options = ["-n", "2", "--dist", "loadscope", "-p", "tests.helpers.schedule", "-c", "pytest.ini"]
    (tmp_path / "pytest.ini").touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={"PYTHONPATH": str(KIT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    ran = [file.read_text(encoding="utf-8").split() for file in tmp_path.glob("*.ran")]
    assert sorted(map(len, ran)) == [13, 13]
    assert {frozenset(processes) for processes in ran} == {frozenset({"gw0"}), frozenset({"gw1"})}
    assert "slowest 10 files" in done.stdout


def test_the_schedule_names_files_that_there_are() -> None:
    assert [file for file in (*LONG, *APART) if not (KIT / file).exists()] == []
