"""work.py does the same in each replay. Add payloads to `OTHER_WAYS` of tests/samples.py.

What is found here would be found on AWS by an execution that fails after its wait.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests import samples
from tests.needed import needed
from tests.unit.executions import Execution, Executions, executions, replay


@pytest.fixture(scope="module")
def engine() -> Iterator[Executions]:
    with executions() as running:
        yield running


def ended(
    engine: Executions, payload: dict[str, Any], status: str = "completed", answer: object = None
) -> Execution:
    """Run a job, answer it if it asks, and see that it ends so."""
    execution = engine.start(payload)
    if answer is not None:
        execution.answer(json.dumps(answer).encode())
    error = execution.result().error
    assert execution.job.status == status, error or execution.job.error
    return execution


@pytest.mark.parametrize(
    ("sample", "answer"),
    [
        ("HAPPY", None),
        ("OTHER", None),
        ("SLOW", None),
        ("TRANSIENT", None),
        ("APPROVAL", samples.APPROVED),
        ("APPROVAL", {}),
        ("DEADLINE", None),
        *((way, None) for way in samples.OTHER_WAYS),
    ],
)
def test_a_replay_returns_what_the_first_run_returned(
    engine: Executions, sample: str, answer: object
) -> None:
    payload = samples.OTHER_WAYS[sample] if sample in samples.OTHER_WAYS else needed(sample)
    execution = ended(engine, payload, answer=answer)

    assert replay(execution) == execution.job.result


@pytest.mark.parametrize("sample", ["POISON", "PERMANENT"])
def test_a_replay_fails_as_the_first_run_failed(engine: Executions, sample: str) -> None:
    execution = ended(engine, needed(sample), "failed")

    with pytest.raises(Exception, match=re.escape((execution.job.error or {})["message"])):
        replay(execution)
