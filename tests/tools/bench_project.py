"""The part of `make bench` that runs inside a generated project, on its laptop stack.

Prints one figure a line, as JSON; see bench.Figure.
"""

import json
import statistics
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from uuid import uuid4

from local.emulator import Emulator
from local.stack import Stack
from tests import samples

TERMINAL = ("completed", "failed", "cancelled")
JOBS_IN_A_ROW = 50
JOBS_AT_ONCE = 200
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


def floor(aws: Emulator, queue: str) -> None:
    """Make the AWS calls of one sample job with nothing around them: the emulator's own share."""
    dynamodb, sqs = aws.client("dynamodb"), aws.client("sqs")
    for table, key, updates in (("JobsTable", "job_id", 2), ("IdempotencyTable", "id", 1)):
        item = {key: {"S": f"floor-{uuid4()}"}}
        dynamodb.put_item(TableName=table, Item=item)
        for _ in range(updates):
            dynamodb.update_item(
                TableName=table,
                Key=item,
                UpdateExpression="SET floor = :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
    sqs.send_message(QueueUrl=queue, MessageBody="floor")
    (message,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


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
    start = time.perf_counter()
    with Stack(".", skip_time=True) as stack:
        show("laptop stack: start to ready", time.perf_counter() - start, 1.5, "s")
        queue = stack.aws.client("sqs").create_queue(QueueName="floor")["QueueUrl"]
        for _ in range(3):
            run_job(stack)
        bare, jobs = [], []
        for _ in range(JOBS_IN_A_ROW):
            bare.append(milliseconds(lambda: floor(stack.aws, queue)))
            jobs.append(run_job(stack))
        one, alone = statistics.median(jobs), statistics.median(bare)
        budget = None if stack.durable else 35
        show(f"warm POST to completed, median of {JOBS_IN_A_ROW}", one, budget, "ms")
        show("  the same : the AWS calls of a job alone", one / alone, None, "x")

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
            None if stack.durable else 3,
            "x",
        )


if __name__ == "__main__":
    main()
