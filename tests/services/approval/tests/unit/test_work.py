"""YOUR TESTS: who approves, and what silence means."""

import json
from collections.abc import Iterator

import pytest

from tests import samples
from tests.unit.executions import Executions, executions


@pytest.fixture(scope="module")
def runs() -> Iterator[Executions]:
    """What runs executions."""
    with executions() as running:
        yield running


@pytest.mark.parametrize("approved", [True, False])
def test_the_approver_decides(runs: Executions, approved: bool) -> None:
    execution = runs.start(samples.HAPPY | {"seconds": 60})
    execution.answer(json.dumps({"approved": approved, "by": "bob"}).encode())
    execution.result()

    assert execution.job.result == {"approved": approved, "by": "bob"}


def test_silence_is_a_no_after_one_reminder(runs: Executions) -> None:
    job = runs.run(samples.HAPPY).job

    assert job.result == {"approved": False, "by": "nobody in time"}
    assert [entry["status"] for entry in job.history].count("waiting") == 2
