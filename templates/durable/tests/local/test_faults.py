"""Workers that crash, time out, are stopped or are not deterministic: every job ends all the same.

They run on a copy of the project that has a work.py of its own, so that yours may do what it likes.
The jobs run side by side, for some of them wait until Lambda has tried often enough.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.stack import Stack
from tests.contract.client import Caller
from tests.contract.conftest import CONTRACT, PARAMETERS

PROJECT = Path(__file__).parents[2]
LONGEST = "Seconds: 2592000"
"""The default of ExecutionTimeoutDays, in Mappings."""

WORK = '''
"""Work that goes wrong in the way that it is asked to."""

import os
import time
from pathlib import Path

from aws_durable_execution_sdk_python.config import Duration


def run(payload, context, job):
    note = Path(payload["note"])

    def effect(_):
        with note.open("a") as file:
            file.write("effect\\n")

    def busy(_):
        with note.open("a") as file:
            file.write("busy\\n")
        time.sleep(payload.get("seconds", 0))

    context.step(effect, name="effect")
    if payload.get("crash"):
        os.abort()
    context.step(busy, name=f"{time.time()}" if payload.get("chance") else "busy")
    context.wait(Duration.from_seconds(payload.get("wait", 1)), name="pause")
    return {"notes": note.read_text().split()}
'''


def project(folder: Path, longest: str = LONGEST) -> Path:
    """Return a copy of the project with the work above, and executions that may take so long."""
    left_out = shutil.ignore_patterns(".*", "__pycache__")
    copy = shutil.copytree(PROJECT, folder / "project", ignore=left_out)
    (copy / "src" / "work.py").write_text(WORK, encoding="utf-8")
    (copy / "src" / "payload.schema.json").write_text('{"type": "object"}', encoding="utf-8")
    template = (copy / "template.yaml").read_text(encoding="utf-8")
    assert template.count(LONGEST) == 1
    (copy / "template.yaml").write_text(template.replace(LONGEST, longest), encoding="utf-8")
    return copy


class Campaign:
    """The jobs, sent together, and what the topic said of them."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        sqs, sns = stack.aws.client("sqs"), stack.aws.client("sns")
        self._announced = sqs.create_queue(QueueName="announced")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self._announced, AttributeNames=["QueueArn"])
        sns.subscribe(
            TopicArn=stack.template.arn("JobEventsTopic"),
            Protocol="sqs",
            Endpoint=arn["Attributes"]["QueueArn"],
        )
        self.stack = stack
        self._sqs, self._folder = sqs, folder
        self.caller = Caller(stack.url, CONTRACT, None, impatience=0.1, patience=150)
        self.stopped = self.start("stopped", wait=600)
        self.caller.wait_for(self.stopped, "waiting")
        while any(s.state == "busy" for s in stack.runners["WorkerFunction"].sandboxes):
            pass  # until the invocation ends, which ends up with no sandbox for the job
        self.while_nothing_runs = self.caller.get(self.stopped).json()["status"]
        self.killed = self.start("killed", seconds=3)
        self.wait_for_note("killed", "busy")
        stack.kill("WorkerFunction")
        self.endless = self.start("endless", seconds=60)
        self.crashing = self.start("crashing", crash=True)
        self.chance = self.start("chance", chance=True)
        stack.aws.client("lambda").stop_durable_execution(
            DurableExecutionArn=self.execution(self.stopped),
            Error={"ErrorType": "Operator", "ErrorMessage": "enough"},
        )
        self.cancelled = self.start("cancelled", seconds=3)
        self.wait_for_note("cancelled", "busy")
        self.told = self.caller.cancel(self.cancelled).json()["status"]
        self.jobs = (
            *(self.killed, self.endless, self.crashing),
            *(self.chance, self.stopped, self.cancelled),
        )

    def start(self, note: str, **payload: Any) -> str:
        """Send a job that notes what it does."""
        return self.caller.start({"note": str(self._folder / note), **payload})

    def wait_for_note(self, note: str, text: str) -> None:
        """Wait until a job has noted that it does something."""
        path = self._folder / note
        while not path.exists() or text not in path.read_text():
            pass

    def execution(self, job_id: str) -> str:
        """Return the ARN of a job's execution."""
        (job,) = [job for job in self.stack.jobs() if job["job_id"] == job_id]
        return str(job["execution"])

    def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for the end of a job, and return it."""
        *_, job = self.caller.follow(job_id)
        return job

    def announcements(self) -> dict[str, list[str]]:
        """Return the statuses that the topic has announced, by job."""
        told: dict[str, list[str]] = {}
        while messages := self._sqs.receive_message(
            QueueUrl=self._announced, MaxNumberOfMessages=10, WaitTimeSeconds=2
        ).get("Messages"):
            for message in messages:
                job = json.loads(json.loads(message["Body"])["Message"])
                told.setdefault(job["job_id"], []).append(job["status"])
        return told


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """A stack whose invocations may take five seconds, and whose steps are tried twice."""
    folder = tmp_path_factory.mktemp("faults")
    parameters = PARAMETERS | {"WorkerTimeout": "5", "MaxAttempts": "2"}
    with Stack(project(folder), parameters=parameters) as stack:
        yield Campaign(stack, folder)


def test_a_killed_worker_loses_no_job(campaign: Campaign) -> None:
    """The step that was under way has failed and runs again; the one before does not."""
    job = campaign.ended(campaign.killed)
    assert (job["status"], job["attempts"]) == ("completed", 2)
    assert job["result"] == {"notes": ["effect", "busy", "busy"]}


def test_a_job_that_always_times_out_fails(campaign: Campaign) -> None:
    """Each timeout is a failed attempt at the step."""
    job = campaign.ended(campaign.endless)
    assert (job["status"], job["attempts"]) == ("failed", 2)
    assert job["error"]["type"] == "AttemptLost"


def test_a_job_that_always_crashes_fails(campaign: Campaign) -> None:
    """Outside of steps, too: Lambda would invoke it until the execution times out."""
    job = campaign.ended(campaign.crashing)
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert job["error"]["type"] == "WorkerCrashed"


def test_a_job_that_is_not_deterministic_fails(campaign: Campaign) -> None:
    """At the first replay, and the job says so."""
    job = campaign.ended(campaign.chance)
    assert job["status"] == "failed"
    assert "Non-deterministic" in job["error"]["message"]


def test_an_execution_that_somebody_stops_fails_its_job(campaign: Campaign) -> None:
    """On AWS the error tells what was given as the reason; the emulator drops it."""
    job = campaign.ended(campaign.stopped)
    assert job["status"] == "failed"
    assert job["error"]["type"] == "ExecutionStopped"


def test_a_job_is_cancelled_in_the_middle_of_a_step(campaign: Campaign) -> None:
    """At once; what its sandbox still sends is refused."""
    assert campaign.told == "cancelled"
    job = campaign.ended(campaign.cancelled)
    assert [entry["status"] for entry in job["history"]] == ["queued", "running", "cancelled"]


def test_a_job_that_waits_needs_no_sandbox(campaign: Campaign) -> None:
    """It waits though no sandbox is at work."""
    assert campaign.while_nothing_runs == "waiting"


def test_nothing_is_left(campaign: Campaign) -> None:
    """Each end is announced once, and no function left a thread behind."""
    ends = {job_id: [campaign.ended(job_id)["status"]] for job_id in campaign.jobs}
    assert campaign.announcements() == ends
    assert campaign.stack.leaks == []


def test_an_execution_times_out(tmp_path: Path) -> None:
    """Whatever it waits for; the job says so."""
    with Stack(project(tmp_path, "Seconds: 4"), parameters=PARAMETERS) as stack:
        caller = Caller(stack.url, CONTRACT, None, impatience=0.1, patience=60)
        *_, job = caller.follow(caller.start({"note": str(tmp_path / "note"), "wait": 600}))

    assert job["status"] == "failed"
    assert job["error"]["type"] == "ExecutionTimedOut"


def test_a_worker_that_cannot_be_imported_ends_its_jobs(tmp_path: Path) -> None:
    """At the first invocation; the reason is in the log."""
    broken, log = project(tmp_path), list[str]()
    (broken / "src" / "work.py").write_text("import boto4", encoding="utf-8")
    with Stack(broken, parameters=PARAMETERS, echo=lambda *told: log.append(told[2])) as stack:
        caller = Caller(stack.url, CONTRACT, None, impatience=0.1, patience=60)
        *_, job = caller.follow(caller.start({}))
        invocations = [i for i in list(stack.invocations) if i.function == "WorkerFunction"]

    assert (job["status"], job["error"]["type"]) == ("failed", "NeverStarted")
    assert len(invocations) == 1
    assert any("No module named 'boto4'" in line for line in log)


def test_each_replay_in_a_new_sandbox(tmp_path: Path) -> None:
    """Nothing of a job lives in the memory of a sandbox."""
    with Stack(project(tmp_path), parameters=PARAMETERS, reclaim=True) as stack:
        caller = Caller(stack.url, CONTRACT, None, impatience=0.1, patience=60)
        job = caller.wait_for(caller.start({"note": str(tmp_path / "note")}), "completed")
        ran: list[bool] = []
        while len(ran) < 2:  # an invocation is listed when its sandbox is done with
            ran = [i.cold for i in list(stack.invocations) if i.function == "WorkerFunction"]

    assert job["result"] == {"notes": ["effect", "busy"]}
    assert ran == [False, True]  # the first one was started with the stack
