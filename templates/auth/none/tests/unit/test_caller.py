"""Who is calling: nobody knows, so whoever knows a job's id may see the job."""

import pytest

from tests import samples
from tests.unit.client import get, post
from tests.unit.given import new_id, store

pytestmark = pytest.mark.usefixtures("receiver")


def test_every_job_belongs_to_everybody() -> None:
    job_id = post(samples.HAPPY, caller="alice").body["job_id"]
    job = store.get(job_id)
    assert job is not None
    assert job.owner == "anonymous"
    assert get(job_id, caller="bob").status == 200


def test_a_key_is_everybodys() -> None:
    key = new_id()
    assert post(samples.HAPPY, key, caller="alice").status == 202
    assert post(samples.OTHER, key, caller="bob").problem == "idempotency-key-reused"
