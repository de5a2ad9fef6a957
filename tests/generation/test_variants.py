"""The generated src/ speaks of its own engine only, and none of its classes is long."""

import ast
import re

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS
from tests.helpers.rules.sources import sources

FOREIGN = {
    "queue": re.compile(r"waiting|execution|durable|crashed", re.I),
    "durable": re.compile(r"(?<!re)lease|ticket|ATTEMPT_LOST", re.I),
}
"""Words of the other engine: its states, and what only it stores of a job."""
LONGEST_CLASS = 200
"""Lines."""


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_a_variant_does_not_speak_of_the_other_engine(worker: str, baked: Oven) -> None:
    faults = [
        f"{name}:{number}: {line.strip()}"
        for name, content in baked(worker=worker).files().items()
        if name.startswith("src/")
        for number, line in enumerate(content.decode().splitlines(), 1)
        if FOREIGN[worker].search(line)
    ]
    assert faults == []


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_no_class_is_long(worker: str, baked: Oven) -> None:
    lengths = {
        f"{name}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, tree in sources(baked(worker=worker)).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    assert "jobs.attempts.AttemptStore" in lengths
    assert {name: n for name, n in lengths.items() if n > LONGEST_CLASS} == {}
