"""`replay` of tests/unit/executions.py: it finds work that is not deterministic."""

import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import work

from tests.unit.executions import Executions, NotDeterministic, executions, replay


@pytest.fixture(scope="module")
def engine() -> Iterator[Executions]:
    with executions() as running:
        yield running


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
    execution = engine.run({})
    assert execution.job.status == "completed", execution.job.error

    try:
        again = replay(execution)
    except NotDeterministic:
        return
    assert again != execution.job.result
