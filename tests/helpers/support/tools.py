"""Tools in environments of their own: their pins exclude what the suite or another tool needs."""

import hashlib
import os
import shutil
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


_OLDEST_NODE = (20, 19, 0)  # what Redocly takes


def npm_packages(name: str, pins: Path) -> tuple[Path, Path]:
    """Return a Node command, and a folder with the npm packages of `pins`/package.json.

    `before` in `pins`/.npmrc pins what they depend on, so there is no lock file. They are installed
    into .cache/ at first use, and again when one of the two files changes. Raises SetupError when
    nothing can be installed.
    """
    node = _node()
    files = [pins / "package.json", pins / ".npmrc"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    folder = CACHE / f"{name}-{digest}"
    with machine.lock(name):
        if not (folder / "finished").exists():
            say(f"installing {name} into {folder} …")
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy(file, folder)
            path = os.pathsep.join((str(node), os.environ.get("PATH", "")))
            run(node / "npm", "install", "--silent", cwd=folder, env={**os.environ, "PATH": path})
            (folder / "finished").touch()
    return node / "node", folder


def _node() -> Path:
    """Return the folder of a Node that is new enough: the one on PATH, else one from PyPI."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and Path(found).parent == Path(npm).parent:
        version = run(found, "--version").stdout.strip().removeprefix("v")
        if tuple(map(int, version.split("."))) >= _OLDEST_NODE:
            return Path(found).parent
    return scripts("node")
