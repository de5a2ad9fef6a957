"""The campaign's work.py. It logs each step and side effect, and fails as its scenario says."""

import time
import uuid
from functools import partial
from typing import Any

from jobs import JobCancelled, PermanentError
from jobs.context import JobContext

from tests.tools.prove.fault_injector import log, strike
from tests.tools.prove.faults import KILLED_BEFORE, TIMED_OUT

STEP_SECONDS = 0.1
SPARE_SECONDS = 1.5
EFFECTS = ("charge the card", "send the mail")


def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
    """Work in steps, then do two side effects once; fail where the scenario says so."""
    fails, last = payload.get("fails", "never"), payload.get("steps", 1)
    first = job.attempt == 1
    log("run", attempt=job.attempt)
    stuck = strike("work", KILLED_BEFORE, TIMED_OUT)
    for step in range(1_000 if stuck else last):
        log("step", str(step), attempt=job.attempt)
        time.sleep(STEP_SECONDS)
        if not payload.get("quiet"):  # the worker looks at the job only when it reports no progress
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
    log("ran", attempt=job.attempt)
    return {"attempt": job.attempt, "receipts": receipts}


def do(name: str, attempt: int, broken: bool) -> str:
    """Do a side effect: log it, and return a receipt."""
    if broken:
        raise ConnectionError(f"attempt {attempt}: the bank does not answer")
    receipt = uuid.uuid4().hex
    log("effect", name, receipt, attempt)
    return receipt
