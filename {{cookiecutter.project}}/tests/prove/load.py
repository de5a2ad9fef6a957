"""`python -m tests.prove.load`: 1,000 jobs in bursts, on 8 sandboxes a function.

Prints the throughput beside that of the emulated AWS alone, which bounds it, the time from 202 to
the end, and the memory of the whole stack. Exit code 1 when a job is lost.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from local.processes import descendants
from local.stack import Stack
from tests.prove import engine
from tests.samples import HAPPY

PROJECT = Path(__file__).parents[2]
SANDBOXES = 8


def main() -> int:
    """Send the bursts and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.prove.load", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--burst", type=int, default=250, help="jobs sent at once")
    options = parser.parse_args()
    bursts = [
        min(options.burst, options.jobs - sent) for sent in range(0, options.jobs, options.burst)
    ]
    with Stack(PROJECT, concurrency=SANDBOXES) as stack, Memory() as memory:
        floor = sum(_timed(engine.floor, stack, burst, SANDBOXES) for burst in bursts)
        say(f"the emulated AWS alone: {options.jobs / floor:.1f} jobs a second")
        took = 0.0
        for number, burst in enumerate(bursts, 1):
            seconds = _timed(_burst, stack, burst)
            took += seconds
            say(f"burst {number}: {burst} jobs in {seconds:.1f} s")
        jobs = [job for job in stack.jobs() if job.get("status") == "completed"]
    waits = [_seconds(job["created_at"], job["finished_at"]) for job in jobs]
    cuts = statistics.quantiles(waits, n=100)
    print(f"jobs accepted {options.jobs}, completed {len(jobs)}")
    print(
        f"throughput {options.jobs / took:.1f} jobs a second,"
        f" {floor / took:.0%} of what the emulated AWS could do alone"
    )
    print(f"from 202 to the end: median {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s (in bursts)")
    print(f"memory of the whole stack, at most {memory.most_mb:.0f} MB")
    return 0 if len(jobs) == options.jobs else 1


def say(line: str) -> None:
    """Tell of progress."""
    print(line, file=sys.stderr, flush=True)


class Memory:
    """Watches the resident memory of this process and all that it started."""

    def __init__(self) -> None:
        self.most_mb = 0.0
        self._done = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def __enter__(self) -> "Memory":
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watching.join()

    def _watch(self) -> None:
        while not self._done.wait(1):
            own = os.getpid()
            pids = ",".join(map(str, [own, *descendants(own)]))
            listing = subprocess.run(
                ["ps", "-o", "rss=", "-p", pids], capture_output=True, text=True, check=False
            )
            self.most_mb = max(self.most_mb, sum(map(int, listing.stdout.split())) / 1024)


def _burst(stack: Stack, jobs: int) -> None:
    """Send so many jobs at once, and wait until they are done."""
    with (
        httpx.Client(base_url=stack.url, timeout=120) as http,
        ThreadPoolExecutor(SANDBOXES) as callers,
    ):
        for answer in callers.map(lambda _: http.post("/jobs", json=HAPPY), range(jobs)):
            answer.raise_for_status()
    while engine.busy(stack):
        time.sleep(0.1)


def _timed(do: Callable[..., None], *arguments: Any) -> float:
    started = time.monotonic()
    do(*arguments)
    return time.monotonic() - started


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
