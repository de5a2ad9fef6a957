"""The route of callbacks: a waiting job gets the answer that it waits for."""

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

import dispatch
from web.app import Router
from web.body import json_body, read_object
from web.owner import own_job
from web.problems import Problem
from web.responses import job_response, problem_response

logger = Logger()
router = Router()


class JobNotWaiting(Problem):
    """The job waits for no answer, or has just been given one."""

    slug, status, title = "job-not-waiting", 409, "The job waits for no answer"


@router.post("/jobs/<job_id>/callback")
def answer_job(job_id: str) -> Response[str]:
    """Deliver the answer that a job waits for. Only the first answer counts."""
    job = own_job(router.current_event, job_id)
    answer = read_object(json_body(router.current_event))
    job = dispatch.deliver(job, answer)
    logger.info("answer delivered", extra={"status": job.status})
    return job_response(200, job)


def _not_waiting(error: dispatch.NotWaiting) -> Response[str]:
    return problem_response(JobNotWaiting(str(error)))


router.exception_handler(dispatch.NotWaiting)(_not_waiting)
