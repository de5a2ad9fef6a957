"""Jobs belong to the caller who created them."""

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from jobs import Job
from jobs.job_id import is_job_id
from jobs.store import JobStore
from web.caller import caller_of
from web.problems import JobNotFound

logger = Logger()
store = JobStore()


def own_job(event: APIGatewayProxyEventV2, job_id: str) -> Job:
    """Return the caller's own job; the log lines of the request then have its id.

    Raises:
        JobNotFound: the job is unknown, has expired, or belongs to another caller.
    """
    logger.append_keys(job_id=job_id)
    owner = caller_of(event)
    job = store.get(job_id) if is_job_id(job_id) else None
    if job is None or job.owner != owner:
        raise JobNotFound("You have no job with this id, or it has expired.")
    return job
