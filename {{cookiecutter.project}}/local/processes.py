"""Processes that end when they should: with everything they started, and with this one.

Lambda ends a sandbox whole; here that takes a process group, a look at its descendants and, for
the case that the laptop stack itself is killed, a guard process that outlives it for a moment.
https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_PROC = Path("/proc")


def patience(seconds: float) -> float:
    """Return how long to wait for what takes so many seconds on a machine that is not overloaded.

    Lambda gives a sandbox its own share of a processor; here, everything else runs beside it.
    """
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def descendants(pid: int) -> dict[int, str]:
    """Return the running descendants of a process: pid → command line."""
    if (_PROC / "self" / "task").is_dir():
        children, found = _children_linux(pid), {}
    else:
        return _descendants_ps(pid)
    for child in children:
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
    """Kills what it was told of as soon as this process is gone, however it went.

    Then it removes the folders, with what was written there.
    """

    def __init__(self, *folders: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-IS", __file__, *folders],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def add(self, pid: int) -> None:
        """Put a process (a group leader) under guard."""
        self._tell(f"+{pid}")

    def remove(self, pid: int) -> None:
        """Take a process that has ended out of guard."""
        self._tell(f"-{pid}")

    def close(self) -> None:
        """End the guard; it kills what is still under it, and removes its folders."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process.stdin:
            # One write per line: threads need no lock, and a guard that is gone is no error.
            with contextlib.suppress(OSError, ValueError):
                os.write(self._process.stdin.fileno(), f"{line}\n".encode())


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
