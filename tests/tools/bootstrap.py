"""Create .venv with the packages that the kit's tests import.

    python3 tests/tools/bootstrap.py

Runs on Python 3.8 or later, and looks for Python 3.11 or later to create .venv. Does nothing when
.venv is up to date. Exits 1 with a line that says what is missing and how to get it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "installed"
FOUND = re.compile("Collecting ")
PYPROJECT = ROOT / "pyproject.toml"
# The requirements of generated projects.
REQUIREMENTS = (
    ROOT / "{{cookiecutter.project}}" / "requirements-dev.txt",
    ROOT / "templates" / "queue" / "src" / "requirements.txt",
    ROOT / "templates" / "durable" / "src" / "requirements.txt",
    ROOT / "templates" / "durable" / "requirements-dev.txt",
)


class SetupError(Exception):
    """This machine lacks something. The message says how to get it."""


def say(text: str) -> None:
    """Print a progress line."""
    print(f"[setup] {text}", file=sys.stderr, flush=True)


def run(*command: object) -> None:
    """Run a command without input. Raises SetupError when it fails; its own output says why."""
    words = [str(word) for word in command]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = subprocess.DEVNULL
    if subprocess.call(words, stdin=quiet, stdout=quiet, env=environment) != 0:
        raise SetupError(f"`{' '.join(words)}` failed. Its output above says why.")


def succeeds(python: object, code: str) -> bool:
    """Return whether `python` exists and runs `code` without an error."""
    try:
        return subprocess.call([str(python), "-c", code], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def find_python() -> str:
    """Return the first Python that is new enough: this one, then those on PATH."""
    names = ["python3"] + [f"python3.{minor}" for minor in range(14, OLDEST[1] - 1, -1)]
    for python in (sys.executable, *map(shutil.which, names)):
        if python and succeeds(python, f"import sys; sys.exit(sys.version_info < {OLDEST})"):
            return python
    raise SetupError("No Python 3.11 or later is on PATH. Install one as python3 or python3.11.")


def make_venv() -> None:
    """Create .venv again. Debian keeps a part of the venv module in a separate package."""
    if not succeeds(sys.executable, "import ensurepip"):
        if not shutil.which("apt-get") or os.geteuid() != 0:
            raise SetupError("Python has no venv module. On Debian: apt-get install python3-venv")
        say("installing python3-venv ...")
        run("apt-get", "update")
        run("apt-get", "install", "-y", "--no-install-recommends", "python3-venv")
    say(f"creating .venv with {sys.executable} ...")
    run(sys.executable, "-m", "venv", "--clear", VENV)


def install() -> None:
    """Install the packages that pyproject.toml and the generated project pin."""
    import tomllib

    packages = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["dependency-groups"]["dev"]
    lines = (line for file in REQUIREMENTS for line in file.read_text("utf-8").splitlines())
    packages += [line.partition("#")[0].strip() for line in lines if line[:1].isalpha()]
    say("installing the tests' packages into .venv (once, takes some minutes) ...")
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--progress-bar", "off", *packages]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:
        for found, line in enumerate(filter(FOUND.match, pip.stdout or ()), 1):
            if sys.stderr.isatty():  # one line that changes
                print(f"\r[setup] {found}: {line.split()[1]:<60.60}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if pip.returncode != 0:
        raise SetupError("pip could not install every package. Its output above says why.")


def main() -> int:
    """Bring .venv up to date and return the exit status."""
    sources = b"".join(file.read_bytes() for file in (PYPROJECT, *REQUIREMENTS))
    wanted = hashlib.sha256(sources).hexdigest()
    there = succeeds(VENV_PYTHON, "import pip")
    if there and STAMP.exists() and STAMP.read_text() == wanted:
        return 0
    try:
        python = find_python()
        if python != sys.executable:
            return subprocess.call([python, __file__])
        if not there:
            make_venv()
        install()
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
