"""Starts a job every night."""

from contextlib import suppress
from typing import Any

import dispatch
from jobs.job_id import job_id_for
from jobs.store import JobStore
from jobs.table import ConditionFailed

store = JobStore()


def handler(event: dict[str, Any], context: object) -> str:
    """Start the job of this night, and only one, even if Lambda repeats the event."""
    job_id = job_id_for("nightly", event["time"][:10])
    with suppress(ConditionFailed):  # it is there already
        store.create(job_id, "nightly", {"site": "docs.example"})
    if job := store.get(job_id):
        dispatch.hand_over(job)
    return job_id
