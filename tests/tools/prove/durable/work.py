"""The campaign's work.py. It logs each step and side effect, and fails as its scenario says."""

import time
import uuid
from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, StepContext
from aws_durable_execution_sdk_python.config import Duration, WaitForCallbackConfig
from jobs import JobCancelled, PermanentError
from jobs.context import JobContext

from tests.tools.prove.fault_injector import log, strike
from tests.tools.prove.faults import KILLED_BEFORE, TIMED_OUT

STEP_SECONDS = 0.1
SPARE_SECONDS = 1.5
EFFECTS = ("charge the card", "send the mail")
ANSWER = WaitForCallbackConfig(timeout=Duration.from_seconds(300))


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Work, wait, then do two side effects once; fail where the scenario says so."""
    log("run", attempt=job.attempt)
    strike("run", KILLED_BEFORE)
    context.step(partial(toil, payload, job), name="toil")
    if payload.get("asks"):
        context.wait_for_callback(lambda callback_id, _: None, name="answer", config=ANSWER)
    else:
        context.wait(Duration.from_seconds(1), name="pause")
    receipts = [context.step(partial(once, payload, job, name), name=name) for name in EFFECTS]
    log("ran", attempt=job.attempt)
    return {"attempt": job.attempt, "receipts": receipts}


def toil(payload: dict[str, Any], job: JobContext, _: StepContext) -> None:
    """Take the time that the scenario says, and fail if it says so."""
    fails, last = payload.get("fails", "never"), payload.get("steps", 1)
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
    if fails == "for good" or (fails == "for good, once" and job.attempt == 1):
        raise PermanentError(f"attempt {job.attempt}: no such card")
    if fails == "always" or (fails == "once" and job.attempt == 1):
        raise ConnectionError(f"attempt {job.attempt}: the bank does not answer")


def once(payload: dict[str, Any], job: JobContext, name: str, _: StepContext) -> Any:
    """Do a side effect in a step: once for the job, however often the step is run."""
    broken = payload.get("fails") == "in an effect" and job.attempt == 1
    return job.once(name, partial(do, name, job.attempt, broken))


def do(name: str, attempt: int, broken: bool) -> str:
    """Do a side effect: log it, and return a receipt."""
    if broken:
        raise ConnectionError(f"attempt {attempt}: the bank does not answer")
    receipt = uuid.uuid4().hex
    log("effect", name, receipt, attempt)
    return receipt
