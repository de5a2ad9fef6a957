"""Drives a job to its end with the client that openapi-python-client generates.

Arguments: the API's URL, a payload, and a payload that the API refuses.
"""

import json
import sys
import time
import uuid

from jobs_api_client import Client
from jobs_api_client.api.jobs import create_job, get_job
from jobs_api_client.models import FieldError, Job, Payload, Problem, Status

TERMINAL = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)


def main(url: str, payload: str, invalid: str) -> None:
    """Print the job at its end, and the two problems that were asked for."""
    client = Client(base_url=url)
    job = create_job.sync(client=client, body=Payload.from_dict(json.loads(payload)))
    assert isinstance(job, Job)
    while job.status not in TERMINAL:
        time.sleep(0.1)
        job = get_job.sync(job.job_id, client=client)
        assert isinstance(job, Job)
    refused = create_job.sync(client=client, body=Payload.from_dict(json.loads(invalid)))
    assert isinstance(refused, Problem)
    assert isinstance(refused.errors, list)
    error: FieldError = refused.errors[0]
    unknown = get_job.sync(uuid.uuid4(), client=client)
    assert isinstance(unknown, Problem)
    told = {"status": job.status, "result": bool(job.result), "field": error.field}
    print(json.dumps(told | {"problem": unknown.type_}))


main(*sys.argv[1:])
