"""docs/recipe_*.py: each does what it says, and the same in a replay."""

import importlib.util
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
import work
from jobs import PermanentError

from tests.unit.executions import Execution, Executions, executions, replay

DOCS = Path(__file__).parents[2] / "docs"

Recipe = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def runs() -> Iterator[Executions]:
    """What runs executions."""
    with executions() as running:
        running.runner.register_function("Translate", translate)
        yield running


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Put a recipe in place of work.py."""

    def use(name: str) -> ModuleType:
        monkeypatch.setenv("TRANSLATE_FUNCTION", "Translate")  # of recipe_functions.py
        spec = importlib.util.spec_from_file_location(name, DOCS / f"recipe_{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(work, "run", module.run)
        return module

    return use


def translate(event: dict[str, str], _: object) -> str:
    """Stand for another function."""
    if not event["text"]:
        raise ValueError("nothing to translate")
    return f"{event['text']} in {event['to']}"


def statuses(execution: Execution) -> list[str]:
    """Return the statuses that a job has had."""
    return [entry["status"] for entry in execution.job.history]


def test_every_recipe_is_tested_and_listed() -> None:
    """A new one needs a test here, and a line in docs/recipes.md."""
    names = {path.stem.removeprefix("recipe_") for path in DOCS.glob("recipe_*.py")}
    assert names == {"reminder", "approval", "chunks", "resume", "functions"}
    page = (DOCS / "recipes.md").read_text(encoding="utf-8")
    assert all(f"(recipe_{name}.py)" in page for name in names)


@pytest.mark.parametrize(("days_away", "waits"), [(32, True), (20, True), (2, False)])
def test_reminder(runs: Executions, recipe: Recipe, days_away: int, waits: bool) -> None:
    """It waits until three days before, or reminds at once when that is over."""
    recipe("reminder")
    date = (datetime.now(UTC) + timedelta(days=days_away)).date().isoformat()
    execution = runs.run({"name": "contract", "date": date, "days_before": 3})

    assert execution.job.result == {"reminded_of": "contract"}
    assert ("waiting" in statuses(execution)) is waits
    assert replay(execution) == execution.job.result


def test_a_reminder_beyond_the_longest_execution(runs: Executions, recipe: Recipe) -> None:
    """It fails at once, not after the days that it cannot outlast."""
    recipe("reminder")
    date = (datetime.now(UTC) + timedelta(days=34)).date().isoformat()
    job = runs.run({"name": "contract", "date": date, "days_before": 3}).job

    assert (job.status, job.attempts) == ("failed", 1)
    assert "too far away" in (job.error or {})["message"]


def test_approval_is_given(runs: Executions, recipe: Recipe) -> None:
    """The answer tells who."""
    recipe("approval")
    execution = runs.start({"request": "refund", "approver": "ada", "hours": 24})
    execution.answer(json.dumps({"approved": True, "by": "ada"}).encode())
    execution.result()

    assert execution.job.result == {"approved": True, "by": "ada"}
    assert replay(execution) == execution.job.result


def test_approval_is_not_given_in_time(runs: Executions, recipe: Recipe) -> None:
    """It is asked for twice."""
    recipe("approval")
    execution = runs.run({"request": "refund", "approver": "ada", "hours": 1 / 3600})

    assert execution.job.result == {"approved": False, "by": "nobody in time"}
    assert statuses(execution).count("waiting") == 2
    assert replay(execution) == execution.job.result


def test_chunks(runs: Executions, recipe: Recipe) -> None:
    """All items are done once, in rounds, no more than three chunks at a time."""
    module = recipe("chunks")
    called: list[int] = []
    call = module.call

    def note(item: int) -> int:
        called.append(item)
        return int(call(item))

    module.call = note  # type: ignore[attr-defined]
    execution = runs.run({"items": 125})

    assert execution.job.result == {"items": 125}
    assert sorted(called) == list(range(125))
    assert execution.job.public()["progress"] == {
        "done": 13,
        "total": 13,
        "message": "125 items done",
    }
    assert statuses(execution).count("waiting") == 2
    assert replay(execution) == execution.job.result


def test_chunks_that_fail(runs: Executions, recipe: Recipe) -> None:
    """The error is told, and rounds that are done stay done."""
    module = recipe("chunks")
    called: list[int] = []

    def call(item: int) -> int:
        called.append(item)
        if item >= 60:
            raise ConnectionError("too many requests")
        return 1

    module.call = call  # type: ignore[attr-defined]
    execution = runs.run({"items": 70})

    assert execution.job.status == "failed"
    assert (execution.job.error or {})["message"] == "too many requests"
    assert sorted(called[:60]) == list(range(60))


def test_a_chunk_is_tried_as_any_step_is(runs: Executions, recipe: Recipe) -> None:
    """As often as MaxAttempts says, and once when another attempt cannot help."""
    for error, times in ((PermanentError("no such item"), 1), (ConnectionError("no answer"), 5)):
        module, called = recipe("chunks"), list[int]()

        def call(item: int, error: Exception = error, called: list[int] = called) -> int:
            called.append(item)
            raise error

        module.call = call  # type: ignore[attr-defined]
        execution = runs.run({"items": 1})

        assert (execution.job.error or {})["message"] == str(error)
        assert len(called) == times


def test_resume(runs: Executions, recipe: Recipe) -> None:
    """What was paid is not paid again while the parcel waits for its partner."""
    module = recipe("resume")
    done: list[str] = []
    charge, ship = module.charge, module.ship

    def charged(order: str) -> str:
        done.append("charge")
        return str(charge(order))

    def shipped(order: str) -> str:
        done.append("ship")
        if len(done) < 9:
            raise ConnectionError("the partner is down")
        return str(ship(order))

    module.charge, module.ship = charged, shipped  # type: ignore[attr-defined]
    execution = runs.run({"order": "4711"})

    assert execution.job.result == {"paid": "payment of 4711", "sent": "parcel of 4711"}
    assert done == ["charge", *["ship"] * 8]
    assert execution.job.attempts == 8
    assert replay(execution) == execution.job.result


def test_resume_cannot_help(runs: Executions, recipe: Recipe) -> None:
    """A permanent error ends the job at its first attempt."""
    recipe("resume")
    job = runs.run({"order": ""}).job

    assert (job.status, job.attempts) == ("failed", 1)


def test_functions(runs: Executions, recipe: Recipe) -> None:
    """Each is called once."""
    recipe("functions")
    execution = runs.run({"text": "hello"})

    assert execution.job.result == {"de": "hello in de", "ja": "hello in ja"}
    assert replay(execution) == execution.job.result


def test_functions_that_fail(runs: Executions, recipe: Recipe) -> None:
    """The job tells which."""
    recipe("functions")
    job = runs.run({"text": ""}).job

    assert job.status == "failed"
    assert "no translation to de" in (job.error or {})["message"]
