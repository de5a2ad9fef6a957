"""What the owner of a job that the queue gave up is told."""

import pytest

from failure_reason import failure_reason
from jobs import Job
from tests.unit import given
from tests.unit.given import store


def test_the_last_error_is_told() -> None:
    job = store.release(given.claim(given.released()), OSError("no answer"))
    assert failure_reason(job) == {
        "type": "OSError",
        "message": "Given up at attempt 2. The last error told: no answer",
    }


def test_attempts_that_ended_without_a_word() -> None:
    job: Job = given.lost()
    assert failure_reason(job) == {
        "type": "AttemptLost",
        "message": "Given up at attempt 1."
        " Each attempt ended without a word: a timeout, a crash or lack of memory.",
    }


@pytest.mark.parametrize("retried", [False, True])
def test_no_attempt_that_could_have_ended(retried: bool) -> None:
    job = store.fail(given.running(), OSError("no answer")) if retried else given.queued()
    if retried:
        job = store.retry(job.job_id, len(job.history))
    assert failure_reason(job)["type"] == "NeverStarted"
