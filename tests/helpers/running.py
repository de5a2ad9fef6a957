"""A generated project on the laptop stack, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import local
from local.stack import Stack
from tests.helpers.baked import BakedProject


@contextmanager
def running(project: BakedProject, **options: Any) -> Iterator[Stack]:
    """Run a project; the options are those of `Stack`."""
    with pytest.MonkeyPatch.context() as patch:
        # In the template, the modules that only the durable variant has go by another name.
        patch.setattr(local, "__path__", [*local.__path__, str(project.path / "local")])
        with Stack(project.path, **options) as stack:
            yield stack
