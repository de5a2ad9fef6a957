"""Processes that end with everything they started, and with this one.

To end a sandbox as a whole takes its process group and its descendants. If the laptop stack itself
is killed, a guard process outlives it for a moment and ends them.
https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_PROC = Path("/proc")


def patience(seconds: float) -> float:
    """Return a timeout in seconds, prolonged on an overloaded machine.

    Lambda gives each sandbox its own share of a processor.
    """
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def descendants(pid: int) -> dict[int, str]:
    """Return the running descendants of a process: pid → command line."""
    if not (_PROC / "self" / "task").is_dir():
        return _descendants_ps(pid)
    found = {}
    for child in _children_linux(pid):
        with contextlib.suppress(OSError):
            state = (_PROC / str(child) / "stat").read_text().rpartition(")")[2].split()[0]
            command = (_PROC / str(child) / "cmdline").read_bytes().replace(b"\0", b" ")
            if state not in "ZX":  # a zombie has ended
                found[child] = command.decode(errors="replace").strip()
        found |= descendants(child)
    return found


def _children_linux(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (task / "children").read_text().split())
    return children


def _descendants_ps(pid: int) -> dict[int, str]:
    listing = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,stat=,command="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in listing.stdout.splitlines()]
    found: dict[int, str] = {}
    ancestors = {pid}
    while new := [r for r in rows if int(r[1]) in ancestors and int(r[0]) not in ancestors]:
        ancestors |= {int(r[0]) for r in new}
        found |= {int(r[0]): r[3] for r in new if len(r) > 3 and not r[2].startswith("Z")}
    return found


def signal_tree(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that leads its group, to the group and to all descendants."""
    others = descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    for other in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(other, number)


def kill_tree(pid: int) -> None:
    """End a process and everything it started, at once."""
    signal_tree(pid, signal.SIGSTOP)  # so that nothing is started between looking and killing
    signal_tree(pid, signal.SIGKILL)


class Guard:
    """Kills processes, and removes folders, as soon as this process has ended in any way."""

    def __init__(self, *folders: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-IS", __file__, *folders],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def add(self, pid: int) -> None:
        """Put a process (a group leader) under this guard."""
        self._tell(f"+{pid}")

    def remove(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._tell(f"-{pid}")

    def close(self) -> None:
        """End the guard; it kills the processes it knows, and removes its folders."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process.stdin:
            # One write per line, so that threads need no lock. The guard may have ended.
            with contextlib.suppress(OSError, ValueError):
                os.write(self._process.stdin.fileno(), f"{line}\n".encode())


class Service:
    """A script of this folder in a process of its own, which ends with this one."""

    def __init__(
        self, script: str, *arguments: object, environment: dict[str, str], sockets: list[int]
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the garbage collector
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name(script), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=sockets,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._guard = Guard()
        self._guard.add(self.pid)

    def end(self, within: float = 0) -> str:
        """Return why the process has ended, or ends within some seconds; "" while it runs."""
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {code}"

    def stop(self) -> None:
        """End the process."""
        kill_tree(self.pid)
        self._process.wait()
        self._guard.close()


def _guard() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pids: set[int] = set()
    for line in sys.stdin:
        (pids.add if line[0] == "+" else pids.discard)(int(line[1:]))
    for pid in pids:
        kill_tree(pid)
    for folder in sys.argv[1:]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _guard()
