"""What the owner of a job that the queue gave up is told."""

from jobs import Job
from last_words import last_words
from tests.unit import given
from tests.unit.given import store


def test_the_last_error_is_told() -> None:
    job = store.release(given.claim(given.released()), OSError("no answer"))
    assert last_words(job) == {
        "type": "OSError",
        "message": "Given up at attempt 2. The last error told: no answer",
    }


def test_attempts_that_ended_without_a_word() -> None:
    job: Job = given.lost()
    assert last_words(job) == {
        "type": "AttemptLost",
        "message": "Given up at attempt 1."
        " Each ended without a word: a timeout, a crash or no memory.",
    }
