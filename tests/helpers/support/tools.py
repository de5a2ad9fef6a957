"""Tools in environments of their own: their pins exclude what the suite or another tool needs."""

import hashlib
import sys
from pathlib import Path

from . import machine
from .machine import CACHE, run, say


def requirements(name: str) -> Path:
    """Return the file that pins a tool."""
    return Path(__file__).with_name(f"requirements-{name}.txt")


def scripts(name: str) -> Path:
    """The folder of the commands of requirements-NAME.txt.

    They are installed into .cache/ at first use, and again when that file changes. Raises
    SetupError when nothing can be installed.
    """
    pins = requirements(name)
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    folder = CACHE / f"{name}-{digest}"
    found = folder / ("Scripts" if sys.platform == "win32" else "bin")
    finished = folder / "finished"
    with machine.lock(name):
        if not finished.exists():
            say(f"installing {name} into {folder} …")
            run(sys.executable, "-m", "venv", "--clear", folder)
            # A tool compiles what it imports when it runs: a small part of what it installs.
            pip = (found / "python", "-m", "pip", "install", "--quiet", "--no-compile")
            run(*pip, "--requirement", pins)
            finished.touch()
    return found
