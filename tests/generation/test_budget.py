"""Who generates a project owns each of its lines: how many there may be."""

import pytest

from tests.conftest import Oven

BUDGETS = {"queue": (14_000, 8_000), "durable": (16_400, 9_500)}
"""All lines, and those of Python outside local/, which is the kit's to maintain.

A durable project should come down to 16,000 lines; until then it must not grow.
"""


@pytest.mark.parametrize("worker", BUDGETS)
def test_a_project_keeps_its_budget_of_lines(worker: str, baked: Oven) -> None:
    lines = {
        name: len(content.splitlines()) for name, content in baked(worker=worker).files().items()
    }
    python = {
        name: count
        for name, count in lines.items()
        if name.endswith(".py") and not name.startswith("local/")
    }
    for counts, budget in zip((lines, python), BUDGETS[worker], strict=True):
        longest = sorted(counts, key=lambda name: -counts[name])[:5]
        assert sum(counts.values()) <= budget, {name: counts[name] for name in longest}
