"""The laptop stack of the durable variant: its page, and what it says for a missing emulator."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.processes import descendants
from tests.conftest import Oven
from tests.helpers.baked import BakedProject
from tests.helpers.browser import Browser
from tests.laptop.projects import until

SERVE = """
import sys
from local.stack import Stack
with Stack(".", {"RetryBaseSeconds": "0"}) as stack:
    print(stack.url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def project(baked: Oven) -> BakedProject:
    """The durable variant."""
    return baked(worker="durable")


@pytest.fixture(scope="module")
def url(project: BakedProject) -> Iterator[str]:
    """The address of its laptop stack."""
    stack = subprocess.Popen(
        [sys.executable, "-B", "-c", SERVE],
        cwd=project.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert stack.stdout
    yield stack.stdout.readline().strip()
    stack.communicate()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """A page."""
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


def test_the_page_shows_the_steps_of_an_execution(url: str, browser: Browser) -> None:
    """As they come: those before the answer, then all of them."""
    payload = {"customer": "ada", "delay_seconds": 0, "approval": True}
    job_id = httpx.post(f"{url}/jobs", json=payload).json()["job_id"]
    browser.open(f"{url}/_local")

    def steps() -> str:
        return str(browser.run("document.getElementById('executions')?.innerText"))

    until(lambda: "start-trial: succeeded" in steps() and "approval: started" in steps(), 60)
    assert job_id in steps()
    assert "follow-up" not in steps()

    job = httpx.get(f"{url}/jobs/{job_id}")
    assert job.json()["status"] == "waiting"
    httpx.post(f"{url}/jobs/{job_id}/callback", json={"approved": True}).raise_for_status()

    until(lambda: "follow-up: succeeded" in steps() and "end: succeeded" in steps(), 60)
    assert browser.errors == []


def refusal(project: BakedProject, packages: Path) -> str:
    """Return what a stack that does not start says, with `packages` before all others."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "local", "--port", "0"],
        cwd=project.path,
        env={"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    return done.stderr


def test_a_missing_emulator_is_named(project: BakedProject, tmp_path: Path) -> None:
    """One line that says what to do, and nothing is left running."""
    (tmp_path / "aws_durable_execution_sdk_python_testing").mkdir()
    (tmp_path / "aws_durable_execution_sdk_python_testing" / "__init__.py").touch()

    assert refusal(project, tmp_path) == (
        "local: the emulator of durable executions does not start; run `make setup`\n"
    )


HIDDEN = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
missing = "aws_durable_execution_sdk_python_testing"
PathFinder.find_spec = lambda name, *rest: None if name == missing else find(name, *rest)
"""


def test_a_package_that_is_not_installed_is_named(project: BakedProject, tmp_path: Path) -> None:
    """As in a project of queues to which somebody adds a durable function."""
    (tmp_path / "sitecustomize.py").write_text(HIDDEN, encoding="utf-8")

    assert refusal(project, tmp_path) == (
        "local: template.yaml has a durable function, which needs"
        " aws-durable-execution-sdk-python-testing."
        " Add it to requirements-dev.txt and run `make setup`.\n"
    )


def test_the_stack_does_not_outlive_the_emulator(project: BakedProject) -> None:
    """All executions are gone with it, and their jobs would wait for ever."""
    with subprocess.Popen(
        [sys.executable, "-B", "-m", "local", "--port", "0"],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as stack:
        assert stack.stdout
        assert stack.stderr
        try:
            stack.stdout.readline()
            (emulator,) = (p for p, c in descendants(stack.pid).items() if "durable_server.py" in c)
            os.kill(emulator, signal.SIGKILL)

            assert stack.wait(timeout=60) == 2
            assert stack.stderr.read() == (
                "local: the emulator ended, and with it all durable executions\n"
            )
        finally:
            stack.kill()  # or the `with` would wait for it


def test_the_json_of_the_page_holds_executions(url: str) -> None:
    """For scripts."""
    job = httpx.post(f"{url}/jobs", json={"customer": "ada", "delay_seconds": 0}).json()

    (newest, *_) = httpx.get(f"{url}/_local/state").json()["executions"]
    assert newest["name"].startswith(job["job_id"])
    assert {"function", "status", "operations"} <= newest.keys()
