"""`make prove` of a generated project, with fewer jobs: it passes as generated, and it can fail."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import pytest

from tests.conftest import Oven
from tests.helpers.baked import BakedProject

pytestmark = pytest.mark.proof

JOBS = 60
SEEDS = {"queue": 240, "durable": 282}
"""Without a card that takes much longer than a minute."""

BUGS = {
    "                announce(ended)\n": "                pass\n",
    "    try:\n        claimed = store.claim(": (
        '    store._update(reference.job_id, {"note": "x"}, [], "attribute_exists(#job_id)", {})\n'
        "    try:\n        claimed = store.claim("
    ),
}
"""For src/worker.py: an announcement that is forgotten, and a write that nobody has named."""


def prove(project: BakedProject, jobs: int, seed: int) -> "subprocess.CompletedProcess[str]":
    """Run a campaign."""
    arguments = ("--jobs", str(jobs), "--seed", str(seed))
    return project.run("tests.prove", *arguments, check=False, timeout=900)


@pytest.fixture(scope="module")
def campaigns(baked: Oven) -> "dict[str, subprocess.CompletedProcess[str]]":
    """A campaign for each engine; side by side, since they mostly wait."""
    projects = [baked(worker=worker) for worker in SEEDS]
    with ThreadPoolExecutor() as pool:
        done = pool.map(prove, projects, repeat(JOBS), SEEDS.values())
        return dict(zip(SEEDS, done, strict=True))


@pytest.mark.parametrize("worker", SEEDS)
def test_the_promises_are_kept(
    worker: str, campaigns: "dict[str, subprocess.CompletedProcess[str]]"
) -> None:
    done = campaigns[worker]
    assert done.returncode == 0, done.stdout + done.stderr
    injected, survived = re.findall(r"^faults (?:injected|survived) +(\d+)$", done.stdout, re.M)
    assert injected == survived
    assert int(injected) > JOBS


def test_what_is_broken_is_seen(baked: Oven) -> None:
    """The exit code says so, and the report which promise, of which job, and how it came."""
    project = baked.fresh(worker="queue")
    worker = project.path / "src" / "worker.py"
    code = worker.read_text(encoding="utf-8")
    for sound, bug in BUGS.items():
        assert code.count(sound) == 1, sound
        code = code.replace(sound, bug)
    worker.write_text(code, encoding="utf-8")

    done = prove(project, 4, SEEDS["queue"])

    assert done.returncode == 1, done.stderr
    assert "BROKEN: every end is announced once" in done.stdout
    assert "points.py does not name: UpdateItem JobsTable note" in done.stdout
    assert "What happened to job" in done.stdout
