"""Stacks of small projects."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.laptop.commands import Project
from tests.laptop.projects import until, write_project


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Start stacks of small projects; they end with the test."""
    from local.stack import Stack

    with ExitStack() as stacks:

        def start(resources: dict[str, Any], sources: dict[str, str], **options: Any) -> Any:
            folder = tmp_path / f"project{len(list(tmp_path.iterdir()))}"
            write_project(folder, resources, sources)
            return stacks.enter_context(Stack(folder, **options))

        yield start


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "shop")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    until(lambda: not made.processes())
