"""YOUR CODE: what a job does. This sample republishes the pages of a site."""

import time
from typing import Any

from jobs import JobCancelled, PermanentError
from jobs.context import JobContext


def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
    """Do the job and return its result, a JSON object.

    Any exception ends the attempt and another one follows, up to the limit of the queue;
    `PermanentError` fails the job at once. An attempt may be killed anywhere and another one
    starts from the top: what must not happen twice goes through `job.once`.
    """
    failure = payload.get("failure", "none")
    if failure == "permanent":
        raise PermanentError(f"{payload['site']} does not exist")
    if failure == "poison" or (failure == "transient" and job.attempt == 1):
        raise ConnectionError(f"{payload['site']} does not answer")

    pages = int(payload.get("pages", 3))  # JSON Schema takes 3.0 for an integer
    for page in range(1, pages + 1):
        if job.cancelled:
            raise JobCancelled
        time.sleep(payload.get("seconds_per_page", 0))  # your work on one page
        job.progress(page, pages, f"page {page}")

    purge = job.once("purge-cache", lambda: purge_cache(payload["site"]))
    return {"site": payload["site"], "pages": pages, "purge": purge}


def purge_cache(site: str) -> str:
    """Stand for a side effect that must happen once, such as a payment or an e-mail."""
    return f"{site} purged at {time.time():.3f}"
