"""What the kit's tests share."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.baked import BakedProject, bake, copy_kit
from tests.helpers.support import containers, machine

pytest_plugins = ["tests.helpers.schedule"]

# local/ is imported where it lies, and what lies there is generated.
sys.dont_write_bytecode = True


def pytest_configure(config: pytest.Config) -> None:
    """Let progress lines through pytest's capture: the first run builds things for minutes."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    machine.speak_through(capture.global_and_fixture_disabled)


def pytest_report_header() -> str:
    """Which image stands for Lambda in this run."""
    return containers.describe("python3.13")


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit as a fresh clone would have it, in a folder of its own."""
    return copy_kit(tmp_path_factory.mktemp("clone") / "kit")


class Oven:
    """Makes projects, each combination of answers once for all processes of a run."""

    def __init__(self, kit: Path, folders: pytest.TempPathFactory) -> None:
        self._kit = kit
        self._folders = folders
        self._done: dict[str, BakedProject] = {}
        # A process of pytest-xdist has its folder within the one of the run.
        own = folders.getbasetemp()
        self._shelf = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "oven"

    def __call__(self, **answers: Any) -> BakedProject:
        """The project for `answers`, shared by all tests of the process: do not change it."""
        key = repr(sorted(answers.items()))
        if key not in self._done:
            self._done[key] = self._copy("baked", answers)
        return self._done[key]

    def fresh(self, **answers: Any) -> BakedProject:
        """A copy of that project, to write into."""
        return self._copy("fresh", answers)

    def _copy(self, name: str, answers: dict[str, Any]) -> BakedProject:
        """Copy the project that the first process to ask for it has baked."""
        key = repr(sorted(answers.items()))
        place = self._shelf / hashlib.sha256(key.encode()).hexdigest()[:16]
        with machine.lock("oven"):
            if not place.exists():
                bake(self._kit, place.with_suffix(".unfinished"), answers)
                place.with_suffix(".unfinished").rename(place)
        (original,) = place.iterdir()
        path = shutil.copytree(original, self._folders.mktemp(name) / original.name)
        return BakedProject(Path(path), dict(answers))


@pytest.fixture(scope="session")
def baked(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Oven:
    """Generated projects: `baked(auth="jwt")`, and `baked.fresh(...)` for one to change."""
    return Oven(kit, tmp_path_factory)
