"""The API function: the kit's routes, and the report's."""

from aws_lambda_powertools.event_handler import Response

import job_routes
from jobs import Status
from jobs.settings import client, required
from web.app import Api
from web.owner import own_job
from web.problems import Problem

BUCKET = required("REPORTS_BUCKET")

_s3 = client("s3")

api = Api()
api.include_router(job_routes.router)
handler = api.handler


class ReportNotReady(Problem):
    """The job has not completed, so there is no report."""

    slug, status, title = "report-not-ready", 409, "The report is not ready"


@api.get("/jobs/<job_id>/report")
def get_report(job_id: str) -> Response[str]:
    """Return the report of the caller's own job."""
    job = own_job(api.current_event, job_id)
    if job.status is not Status.COMPLETED:
        raise ReportNotReady(f"The job is {job.status}.")
    found = _s3.get_object(Bucket=BUCKET, Key=f"reports/{job_id}.csv")
    report = found["Body"].read().decode()
    return Response(200, "text/csv", report, {"Cache-Control": "no-store"})
