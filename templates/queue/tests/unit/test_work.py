"""YOUR TESTS: what the sample work does. They go when work.py becomes yours."""

from typing import Any

import pytest

import work
from jobs import Job, JobCancelled, PermanentError
from jobs.context import JobContext
from jobs.once import note_deadline
from tests import samples
from tests.needed import needed
from tests.unit import given
from tests.unit.client import Context
from tests.unit.given import store


def run(payload: dict[str, Any], job: Job) -> dict[str, Any]:
    """Run the work as the worker does."""
    context = Context()
    note_deadline(context)
    return work.run(payload, JobContext(job, store, context.get_remaining_time_in_millis))


def test_a_site_is_republished() -> None:
    result = run(samples.HAPPY, given.running())
    assert result.items() >= samples.HAPPY_RESULT.items()


def test_numbers_may_be_written_with_a_point() -> None:
    assert run(samples.HAPPY | {"pages": 2.0}, given.running())["pages"] == 2


def test_the_cache_is_purged_once() -> None:
    job = given.running()
    assert run(samples.HAPPY, job)["purge"] == run(samples.HAPPY, job)["purge"]


def test_a_transient_failure_passes() -> None:
    with pytest.raises(ConnectionError):
        run(needed("TRANSIENT"), given.running())
    assert run(needed("TRANSIENT"), given.claim(given.released()))


def test_a_poisonous_site_always_fails() -> None:
    for job in (given.running(), given.claim(given.released())):
        with pytest.raises(ConnectionError):
            run(needed("POISON"), job)


def test_a_permanent_failure_is_permanent() -> None:
    with pytest.raises(PermanentError):
        run(needed("PERMANENT"), given.running())


def test_it_stops_when_asked() -> None:
    with pytest.raises(JobCancelled):
        run(samples.HAPPY, given.asked())
