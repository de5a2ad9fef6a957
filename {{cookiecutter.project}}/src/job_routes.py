"""The routes of the jobs: create, get, cancel and retry."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

import dispatch
from jobs import Job, Status
from jobs.canonical import canonical, fingerprint
from jobs.job_id import job_id_for
from jobs.metrics import Metric, count
from jobs.settings import required
from jobs.store import JobStore
from jobs.table import ConditionFailed
from web.app import Router
from web.body import json_body
from web.caller import caller_of
from web.idempotency_key import idempotency_key
from web.owner import own_job
from web.payload import parse_payload
from web.problems import (
    IdempotencyKeyReused,
    IntakePaused,
    JobFinished,
    JobNotRetryable,
    ServiceUnavailable,
)
from web.responses import job_response, problem_response

logger = Logger()
router = Router()
store = JobStore()

INTAKE = required("INTAKE")
"""`paused` while the operator accepts no jobs."""


@router.post("/jobs")
def create_job() -> Response[str]:
    """Accept a job: store it, hand it over, then answer 202."""
    event = router.current_event
    body = json_body(event)
    key = idempotency_key(event)
    payload = parse_payload(body)

    owner = caller_of(event)
    job_id = job_id_for(owner, key)
    logger.append_keys(job_id=job_id)
    if INTAKE == "paused" and store.get(job_id) is None:
        raise IntakePaused("Send the job again later, with the same Idempotency-Key.")
    job, replayed = _store_or_find(job_id, owner, payload)
    if job.status is Status.QUEUED and job.attempts == 0:
        job = _hand_over_new(job)
    if not replayed:
        count(Metric.ACCEPTED)
    logger.info("job accepted", extra={"status": job.status, "replayed": replayed})
    return job_response(202, job, {"Idempotent-Replayed": "true"} if replayed else {})


@router.get("/jobs/<job_id>")
def get_job(job_id: str) -> Response[str]:
    """Return a job's status; 200 also for a failed job."""
    return job_response(200, own_job(router.current_event, job_id))


@router.post("/jobs/<job_id>/cancel")
def cancel_job(job_id: str) -> Response[str]:
    """Cancel a job, or ask the attempt that holds it to stop."""
    job = own_job(router.current_event, job_id)
    while True:  # the job may change between the read and the write
        if job.status is Status.CANCELLED:
            return job_response(200, job)
        if job.status.terminal:
            raise JobFinished(f"The job is {job.status}.")
        try:
            job = dispatch.cancel(job)
        except ConditionFailed as refused:
            changed = refused.job or own_job(router.current_event, job_id)
            if changed.retry_of != job.retry_of:  # it was cancelled, and then retried
                return job_response(202, changed)
            job = changed
            continue
        if job.status.terminal:
            count(Metric.CANCELLED)
        logger.info("cancellation requested", extra={"status": job.status})
        return job_response(202, job)


@router.post("/jobs/<job_id>/retry")
def retry_job(job_id: str) -> Response[str]:
    """Queue a failed or cancelled job again.

    The hand-over comes first, because the worker can change the status too. If this function
    crashes in between, no job is left that is queued and that nothing runs.
    """
    job = own_job(router.current_event, job_id)
    if job.status not in (Status.FAILED, Status.CANCELLED):
        raise JobNotRetryable(
            f"The job is {job.status}; only failed or cancelled ones can be retried."
        )
    if job.worn_out:
        raise JobNotRetryable("The job has been retried too often. Send it as a new one.")
    if INTAKE == "paused":
        raise IntakePaused("Retry the job later.")
    dispatch.hand_over(job, retry_of=len(job.history))
    try:
        job = store.retry(job_id, len(job.history))
    except ConditionFailed as refused:  # the worker was faster, or another retry
        job = refused.job or job
    logger.info("retry requested", extra={"status": job.status})
    return job_response(202, job)


def _store_or_find(job_id: str, owner: str, payload: dict[str, Any]) -> tuple[Job, bool]:
    """Store a new job, or find the one that its key has made; also tell which."""
    while True:  # another request may withdraw the job that this one has found
        try:
            return store.create(job_id, owner, payload, logger.get_correlation_id()), False
        except ConditionFailed as refused:
            stored = refused.job
        if stored is None:
            continue
        if stored.fingerprint != fingerprint(canonical(payload)):
            raise IdempotencyKeyReused("The key came with another payload before. Use a new key.")
        if stored.status is not Status.QUEUED or stored.attempts > 0:
            return stored, True
        try:
            return store.adopt(job_id), True
        except ConditionFailed as refused:
            if refused.job is not None:
                return refused.job, True


def _hand_over_new(job: Job) -> Job:
    """Hand over a job that no attempt has begun; if that fails, remove it where that is safe."""
    try:
        dispatch.hand_over(job)
    except dispatch.NotHandedOver as error:
        if error.may_run:
            raise
        try:
            store.withdraw(job)
        except ConditionFailed as refused:
            if refused.job and (refused.job.attempts > 0 or refused.job.status.terminal):
                return refused.job  # it arrived after all
        raise
    return job


def _not_handed_over(_: dispatch.NotHandedOver) -> Response[str]:
    """Answer 503: the caller repeats the request with the same key."""
    logger.exception("job not handed over")
    return problem_response(ServiceUnavailable("The job could not be handed over. Send it again."))


router.exception_handler(dispatch.NotHandedOver)(_not_handed_over)
