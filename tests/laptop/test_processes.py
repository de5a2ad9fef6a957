"""What runs below a process is found, on macOS too."""

import os
import shutil
import signal
import subprocess

import pytest

from local.processes import _descendants_ps, descendants
from tests.laptop.projects import until


@pytest.mark.skipif(not shutil.which("ps"), reason="needs ps")
def test_ps_finds_what_proc_shows() -> None:
    """Children and theirs, but neither the process itself, nor a zombie, nor a stranger."""
    inner = 'sh -c "true & exec sleep 61"; exit'  # sleep leaves `true` a zombie
    outer = ["sh", "-c", 'sleep 60 & sh -c "$0" & wait', inner]
    commands = [f"sh -c {inner}", "sleep 60", "sleep 61"]
    with (
        subprocess.Popen(outer, start_new_session=True) as tree,
        subprocess.Popen(["sleep", "62"]) as stranger,
    ):
        try:
            until(lambda: sorted(descendants(tree.pid).values()) == commands)
            assert _descendants_ps(tree.pid) == descendants(tree.pid)
        finally:
            os.killpg(tree.pid, signal.SIGKILL)
            stranger.kill()
