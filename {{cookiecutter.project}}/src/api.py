"""The HTTP API: accepts jobs, tells their status, cancels and retries them."""

import base64
import json
import re
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError

import dispatch
from caller import caller_of
from jobs import Job, Status
from jobs.idempotency import fingerprint, job_id_for, parse_key
from jobs.job import NewerSchema
from jobs.metrics import count
from jobs.payload import canonical, check_size, parse
from jobs.problems import (
    IdempotencyKeyReused,
    InternalError,
    InvalidJson,
    JobFinished,
    JobNotFound,
    JobNotRetryable,
    Problem,
    ServiceUnavailable,
    UnsupportedMediaType,
)
from jobs.reference import Reference
from jobs.store import JobStore, Refused

POLL_SECONDS = 2
"""What Retry-After tells a caller whose job is not finished."""

JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

logger = Logger()
app = APIGatewayHttpResolver()
store = JobStore()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request of the HTTP API, in payload format 2.0."""
    return app.resolve(event, context)


@app.post("/jobs")
def create_job() -> Response[str]:
    """Accept a job: store it, hand it over, and only then say 202."""
    event = app.current_event
    _check_media_type(event)
    body = _body(event)
    check_size(len(body))
    header = event.headers.get("idempotency-key")
    key = parse_key(header) if header is not None else None
    payload = parse(body)

    owner = caller_of(event)
    job_id = job_id_for(owner, key)
    logger.append_keys(job_id=job_id)
    job, replayed = _accept(job_id, owner, payload)
    if job.status is Status.QUEUED and job.attempts == 0:
        job = _hand_over_new(job)
    if not replayed:
        count("JobAccepted")
    logger.info("job accepted", extra={"status": job.status, "replayed": replayed})
    return _answer(202, job, {"Idempotent-Replayed": "true"} if replayed else {})


@app.get("/jobs/<job_id>")
def get_job(job_id: str) -> Response[str]:
    """Tell a job's status, a failed job's too."""
    return _answer(200, _owned(job_id))


@app.post("/jobs/<job_id>/cancel")
def cancel_job(job_id: str) -> Response[str]:
    """Cancel a job: at once when no attempt holds it, otherwise by asking the attempt to stop."""
    job = _owned(job_id)
    while True:  # the status may change between the look and the write
        if job.status is Status.CANCELLED:
            return _answer(200, job)
        if job.status.terminal:
            raise JobFinished(f"The job is {job.status}.")
        try:
            job = dispatch.call_off(job)
        except Refused as refused:
            changed = refused.job or _owned(job_id)
            if changed.retry_of != job.retry_of:  # cancelled it was, and then retried
                return _answer(202, changed)
            job = changed
            continue
        if job.status.terminal:
            count("JobCancelled")
        logger.info("cancellation asked for", extra={"status": job.status})
        return _answer(202, job)


@app.post("/jobs/<job_id>/retry")
def retry_job(job_id: str) -> Response[str]:
    """Give a failed or cancelled job another go.

    The reference goes first, for the worker can make the transition too: a crash in between
    leaves no job that is queued and that nobody will run.
    """
    job = _owned(job_id)
    if job.status not in (Status.FAILED, Status.CANCELLED):
        raise JobNotRetryable(
            f"The job is {job.status}; only failed or cancelled ones can be retried."
        )
    if job.worn_out:
        raise JobNotRetryable("The job has been retried too often. Send it as a new one.")
    dispatch.hand_over(Reference(job_id, retry_of=len(job.history)))
    try:
        job = store.retry(job_id, len(job.history))
    except Refused as refused:  # the worker was faster, or another retry was
        job = refused.job or job
    logger.info("retry asked for", extra={"status": job.status})
    return _answer(202, job)
{% include cookiecutter.worker ~ "/src/api_routes.py" %}


def _accept(job_id: str, owner: str, payload: dict[str, Any]) -> tuple[Job, bool]:
    """Store the job, or find the one that its key has made; also tell whether it was found."""
    while True:  # a job that could not be handed over may be withdrawn under our eyes
        try:
            return store.create(job_id, owner, payload), False
        except Refused as refused:
            stored = refused.job
        if stored is None:
            continue
        if stored.fingerprint != fingerprint(canonical(payload)):
            raise IdempotencyKeyReused("The key came with another payload before. Use a new key.")
        if stored.status is not Status.QUEUED or stored.attempts > 0:
            return stored, True
        try:
            return store.adopt(job_id), True
        except Refused as refused:
            if refused.job is not None:
                return refused.job, True


def _hand_over_new(job: Job) -> Job:
    """Hand over a job that may never have been; withdraw it when that fails."""
    try:
        dispatch.hand_over(Reference(job.job_id))
    except ServiceUnavailable as refusal:
        if not refusal.certain:
            raise
        try:
            store.withdraw(job)
        except Refused as refused:
            if refused.job and (refused.job.attempts > 0 or refused.job.status.terminal):
                return refused.job  # it arrived after all
        raise
    return job


def _owned(job_id: str) -> Job:
    """Return the caller's own job."""
    logger.append_keys(job_id=job_id)
    owner = caller_of(app.current_event)
    job = store.get(job_id) if JOB_ID.fullmatch(job_id) else None
    if job is None or job.owner != owner:
        raise JobNotFound("You have no job with this id, or it has expired.")
    return job


def _check_media_type(event: APIGatewayProxyEventV2) -> None:
    media_type = event.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType("Send Content-Type: application/json.")


def _body(event: APIGatewayProxyEventV2) -> bytes:
    """Return the request's body as it was sent."""
    body = event.raw_event.get("body") or ""
    try:
        return base64.b64decode(body) if event.is_base64_encoded else body.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidJson("The body is not UTF-8 text.") from None


def _answer(status: int, job: Job, headers: dict[str, str] | None = None) -> Response[str]:
    told = {"Cache-Control": "no-store", **(headers or {})}
    if status == 202:
        told["Location"] = f"/jobs/{job.job_id}"
    if not job.status.terminal:
        told["Retry-After"] = str(POLL_SECONDS)
    return Response(status, "application/json", json.dumps(job.public()), told)


def _tell_problem(problem: Problem) -> Response[str]:
    headers = {"Cache-Control": "no-store"}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(problem.retry_after)
    return Response(
        problem.status, "application/problem+json", json.dumps(problem.document()), headers
    )


def _tell_unavailable(_: Exception) -> Response[str]:
    logger.exception("store or engine not available")
    return _tell_problem(ServiceUnavailable("The service cannot answer now. Try again."))


def _tell_error(_: Exception) -> Response[str]:
    logger.exception("request failed")
    return _tell_problem(InternalError("The request could not be carried out."))


def _tell_no_route(_: NotFoundError) -> Response[str]:
    return _tell_problem(JobNotFound("There is nothing at this address."))


app.exception_handler(Problem)(_tell_problem)
app.exception_handler([BotoCoreError, ClientError, NewerSchema])(_tell_unavailable)
app.exception_handler(Exception)(_tell_error)
app.not_found(_tell_no_route)
