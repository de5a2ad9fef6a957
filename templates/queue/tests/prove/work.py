"""The campaign's work: what `src/work.py` is while the promises are proven.

It tells the witness of every step and of every side effect, and does what its scenario says.
"""

import time
import uuid
from functools import partial
from typing import Any

from jobs import JobCancelled, PermanentError
from jobs.context import JobContext
from tests.prove.faults import KILLED_BEFORE, TIMED_OUT
from tests.prove.sandbox import strike, tell

STEP_SECONDS = 0.1
SPARE_SECONDS = 1.5
EFFECTS = ("charge the card", "send the mail")


def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
    """Work in steps, then do two side effects once; fail on the way if the scenario says so."""
    fails, last = payload.get("fails", "never"), payload.get("steps", 1)
    first = job.attempt == 1
    tell("run", attempt=job.attempt)
    stuck = strike("work", KILLED_BEFORE, TIMED_OUT)
    for step in range(1_000 if stuck else last):
        tell("step", str(step), attempt=job.attempt)
        time.sleep(STEP_SECONDS)
        if not payload.get("quiet"):  # a look at the job is due only when no report was
            job.progress(step + 1, last)
        if not stuck and job.remaining() < SPARE_SECONDS:
            break  # on a busy machine
        if job.cancelled and not payload.get("deaf"):
            raise JobCancelled
    if fails == "for good" or (fails == "for good, once" and first):
        raise PermanentError(f"attempt {job.attempt}: no such card")
    if fails == "always" or (fails == "once" and first):
        raise ConnectionError(f"attempt {job.attempt}: the bank does not answer")
    broken = fails == "in an effect" and first
    receipts = [job.once(name, partial(do, name, job.attempt, broken)) for name in EFFECTS]
    tell("ran", attempt=job.attempt)
    return {"attempt": job.attempt, "receipts": receipts}


def do(name: str, attempt: int, broken: bool) -> str:
    """Do a side effect: the witness sees it, and its receipt is kept."""
    if broken:
        raise ConnectionError(f"attempt {attempt}: the bank does not answer")
    receipt = uuid.uuid4().hex
    tell("effect", name, receipt, attempt)
    return receipt
