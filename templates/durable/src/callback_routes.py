"""The routes of callbacks: a waiting job tells its question, and gets its answer."""

import json
import re
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

import dispatch
from jobs import Job
from jobs.attempts import AttemptStore
from jobs.job_id import is_job_id
from web.app import Router
from web.body import json_body, read_object
from web.caller import caller_of
from web.problems import JobNotFound, Problem
from web.responses import job_response, problem_response

logger = Logger()
router = Router()
store = AttemptStore()


class JobNotWaiting(Problem):
    """The job waits for no answer, or has just been given one."""

    slug, status, title = "job-not-waiting", 409, "The job waits for no answer"


@router.get("/jobs/<job_id>/callback")
def get_question(job_id: str) -> Response[str]:
    """Return what a waiting job asks of the caller, and nothing else of the job."""
    job, _ = _job_to_answer(job_id)
    asked = dispatch.question(job)
    shown = {"job_id": job_id, "question": json.loads(asked.get("question", "{}"))}
    shown |= {name: value for name, value in asked.items() if name in ("for", "until")}
    return _response(shown)


@router.post("/jobs/<job_id>/callback")
def answer_job(job_id: str) -> Response[str]:
    """Deliver the answer that a job waits for. Only the first answer counts."""
    job, caller = _job_to_answer(job_id)
    answer = read_object(json_body(router.current_event))
    delivered = dispatch.deliver(job, answer, caller)
    logger.info("answer delivered", extra={"status": delivered.status, "by": caller})
    if job.owner == caller:
        return job_response(200, delivered)
    return _response({"job_id": job_id})


def _response(shown: dict[str, Any]) -> Response[str]:
    return Response(200, "application/json", json.dumps(shown), {"Cache-Control": "no-store"})


def _job_to_answer(job_id: str) -> tuple[Job, str]:
    """Return a job that the caller may answer, and the caller.

    Raises:
        JobNotFound: there is no such job, or the answer is for others to give.
    """
    event = router.current_event
    logger.append_keys(job_id=job_id)
    caller = caller_of(event)
    token = (event.raw_event["requestContext"].get("authorizer") or {}).get("jwt") or {}
    job = store.get(job_id) if is_job_id(job_id) else None
    if job is None or not may_answer(job.waiting, job.owner, caller, token.get("claims") or {}):
        raise JobNotFound("No job with this id waits for your answer.")
    return job, caller


def may_answer(
    waiting: Mapping[str, Any] | None, owner: str, caller: str, claims: Mapping[str, Any]
) -> bool:
    """Return whether a caller may answer a job: as its owner, by name, or by a token's claims.

    API Gateway hands a list over as text, such as `[admins approvers]`. No page of AWS tells how:
    so a value is a word between blanks, commas, quotes or brackets.
    """
    asked = waiting or {}
    if not asked.get("callers") and not asked.get("claims"):
        return caller == owner
    return caller in asked["callers"] or any(
        value in re.split(r'[\s,"\[\]]+', str(claims.get(name) or ""))
        for name, value in asked["claims"].items()
    )


def _not_waiting(error: dispatch.NotWaiting) -> Response[str]:
    return problem_response(JobNotWaiting(str(error)))


router.exception_handler(dispatch.NotWaiting)(_not_waiting)
