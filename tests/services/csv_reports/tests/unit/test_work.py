"""YOUR TESTS: the report, its route, and the sweep."""

from typing import Any

import pytest

import sweep
import work
from jobs import Job, JobCancelled, PermanentError
from jobs.context import JobContext
from jobs.once import note_deadline
from tests import samples
from tests.needed import needed
from tests.unit import given
from tests.unit.client import Context, answer, request
from tests.unit.emulated import AWS
from tests.unit.given import store


def run(payload: dict[str, Any], job: Job) -> dict[str, Any]:
    """Run the work as the worker does."""
    context = Context()
    note_deadline(context)
    return work.run(payload, JobContext(job, store, context.get_remaining_time_in_millis))


def test_the_orders_are_added_up_by_customer() -> None:
    result = run(samples.HAPPY, given.running())

    report = AWS.client("s3").get_object(Bucket=work.BUCKET, Key=result["key"])["Body"].read()
    assert report.decode().split() == ["customer,total", "ada,42", "grace,5"]


def test_a_month_without_orders_fails_for_good() -> None:
    with pytest.raises(PermanentError, match="no orders of 2020-01"):
        run(needed("PERMANENT"), given.running())


def test_it_stops_when_asked() -> None:
    with pytest.raises(JobCancelled):
        run(samples.HAPPY, given.asked())


def test_the_report_is_served_to_its_owner() -> None:
    job = given.running()
    store.complete(job, run(samples.HAPPY, job))

    found = answer(request("GET", f"/jobs/{job.job_id}/report", caller="alice"))
    assert found.status == 404
    found = answer(request("GET", f"/jobs/{job.job_id}/report"))
    assert (found.status, found.headers["content-type"]) == (200, "text/csv")
    assert "ada,42" in found.text


def test_there_is_no_report_before_the_job_has_completed() -> None:
    found = answer(request("GET", f"/jobs/{given.running().job_id}/report"))
    assert (found.status, found.problem) == (409, "report-not-ready")


def test_young_reports_are_kept() -> None:
    assert sweep.handler({}, Context()) == {"deleted": 0}
