"""`python -m local`: the screen, the questions, and an end that leaves nothing behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import __main__ as command_line
from local import __version__
from local.processes import descendants
from tests.laptop.projects import function, http, queue, sqs, until, write_project

API = """
    import json, os, threading, time, urllib.request
    import boto3

    table = boto3.resource("dynamodb").Table(os.environ["JOBS_TABLE"])
    jobs = boto3.resource("sqs").Queue(os.environ["JOBS_QUEUE_URL"])

    def handler(event, context):
        key, arn = event["routeKey"], event["requestContext"]["authorizer"]["iam"]["userArn"]
        if key == "POST /jobs":
            job = json.loads(event["body"])
            new = {"owner": arn, "status": "queued", "created_at": "2030", "attempts": 1}
            table.put_item(Item={**job, **new})
            jobs.send_message(MessageBody=json.dumps(job))
            print("accepted", job["job_id"])
            return {"statusCode": 202, "body": "{}"}
        job = table.get_item(Key={"job_id": event["pathParameters"]["job_id"]})["Item"]
        if job["owner"] != arn:
            return {"statusCode": 404, "body": json.dumps({"detail": "not yours"})}
        if job["status"] != "failed":
            return {"statusCode": 409, "body": json.dumps({"detail": "it has not failed"})}
        body = json.dumps({"job_id": job["job_id"], "status": "queued"})
        return {"statusCode": 202, "body": body}
"""
WORKER = """
    import json, os, subprocess, sys, threading, time
    import boto3

    table = boto3.resource("dynamodb").Table(os.environ["JOBS_TABLE"])

    def handler(event, context):
        job = json.loads(event["Records"][0]["body"])
        if job.get("leak"):
            subprocess.Popen(["sleep", "300"], start_new_session=True)
        if job.get("hang"):
            time.sleep(300)
        status = "failed" if job.get("poison") else "completed"
        changed = {"status": {"Action": "PUT", "Value": status}}
        table.update_item(Key={"job_id": job["job_id"]}, AttributeUpdates=changed)
        if job.get("poison"):
            raise LookupError("poison")
"""
VARIABLES = {"JOBS_TABLE": {"Ref": "JobsTable"}, "JOBS_QUEUE_URL": {"Ref": "JobsQueue"}}
RESOURCES: dict[str, Any] = {
    "Parameters.": {"Size": {"Type": "Number", "Default": 1, "MaxValue": 3}},
    "Globals.": {"Function": {"Environment": {"Variables": VARIABLES}, "Timeout": 600}},
    "Api": {
        "Type": "AWS::Serverless::HttpApi",
        "Properties": {"Auth": {"DefaultAuthorizer": "AWS_IAM"}},
    },
    "ApiFunction": function("api.handler", http("POST /jobs"), http("POST /jobs/{job_id}/retry")),
    "WorkerFunction": function("worker.handler", sqs("JobsQueue", BatchSize={"Ref": "Size"})),
    "JobsTable": {
        "Type": "AWS::Serverless::SimpleTable",
        "Properties": {"PrimaryKey": {"Name": "job_id", "Type": "String"}},
    },
    "JobsQueue": queue(
        VisibilityTimeout=600,
        RedrivePolicy={
            "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
            "maxReceiveCount": 1,
        },
    ),
    "Dead": queue(),
    "Nightly": {"Type": "AWS::Scheduler::Schedule", "Properties": {}},
    "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {}},
}


class Project:
    """A project of its own folder, with the package inside, as generated ones have it."""

    def __init__(self, folder: Path) -> None:
        self.path = write_project(folder, RESOURCES, {"api": API, "worker": WORKER})
        self.tmp = folder.parent / "tmp"
        self.tmp.mkdir()
        package = Path(command_line.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, self.path / "local", ignore=ignored)
        (self.path / "events").mkdir()
        event = {"routeKey": "POST /jobs", "body": '{"job_id": "it\'s one"}'}
        (self.path / "events" / "create.json").write_text(json.dumps(event), encoding="utf-8")
        self.started: list[subprocess.Popen[str]] = []

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "local", *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), cwd=self.path, capture_output=True, text=True, timeout=60
        )

    def start(self, *arguments: str) -> "Running":
        process = subprocess.Popen(
            self.command("--port", "0", *arguments),
            cwd=self.path,
            env={**os.environ, "TMPDIR": str(self.tmp)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a shell starts what it puts into the background: ignoring Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        self.started.append(process)
        return Running(self, process)

    def processes(self) -> list[str]:
        """Return the command lines of all processes that run code of this project."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    command = (entry / "cmdline").read_bytes().decode()
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    folder = os.readlink(entry / "cwd")
                except OSError:
                    continue
                if state not in "ZX" and str(self.path) in command + folder:
                    found.append(command)
        return found


class Running:
    """A stack in a process of its own."""

    def __init__(self, project: Project, process: "subprocess.Popen[str]") -> None:
        self.project = project
        self.process = process
        self.screen: list[str] = []
        assert process.stdout
        assert process.stderr
        patience = threading.Timer(60, process.kill)
        patience.start()
        try:
            while not self.screen or not self.screen[-1].startswith("  curl"):
                line = process.stdout.readline()
                assert line, [*self.screen, process.stderr.read()]
                self.screen.append(line.rstrip("\n"))
        finally:
            patience.cancel()
        self.state = json.loads((project.path / ".local" / "state.json").read_text())
        self.url: str = self.state["url"]

    def post(self, **job: Any) -> None:
        headers = {"X-Local-Caller": job.pop("caller", "local")}
        assert httpx.post(f"{self.url}/jobs", json=job, headers=headers).status_code == 202

    def job(self, job_id: str) -> Any:
        jobs = httpx.get(f"{self.url}/_local/jobs").json()
        return next(j for j in jobs if j["job_id"] == job_id)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=20)
        self.screen += out.splitlines()
        return self.process.returncode


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "shop")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    until(lambda: not made.processes())


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
    assert not (project.path / ".local" / "state.json").exists()
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


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


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
            "something in template.yaml is not as expected: ValueError: ",
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
