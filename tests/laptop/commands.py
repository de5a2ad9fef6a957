"""A small project with a copy of local/ inside, and `python -m local` in processes of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import boto3
import httpx

from local import __main__ as command_line
from tests.laptop.projects import function, http, queue, sqs, write_project

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

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self, *arguments: str, **environment: str) -> "Running":
        process = subprocess.Popen(
            self.command("--port", "0", *arguments),
            cwd=self.path,
            env={**os.environ, "TMPDIR": str(self.tmp), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            # As a shell starts what it puts into the background: ignoring Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        self.started.append(process)
        return Running(self, process)

    def states(self) -> list[Path]:
        return list((self.path / ".local").glob("stack-*"))

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
        patience = threading.Timer(120, process.kill)
        patience.start()
        try:
            while not self.screen or not self.screen[-1].startswith("  curl"):
                line = process.stdout.readline()
                assert line, [*self.screen, process.stderr.read()]
                self.screen.append(line.rstrip("\n"))
        finally:
            patience.cancel()
        self.url = next(line for line in self.screen if " runs on " in line).split()[3]

    def post(self, **job: Any) -> None:
        headers = {"X-Local-Caller": job.pop("caller", "local")}
        assert httpx.post(f"{self.url}/jobs", json=job, headers=headers).status_code == 202

    def aws(self, service: str) -> Any:
        """Return a client of the emulated AWS."""
        url = self.queue("JobsQueue").partition("/000000000000/")[0]
        session = boto3.Session("x", "x", region_name="us-east-1")
        return session.client(service, endpoint_url=url)

    def queue(self, name: str) -> str:
        """Return a queue's URL."""
        variables = json.loads((self.project.path / ".local" / "env.json").read_text())
        url = variables["ApiFunction"]["JOBS_QUEUE_URL"]
        return str(url).replace("host.docker.internal", "127.0.0.1").replace("JobsQueue", name)

    def job(self, job_id: str) -> Any:
        jobs = httpx.get(f"{self.url}/_local/jobs").json()
        return next(j for j in jobs if j["job_id"] == job_id)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=20)
        self.screen += out.splitlines()
        return self.process.returncode


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line
