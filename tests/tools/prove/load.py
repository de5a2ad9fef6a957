"""`python -m tests.tools.prove.load`: send 1,000 jobs to a generated project, in bursts.

Runs the project as it is, with the payload of its events/create_job.json. Prints:

- the throughput, beside that of the emulated AWS alone, which bounds it;
- the time from the 202 to the end;
- the memory of the whole stack.

Exits 1 when a job does not complete.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.tools.prove.__main__ import add_project, find_project, say
from tests.tools.prove.engine import Engine, load_engine
from tests.tools.prove.project import NotAProject

if TYPE_CHECKING:
    from local.stack import Stack

SANDBOXES = 8


def main() -> int:
    """Send the bursts and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.prove.load", description=__doc__)
    add_project(parser)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--burst", type=int, default=250, help="jobs sent at once")
    options = parser.parse_args()
    with ExitStack() as closing:
        try:
            project = find_project(options, closing)
        except NotAProject as error:
            parser.error(str(error))
        return run(project.path, load_engine(project.engine), options)


def run(project: Path, engine: Engine, options: argparse.Namespace) -> int:
    """Send the bursts to one project; return the exit code."""
    from local.stack import Stack  # the project's, known by now

    event = json.loads((project / "events" / "create_job.json").read_text(encoding="utf-8"))
    payload = json.loads(event["body"])
    bursts = [
        min(options.burst, options.jobs - sent) for sent in range(0, options.jobs, options.burst)
    ]
    with (
        Stack(project, dict(options.parameter), concurrency=SANDBOXES) as stack,
        Memory() as memory,
    ):
        floor = sum(_timed(engine.send_floor, stack, burst, SANDBOXES) for burst in bursts)
        say(f"the emulated AWS alone: {options.jobs / floor:.1f} jobs per second")
        took = 0.0
        for number, burst in enumerate(bursts, 1):
            seconds = _timed(_burst, stack, engine, payload, burst)
            took += seconds
            say(f"burst {number}: {burst} jobs in {seconds:.1f} s")
        jobs = [job for job in stack.jobs() if job.get("status") == "completed"]
    waits = [_seconds(job["created_at"], job["finished_at"]) for job in jobs]
    cuts = statistics.quantiles(waits, n=100)
    print(f"jobs accepted {options.jobs}, completed {len(jobs)}")
    print(
        f"throughput {options.jobs / took:.1f} jobs per second,"
        f" {floor / took:.0%} of the emulated AWS alone"
    )
    print(f"from 202 to the end: median {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s (in bursts)")
    print(f"memory of the whole stack, at most {memory.most_mb:.0f} MB")
    return 0 if len(jobs) == options.jobs else 1


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
        from local.processes import descendants

        while not self._done.wait(1):
            own = os.getpid()
            pids = ",".join(map(str, [own, *descendants(own)]))
            listing = subprocess.run(
                ["ps", "-o", "rss=", "-p", pids], capture_output=True, text=True, check=False
            )
            self.most_mb = max(self.most_mb, sum(map(int, listing.stdout.split())) / 1024)


def _burst(stack: "Stack", engine: Engine, payload: dict[str, Any], jobs: int) -> None:
    """Send so many jobs at once, and wait until they are done."""
    with (
        httpx.Client(base_url=stack.url, timeout=120) as http,
        ThreadPoolExecutor(SANDBOXES) as callers,
    ):
        for answer in callers.map(lambda _: http.post("/jobs", json=payload), range(jobs)):
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
