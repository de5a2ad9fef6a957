"""work.py does the same in each replay. Add your own payloads to tests/samples.py.

What is found here would be found on AWS by an execution that fails after its wait.
"""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

import work
from jobs import PermanentError
from tests import samples
from tests.unit.executions import Execution, Executions, NotDeterministic, executions, replay


@pytest.fixture(scope="module")
def engine() -> Iterator[Executions]:
    with executions() as running:
        yield running


def completed(engine: Executions, payload: dict[str, Any], answer: object = None) -> Execution:
    execution = engine.start(payload)
    if answer is not None:
        execution.answer(json.dumps(answer).encode())
    execution.result()
    return execution


@pytest.mark.parametrize(
    ("payload", "answer"),
    [
        (samples.HAPPY, None),
        (samples.SLOW, None),
        (samples.TRANSIENT, None),
        (samples.APPROVAL, samples.APPROVED),
        (samples.APPROVAL, {"approved": False}),
        (samples.DEADLINE, None),
    ],
)
def test_a_replay_returns_what_the_first_run_returned(
    engine: Executions, payload: dict[str, Any], answer: object
) -> None:
    execution = completed(engine, payload, answer)

    assert execution.job.status == "completed"
    assert replay(execution) == execution.job.result


def test_a_replay_fails_as_the_first_run_failed(engine: Executions) -> None:
    execution = completed(engine, samples.PERMANENT)
    error = execution.job.error or {}

    with pytest.raises(Exception, match=error["message"]):
        replay(execution)
    assert error["type"] == PermanentError.__name__


TRAPS = {
    "a name with the time in it": """
        import time
        def run(payload, context, job):
            context.step(lambda _: 1, name=f"at-{time.time():.6f}")
            return {}""",
    "a decision by chance": """
        import itertools
        chance = itertools.count()
        def run(payload, context, job):
            if next(chance) % 2:
                context.step(lambda _: 1, name="heads")
            return {}""",
    "a step that is left out": """
        import itertools
        chance = itertools.count(1)
        def run(payload, context, job):
            context.step(lambda _: 1, name="always")
            if next(chance) % 2:
                context.step(lambda _: 1, name="heads")
            return {}""",
    "a date": """
        from datetime import datetime
        def run(payload, context, job):
            return {"today": datetime.now().date().isoformat()}""",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_run_that_is_not_deterministic_is_found(
    engine: Executions, trap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: dict[str, Any] = {}
    exec(textwrap.dedent(TRAPS[trap]), module)
    monkeypatch.setattr(work, "run", module["run"])
    execution = completed(engine, samples.HAPPY)
    assert execution.job.status == "completed"

    try:
        again = replay(execution)
    except NotDeterministic:
        return
    assert again != execution.job.result
