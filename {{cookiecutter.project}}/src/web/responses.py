"""The responses of a route: a job, or a problem."""

import json

from aws_lambda_powertools.event_handler import Response

from jobs import Job
from web.problems import Problem

POLL_SECONDS = 2
"""The `Retry-After` of a job that is not finished."""


def job_response(status: int, job: Job, headers: dict[str, str] | None = None) -> Response[str]:
    """Return a job as its owner may see it; `Location` names it if the status is 202."""
    sent = {"Cache-Control": "no-store", **(headers or {})}
    if status == 202:
        sent["Location"] = f"/jobs/{job.job_id}"
    if not job.status.terminal:
        sent["Retry-After"] = str(POLL_SECONDS)
    return Response(status, "application/json", json.dumps(job.public()), sent)


def problem_response(problem: Problem) -> Response[str]:
    """Return a problem as RFC 9457 asks for."""
    sent = {"Cache-Control": "no-store", **problem.headers}
    body = json.dumps(problem.document())
    return Response(problem.status, "application/problem+json", body, sent)
