"""What docs/how-to.md adds."""

import json

import indexer
import nightly
import receipts
from jobs.job_id import job_id_for
from tests.unit import given
from tests.unit.client import Context, request
from tests.unit.given import stored


def test_a_receipt() -> None:
    job = given.completed()
    found = receipts.handler(request("GET", f"/jobs/{job.job_id}/receipt"), Context())
    assert (found["statusCode"], found["body"]) == (200, f"Receipt of job {job.job_id}")


def test_a_job_that_has_no_receipt() -> None:
    job = given.running()
    found = receipts.handler(request("GET", f"/jobs/{job.job_id}/receipt"), Context())
    assert json.loads(found["body"])["type"] == "urn:problem:no-receipt"


def test_a_document_without_a_name_comes_back() -> None:
    bodies = {"good": {"document": "a"}, "bad": {}}
    records = [
        {"messageId": name, "body": json.dumps(body), "eventSource": "aws:sqs"}
        for name, body in bodies.items()
    ]
    assert indexer.handler({"Records": records}, Context()) == {
        "batchItemFailures": [{"itemIdentifier": "bad"}]
    }


def test_one_job_a_night() -> None:
    for time in ("2026-01-31T03:00:00Z", "2026-01-31T03:00:20Z"):
        assert nightly.handler({"time": time}, None) == job_id_for("nightly", "2026-01-31")
    assert stored(job_id_for("nightly", "2026-01-31")).owner == "nightly"
