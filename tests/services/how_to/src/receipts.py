"""A second function of the API: the receipt of a completed job."""

from aws_lambda_powertools.event_handler import Response

from jobs import Status
from jobs.settings import required
from web.app import Api
from web.owner import own_job
from web.problems import Problem

TITLE = required("RECEIPT_TITLE")

api = Api()
handler = api.handler


class NoReceipt(Problem):
    """The job has not completed."""

    slug, status, title = "no-receipt", 409, "There is no receipt yet"


@api.get("/jobs/<job_id>/receipt")
def get_receipt(job_id: str) -> Response[str]:
    """Return the receipt of the caller's own job."""
    job = own_job(api.current_event, job_id)
    if job.status is not Status.COMPLETED:
        raise NoReceipt(f"The job is {job.status}.")
    return Response(200, "text/plain", f"{TITLE} {job.job_id}", {"Cache-Control": "no-store"})
