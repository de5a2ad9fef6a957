"""The part of `make bench` that runs inside a generated project, on its laptop stack.

Prints one figure a line, as JSON; see bench.Figure. The environment's FLOOR holds the AWS calls of
one job, as calls.py has noted them.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from uuid import uuid4

from botocore import xform_name

from local.emulator import Emulator
from local.stack import Stack
from tests import samples

TERMINAL = ("completed", "failed", "cancelled")
STARTS = 5
JOBS_IN_A_ROW = 50
JOBS_AT_ONCE = 200
START = 1.5
"""Of the emulated AWS and one handler alone, where 1.5 s were the budget and 1.2 s the figure."""
POST = 1.1
"""Of the calls until the job is completed. 35 ms were the budget; 32 ms were 0.9 times the calls on
that machine, and 1.0 times on one that takes three times as long for both."""
DRAINED = 3.0
"""Of all calls of these jobs, one by one."""
PATIENCE = 300
"""Seconds after which what still has not happened never will."""


def show(what: str, value: float, budget: float | None, unit: str) -> None:
    """Hand one figure to bench.py."""
    print(json.dumps({"what": what, "value": value, "budget": budget, "unit": unit}), flush=True)


def request(url: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the job in the answer to a request."""
    data = None if payload is None else json.dumps(payload).encode()
    call = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=PATIENCE) as answer:
        job: dict[str, Any] = json.load(answer)
        return job


def run_job(stack: Stack) -> float:
    """Send one job, wait for its end and return the milliseconds from the request to that.

    The job itself tells when it ended: polling for the moment would slow down what is polled.
    """
    start = time.time()
    job = request(f"{stack.url}/jobs", samples.HAPPY)
    while job["status"] not in TERMINAL:
        assert time.time() < start + PATIENCE, job
        time.sleep(0.02)
        job = request(f"{stack.url}/jobs/{job['job_id']}")
    assert job["status"] == "completed", job
    return (datetime.fromisoformat(job["finished_at"]).timestamp() - start) * 1000


class Floor:
    """The least that a job takes here: its AWS calls from one process, with nothing around them."""

    def __init__(self, aws: Emulator) -> None:
        self._aws = aws
        self._sqs = aws.client("sqs")
        self._queue = self._sqs.create_queue(QueueName="floor")["QueueUrl"]
        self._calls = os.environ["FLOOR"]

    def job(self) -> tuple[float, float]:
        """Make the calls of the functions again, for another job, and those of the poller.

        Return the milliseconds until the job is completed, which is noted before it is written, and
        those in all.
        """
        text = re.sub(r"once#\w{8}", f"once#{uuid4().hex[:8]}", self._calls)
        text = re.sub(r"\w{8}-\w{4}-\w{4}-\w{4}-\w{12}", str(uuid4()), text)
        messages: list[dict[str, str]] = []
        completed, start = 0.0, time.perf_counter()
        for service, operation, parameters in json.loads(text):
            if "QueueUrl" in parameters:
                parameters["QueueUrl"] = self._queue
            if parameters.get("TableName") == "JobsTable":
                completed = time.perf_counter() - start
            getattr(self._aws.client(service), xform_name(operation))(**parameters)
            if operation == "SendMessage":
                messages = self._receive()
        entries = [{"Id": "0", "ReceiptHandle": message["ReceiptHandle"]} for message in messages]
        if entries:
            self._sqs.delete_message_batch(QueueUrl=self._queue, Entries=entries)
        return completed * 1000, (time.perf_counter() - start) * 1000

    def _receive(self) -> list[dict[str, str]]:
        every = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
        return list(self._sqs.receive_message(QueueUrl=self._queue, **every)["Messages"])


def start_alone() -> None:
    """Start the emulated AWS and import one handler, one after the other: the parts of a start."""
    server = "from moto.server import ThreadedMotoServer; ThreadedMotoServer(port=0).start()"
    for code in (f"{server}; import os; os._exit(0)", "import api"):
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def milliseconds(action: Callable[[], None]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def unfinished(stack: Stack) -> int:
    """Return how many jobs are not terminal."""
    pages = stack.aws.client("dynamodb").get_paginator("scan").paginate(TableName="JobsTable")
    items = [item for page in pages for item in page["Items"] if "status" in item]
    return sum(item["status"]["S"] not in TERMINAL for item in items)


def main() -> None:
    """Measure the stack against the emulator's own floor, taken in turn."""
    starts, parts = [], []
    for _ in range(STARTS):
        parts.append(milliseconds(start_alone))
        start = time.perf_counter()
        with Stack(".", skip_time=True):
            starts.append((time.perf_counter() - start) * 1000)
    ready = statistics.median(starts)
    show("laptop stack: start to ready", ready / 1000, None, "s")
    show("  the same : moto and one handler alone", ready / statistics.median(parts), START, "x")

    with Stack(".", skip_time=True) as stack:
        floor = Floor(stack.aws)
        for _ in range(3):
            floor.job()
            run_job(stack)
        bare, jobs = [], []
        for _ in range(JOBS_IN_A_ROW):
            bare.append(floor.job())
            jobs.append(run_job(stack))
        one = statistics.median(jobs)
        completed, alone = (statistics.median(times) for times in zip(*bare, strict=True))
        limit = None if stack.durable else POST
        show(f"warm POST to completed, median of {JOBS_IN_A_ROW}", one, None, "ms")
        show("  the same : the AWS calls of a job alone", one / completed, limit, "x")

        start = time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            url = f"{stack.url}/jobs"
            list(pool.map(lambda _: request(url, samples.HAPPY), range(JOBS_AT_ONCE)))
        while left := unfinished(stack):
            assert time.perf_counter() < start + PATIENCE, f"{left} jobs do not end"
            time.sleep(0.5)
        drained = time.perf_counter() - start
        show(f"{JOBS_AT_ONCE} jobs at once, drained", JOBS_AT_ONCE / drained, None, "jobs/s")
        floor_seconds = JOBS_AT_ONCE * alone / 1000
        show(
            "  the same : their AWS calls, one by one",
            drained / floor_seconds,
            None if stack.durable else DRAINED,
            "x",
        )


if __name__ == "__main__":
    main()
