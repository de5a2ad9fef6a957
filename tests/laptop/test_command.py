"""`python -m local`: the screen, the questions, and an end that leaves nothing behind."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from local import __main__ as command_line
from local import __version__
from local.processes import descendants
from tests.laptop.commands import Project, Running, one_line
from tests.laptop.projects import until


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Project(tmp_path_factory.mktemp("shared") / "shop")
    started = made.start()
    yield started
    started.end(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_and_leaves_nothing(project: Project, number: signal.Signals) -> None:
    running = project.start()
    running.post(job_id="hung", leak=True, hang=True)
    until(lambda: any("sleep" in command for command in project.processes()))
    assert (project.path / ".local" / "env.json").exists()
    assert running.end(number) == 0
    assert project.processes() == []
    assert project.states() == []
    assert running.screen[-1] == "ended"
    assert list(project.tmp.iterdir()) == []


def test_killed_hard_it_leaves_nothing_either(project: Project) -> None:
    running = project.start()
    running.post(job_id="hung", leak=True, hang=True)
    until(lambda: any("sleep" in command for command in project.processes()))
    assert list(project.tmp.glob("laptop-stack-*/*"))
    running.process.kill()
    until(lambda: not project.processes())
    assert list(project.tmp.iterdir()) == []


def test_it_does_not_outlive_the_emulated_aws(project: Project) -> None:
    """Jobs, queues and topics are gone: what goes on could but answer 503."""
    running = project.start()
    started = descendants(running.process.pid)
    (server,) = [pid for pid, command in started.items() if "moto_server.py" in command]
    os.kill(server, signal.SIGKILL)
    _, error = running.process.communicate(timeout=20)
    assert running.process.returncode == 2
    assert error == "local: the emulated AWS ended: exit code -9\n"
    assert project.processes() == []


def test_the_screen_says_what_runs_and_what_does_not(project: Project) -> None:
    running = project.start()
    running.post(job_id="one")
    until(lambda: running.job("one")["status"] == "completed")
    running.post(job_id="two", leak=True)
    until(lambda: httpx.get(f"{running.url}/_local/state").json()["leaks"])
    running.end(signal.SIGINT)
    screen = "\n".join(running.screen)
    for line in (
        f"shop runs on {running.url} (page: {running.url}/_local).",
        f"laptop stack {__version__}",
        "Ctrl-C ends it, and all jobs with it.",
        "  POST /jobs → ApiFunction",
        "  JobsQueue → WorkerFunction",
        "  ! not supported here: Nightly (AWS::Scheduler::Schedule)",
        "  without effect here: 1 Alarm",
        f"  curl -i {running.url}/jobs -H 'Content-Type: application/json'"
        """ -d '{"job_id": "it'\\''s one"}'""",
        "ApiFunction          accepted one",
        "ApiFunction          POST /jobs → 202 in ",
        "WorkerFunction       JobsQueue (1) in ",
        "WorkerFunction       ! left over after JobsQueue (1), and frozen: process 'sleep 300'",
    ):
        assert line in screen


def test_the_curl_line_works(running: Running) -> None:
    done = subprocess.run(running.screen[-1], shell=True, capture_output=True, text=True)
    assert "202 Accepted" in done.stdout
    assert running.job("it's one")["owner"].endswith("user/local")


def test_a_taken_port_is_one_line(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = one_line(project.run("--port", port))
    assert line == (
        f"local: port {port} is taken; end what listens there, or choose another one: --port"
    )
    assert project.processes() == []


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("template.yaml", "Resources: [", "template.yaml:1: "),
        (
            "template.yaml",
            "Resources: {F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13,"
            " Handler: worker.handler, CodeUri: src, Timeout: soon}}}",
            "local: F.Timeout is soon. Use a whole number.",
        ),
        (
            "template.yaml",
            "Resources: {F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13,"
            " Handler: worker.handler, CodeUri: src, Environment: 3}}}",
            "something in template.yaml is not as expected: AttributeError: ",
        ),
        (
            "template.yaml",
            "Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {AttributeDefinitions: 3}}}",
            "T: AWS would refuse it: Parameter validation failed: ",
        ),
        (
            "src/worker.py",
            "def handler(:",
            "WorkerFunction does not start: Runtime.UserCodeSyntaxError: ",
        ),
        ("src/worker.py", "import nothing_like_it", "No module named 'nothing_like_it'"),
        (
            "src/worker.py",
            "import os\nos.environ['UNSET']",
            "WorkerFunction does not start: KeyError: 'UNSET' (worker.py:2)",
        ),
    ],
)
def test_what_cannot_start_is_one_line(project: Project, file: str, text: str, line: str) -> None:
    (project.path / file).write_text(text, encoding="utf-8")
    assert line in one_line(project.run("--port", "0"))
    assert project.processes() == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--parameter", "Size"], "local: --parameter Size: write it as NAME=VALUE"),
        (
            ["--parameter", "Size=1.5"],
            "local: WorkerFunction.Event0.BatchSize is 1.5 (parameter Size). Use a whole number.",
        ),
        (["--parameter", "Size=4"], "local: parameter Size=4: must be at most 3"),
        (["--parameter", "Other=4"], "no parameter Other; there are: Size"),
        (["--port", "99999"], "local: --port must be 0 to 65535"),
        (["--concurrency", "0"], "local: --concurrency must be at least 1"),
        (["jobs"], "local: no stack runs here; start it with `python -m local`"),
        (["dead-letters"], "local: no stack runs here"),
        (["retry", "x"], "local: no stack runs here"),
    ],
)
def test_wrong_use_is_one_line(project: Project, arguments: list[str], line: str) -> None:
    assert line in one_line(project.run(*arguments))


