"""The machine that the tests run on: commands, locks, packages, progress lines."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

CACHE = Path(__file__).resolve().parents[3] / ".cache"
"""What the suite makes for itself in this checkout: SAM's environment, a Python. Git-ignored."""

_aside: Callable[[], AbstractContextManager[None]] = nullcontext


class SetupError(RuntimeError):
    """Something is missing on this machine; the message's first line says how to get it."""


def speak_through(aside: Callable[[], AbstractContextManager[None]]) -> None:
    """Make `say` print inside this context, so that pytest's capture does not swallow it."""
    global _aside
    _aside = aside


def say(text: str) -> None:
    """Print a progress line to stderr."""
    with _aside():
        print(f"[setup] {text}", file=sys.stderr, flush=True)


def run(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float = 900,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return it with its output as text.

    Raises SetupError when it cannot be started, outlives `timeout` seconds, or, with `check`,
    exits non-zero; the message ends with what the command wrote.
    """
    words = [str(word) for word in command]
    shown = shlex.join(words)
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=env,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise SetupError(f"cannot run {shown}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{shown} did not end within {timeout:g} s") from error
    if check and done.returncode != 0:
        wrote = "\n".join(part for part in (done.stdout.strip(), done.stderr.strip()) if part)
        raise SetupError(f"{shown} failed with exit code {done.returncode}\n{wrote}")
    return done


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold a lock that every process of this user on this machine sees (pytest-xdist's too).

    Released by the system when the holder dies. On Windows it is no lock: nothing is installed
    or built there.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    folder = Path(tempfile.gettempdir()) / f"sam-202-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def can_install() -> bool:
    """Whether this is Debian or a relative (it has apt-get), and we are root."""
    if sys.platform == "win32":
        return False
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def apt_install(*packages: str) -> None:
    """Install Debian packages. Raises SetupError with apt's own words."""
    say(f"installing {' '.join(packages)} …")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", env=env)
    wait = "-oDPkg::Lock::Timeout=120"
    run("apt-get", wait, "install", "-y", "--no-install-recommends", *packages, env=env)


def which(name: str) -> str | None:
    """`shutil.which` that also looks where Debian keeps administrators' commands."""
    folders = (os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin")
    return shutil.which(name, path=os.pathsep.join(folders))
