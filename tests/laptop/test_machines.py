"""Shells, screens and virtual environments that are not ours, and what lies about in a project."""

import ast
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import __main__ as command_line
from tests.laptop.commands import Project, Running, one_line
from tests.laptop.projects import function, until

NOBODY = "http://127.0.0.1:9"
HOSTILE_SHELL = {
    **dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"), NOBODY),
    "AWS_PROFILE": "missing",
    "AWS_ENDPOINT_URL": NOBODY,
    "AWS_CONFIG_FILE": "/nowhere",
    "PYTHONIOENCODING": "latin-1",
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A stack started from a shell with a proxy, a missing profile and a latin-1 screen."""
    project = Project(tmp_path_factory.mktemp("hostile") / "shop")
    running = project.start(**HOSTILE_SHELL)
    yield running
    running.end(signal.SIGINT)


def test_no_setting_of_the_shell_reaches_the_stack(started: Running) -> None:
    started.post(job_id="proxied")
    until(lambda: started.job("proxied")["status"] == "completed")
    listed = started.project.run("jobs", **HOSTILE_SHELL)
    assert "proxied  completed" in listed.stdout


def test_a_screen_that_lacks_a_character_shows_another(started: Running) -> None:
    assert "  POST /jobs ? ApiFunction" in started.screen


def test_whatever_lies_in_the_table_is_shown(started: Running) -> None:
    strange = {
        "job_id": {"S": "strange"},
        "blob": {"B": b"\xff"},
        "blobs": {"BS": [b"\x00", b"\x01"]},
        "history": {"S": "none"},
    }
    started.aws("dynamodb").put_item(TableName="JobsTable", Item=strange)

    assert "strange  no status  attempts 0" in started.project.run("jobs").stdout
    shown = started.job("strange")
    assert (shown["blob"], shown["blobs"]) == ("/w==", ["AA==", "AQ=="])
    assert httpx.get(f"{started.url}/_local/state").status_code == 200


@pytest.mark.parametrize("caller", ["team/ada", "arn:aws:iam::000000000000:user/team/ada"])
def test_a_job_is_retried_as_its_owner(started: Running, caller: str) -> None:
    job_id = caller.replace("/", "-")
    started.post(job_id=job_id, poison=True, caller=caller)
    until(lambda: started.job(job_id)["status"] == "failed")

    assert started.project.run("retry", job_id).stdout == f"{job_id}  queued\n"


def test_letters_in_flight_are_counted(started: Running) -> None:
    sqs = started.aws("sqs")
    sqs.send_message(QueueUrl=started.queue("Dead"), MessageBody="hidden")
    sqs.receive_message(QueueUrl=started.queue("Dead"), VisibilityTimeout=600)

    shown = started.project.run("dead-letters").stdout.splitlines()
    assert shown[-1] == "1 more in flight: a function has received them and not deleted them"


def test_a_file_that_is_not_ours_is_passed_over(started: Running) -> None:
    corrupt = started.project.path / ".local" / f"stack-{os.getpid()}.json"
    corrupt.write_text("{", encoding="utf-8")
    try:
        assert started.project.run("jobs").returncode == 0
    finally:
        corrupt.unlink()


def test_the_first_stack_is_found_after_the_second_has_ended(project: Project) -> None:
    first = project.start()
    second = project.start()
    first.post(job_id="in-the-first")
    assert project.run("jobs").stdout == "0 jobs\n"
    second.end(signal.SIGINT)

    assert "in-the-first" in project.run("jobs").stdout
    first.process.kill()
    first.process.wait()
    assert "no stack runs here" in one_line(project.run("jobs"))


@pytest.mark.parametrize("package", ["moto", "boto3", "awslambdaric"])
def test_a_missing_package_is_one_line(project: Project, tmp_path: Path, package: str) -> None:
    hide = tmp_path / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        f"PathFinder.find_spec = lambda n, *rest: None if n == {package!r} else find(n, *rest)\n",
        encoding="utf-8",
    )
    line = one_line(project.run("--port", "0", PYTHONPATH=str(hide)))
    assert line == f"local: not installed: {package}. Run `make setup`"


def test_an_old_python_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python 3.9 comes as far as that line: it can compile the module and run its body."""
    source = Path(command_line.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 9))
    assert "from __future__ import annotations" in source
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    assert command_line.main([]) == 2
    assert capsys.readouterr().err == (
        "local: needs Python 3.11 or newer, and this is 3.9."
        " Run `make setup PYTHON=python3.13`, then `make local`\n"
    )


def test_properties_without_effect_are_named(project: Project) -> None:
    template = json.loads((project.path / "template.yaml").read_text(encoding="utf-8"))
    template["Resources"]["WorkerFunction"]["Properties"]["Tracing"] = "Active"
    template["Resources"]["JobsTable"]["Properties"]["SSESpecification"] = {"SSEEnabled": True}
    (project.path / "template.yaml").write_text(json.dumps(template), encoding="utf-8")

    assert (
        "  properties without effect here: Function.Tracing, SimpleTable.SSESpecification"
        in project.start().screen
    )


LOGS = """
    import logging

    def plain(event, context):
        try:
            raise LookupError("not here")
        except LookupError:
            logging.exception("failed")
        print("the next line")

    def broken(event, context):
        raise LookupError("broken")
"""


def test_a_traceback_ends_its_line(run: Callable[..., Any]) -> None:
    stack = run({"F": function("app.plain")}, {"app": LOGS})
    stack.invoke("F", {})
    until(lambda: any("the next line" in line for line in stack.log))
    assert "F  the next line" in stack.log


def test_json_logs_are_written_and_shown(
    run: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    logging = {"LogFormat": "JSON", "ApplicationLogLevel": "WARN"}
    stack = run({"F": function("app.broken", LoggingConfig=logging)}, {"app": LOGS})
    stack.invoke("F", {})
    line = until(lambda: next((x[3:] for x in stack.log if x.startswith('F  {"')), None))
    assert json.loads(line)["errorType"] == "LookupError"
    command_line._show("log", "F", line)
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == f"{'F':<20} ERROR LookupError: broken"
