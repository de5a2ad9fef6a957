"""The worker's entry point."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import worker
import worker_entry


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put a worker.py that cannot be imported in place of the project's."""
    (tmp_path / "worker.py").write_text("import boto4", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "worker")


@pytest.mark.usefixtures("broken")
def test_a_worker_that_cannot_be_imported_fails_the_execution(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At once, with the reason; the log has the stack trace, and the metric is counted."""
    answer = worker_entry.handler({"DurableExecutionArn": "some-execution"}, None)

    assert answer == {
        "Status": "FAILED",
        "Error": {
            "ErrorType": "WorkerNotImported",
            "ErrorMessage": "ModuleNotFoundError: No module named 'boto4'",
        },
    }
    line = json.loads(capsys.readouterr().out)
    assert line["execution"] == "some-execution"
    assert "import boto4" in line["exception"]
    (metrics,) = line["_aws"]["CloudWatchMetrics"]
    assert (metrics["Namespace"], line["service"], line["WorkerCrashed"]) == ("Jobs", "local", 1)


def test_else_the_worker_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(event: Any, context: Any) -> list[Any]:
        return [event, context]

    monkeypatch.setattr(worker, "handler", run)
    assert worker_entry.handler({"a": 1}, "context") == [{"a": 1}, "context"]
