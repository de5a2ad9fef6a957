"""Recipe: split a long job, within another API's limits of concurrent calls and calls per second.

Payload: `{"items": 120}`
"""

from collections.abc import Sequence
from typing import Any

from aws_durable_execution_sdk_python import BatchResult, DurableContext
from aws_durable_execution_sdk_python.config import Duration, MapConfig

from jobs.context import JobContext
from retries import BRANCH_STEP

CHUNK = 10
"""Items per step. An execution has at most 3,000 operations, so a step handles several items."""

AT_A_TIME = 3
ROUND = 6
"""Chunks between two pauses."""

PAUSE = Duration.from_seconds(1)


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Handle the chunks in rounds. A later failure does not repeat finished chunks."""
    chunks = [
        list(range(start, min(start + CHUNK, payload["items"])))
        for start in range(0, payload["items"], CHUNK)
    ]
    total = 0
    for start in range(0, len(chunks), ROUND):
        if start > 0:
            context.wait(PAUSE, name=f"pause-{start}")
        done: BatchResult[int] = context.map(
            chunks[start : start + ROUND],
            handle,
            name=f"chunks-{start}",
            config=MapConfig(max_concurrency=AT_A_TIME),
        )
        done.throw_if_error()  # map does not raise
        total += sum(done.get_results())
        job.progress(min(start + ROUND, len(chunks)), len(chunks), f"{total} items done")
    return {"items": total}


def handle(
    context: DurableContext, chunk: list[int], index: int, chunks: Sequence[list[int]]
) -> int:
    """Handle one chunk in a step. Each branch has its own context."""
    return context.step(
        lambda _: sum(call(item) for item in chunk), name="call", config=BRANCH_STEP
    )


def call(item: int) -> int:
    """Call the other API here."""
    return 1