def test_containers_need_a_bridge(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert command_line.main(["--containers"]) == 2
    assert (
        capsys.readouterr().err
        == "local: --containers: no Docker bridge found; is Docker running?\n"
    )


def test_windows_is_sent_to_wsl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.name", "nt")
    code = command_line.main([])
    monkeypatch.undo()
    assert code == 2
    assert capsys.readouterr().err == "local: needs Linux or macOS; on Windows, run it inside WSL\n"


def test_jobs_dead_letters_and_retry(running: Running) -> None:
    project = running.project
    running.post(job_id="good")
    running.post(job_id="bad", poison=True, caller="alice")
    # The visibility of a poisoned message is long; the test does not wait for it.
    url = json.loads((project.path / ".local" / "env.json").read_text())["ApiFunction"]
    assert url["JOBS_QUEUE_URL"].startswith("http://host.docker.internal:")
    until(
        lambda: (
            running.job("bad")["status"] == "failed"
            and running.job("good")["status"] == "completed"
        )
    )

    listed = project.run("jobs").stdout.splitlines()
    assert {"bad  failed     attempts 1", "good  completed  attempts 1"} <= set(listed)
    jobs = json.loads(project.run("jobs", "--json").stdout)
    owners = {j["job_id"]: j["owner"].rpartition("/")[2] for j in jobs}
    assert (owners["bad"], owners["good"]) == ("alice", "local")
    assert listed[-1] == f"{len(jobs)} jobs"
    assert project.run("dead-letters").stdout == "0 dead letters\n"
    assert json.loads(project.run("dead-letters", "--json").stdout) == []

    retried = project.run("retry", "bad")
    assert (retried.returncode, retried.stdout) == (0, "bad  queued\n")
    assert json.loads(project.run("retry", "bad", "--json").stdout)["status"] == "queued"
    refused = project.run("retry", "good")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "local: good cannot be retried: it has not failed\n"
    assert (
        one_line(project.run("retry", "ugly")) == "local: no job ugly; see `python -m local jobs`"
    )


def test_the_page_is_for_this_machine_alone(running: Running) -> None:
    for path in ("/_local", "/_local/", "/_local/state"):
        assert httpx.get(running.url + path).status_code == 200
        rebound = httpx.get(running.url + path, headers={"Host": "evil.example:80"})
        assert (rebound.status_code, rebound.json()) == (403, {"message": "Forbidden"})
    assert httpx.get(f"{running.url}/_local/nothing").status_code == 404
    assert httpx.get(f"{running.url}/_localx").json() == {"message": "Not Found"}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain text", ["plain text"]),
        ("12", ["12"]),
        ('{"mine": 1}', ['{"mine": 1}']),
        ('{"_aws": {"CloudWatchMetrics": []}, "JobCompleted": [1.0]}', []),
        ("LAMBDA_WARNING: Unhandled exception. The most likely cause is ...", []),
        (
            '{"level": "INFO", "location": "_attempt:92", "message": "attempt started",'
            ' "timestamp": "2026-01-31", "service": "x", "function_arn": "y", "job_id": "j"}',
            ["INFO attempt started job_id=j"],
        ),
        (
            '{"level": "ERROR", "message": "attempt failed", "exception_name": "ValueError",'
            ' "exception": "Traceback:\\n  File \\"work.py\\"\\nValueError: no"}',
            ["ERROR attempt failed", "  Traceback:", '    File "work.py"', "  ValueError: no"],
        ),
    ],
)
def test_log_lines_are_shown_as_people_read_them(
    line: str, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command_line._show("log", "F", line)
    assert capsys.readouterr().out.splitlines() == [f"{'F':<20} {part}" for part in shown]
