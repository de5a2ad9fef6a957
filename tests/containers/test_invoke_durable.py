"""The durable variant in containers: `sam local invoke` on the emulator of the laptop stack.

`sam local invoke` exits 0 for an execution that failed, so it is the execution's own record that
is looked at.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from tests.conftest import Oven
from tests.helpers.baked import BakedProject
from tests.helpers.support import containers
from tests.helpers.support.containers import RuntimeImage
from tests.helpers.support.sam import SAM, Invocation
from tests.laptop.projects import until

pytestmark = pytest.mark.container

SERVE = """
import json, sys
from pathlib import Path
from local.stack import Stack
with Stack(".", {"RetryBaseSeconds": "0"}, host=sys.argv[1]) as stack:
    stack.aws.write_sam_environment(Path(".local/env.json"))
    print(json.dumps([stack.url, stack.aws.url, stack.durable.emulator_url]), flush=True)
    sys.stdin.read()
"""
"""The laptop stack of a project, open to containers, until its input ends."""

OWNER = "local"


@dataclass(frozen=True)
class Stage:
    """A built project, its laptop stack, and what stands for Lambda in containers."""

    project: BakedProject
    image: RuntimeImage
    api: str
    aws: str

    def client(self, service: str) -> Any:
        """A client of the emulated AWS."""
        return boto3.Session("local", "local", region_name="us-east-1").client(
            service, endpoint_url=self.aws
        )

    def event(self, name: str) -> Any:
        """An event of the project."""
        path = self.project.path / "events" / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def invoke(self, function: str, event: object, *options: str) -> Invocation:
        """`sam local invoke`, with the environment that samconfig.toml names."""
        return SAM.find().local_invoke(
            self.project.path, function, event, image=self.image, options=options
        )

    def job(self, job_id: str) -> dict[str, Any]:
        """The stored job."""
        item = self.client("dynamodb").get_item(
            TableName="JobsTable", Key={"job_id": {"S": job_id}}, ConsistentRead=True
        )["Item"]
        read = TypeDeserializer().deserialize
        return {name: read(value) for name, value in item.items()}

    def wait_for(self, job_id: str, status: str) -> dict[str, Any]:
        """Look at a job until it has this status."""
        ends = time.monotonic() + 60
        while (job := self.job(job_id))["status"] != status:
            assert time.monotonic() < ends, job
            time.sleep(0.1)
        return job

    def store(self, job_id: str, **payload: Any) -> None:
        """Store a queued job that nobody has handed over."""
        moment = "2026-01-31T09:30:00.000Z"
        item = {
            "job_id": job_id,
            "owner": OWNER,
            "payload": json.dumps(payload),
            "fingerprint": "none",
            "status": "queued",
            "created_at": moment,
            "updated_at": moment,
            "expires_at": int(time.time()) + 86_400,
            "attempts": 0,
            "history": [{"status": "queued", "at": moment}],
            "schema": 1,
        }
        write = TypeSerializer().serialize
        self.client("dynamodb").put_item(
            TableName="JobsTable", Item={name: write(value) for name, value in item.items()}
        )

    def record(self, invocation: Invocation) -> dict[str, Any]:
        """The record of the execution that an invocation has started."""
        arn = invocation.stderr.partition("ARN: ")[2].split()[0]
        got = SAM.find().run(
            *("local", "execution", "get", arn, "--format", "json"), cwd=self.project.path
        )
        return dict(json.loads(got.stdout))


@pytest.fixture(scope="module")
def stage(baked: Oven) -> Iterator[Stage]:
    """The durable variant, built, with its laptop stack up."""
    image = containers.runtime_image("python3.13")
    project = baked.fresh(worker="durable", auth="iam")
    SAM.find().build(project.path, runtime="python3.13")
    stack = subprocess.Popen(
        [sys.executable, "-c", SERVE, containers.bridge_address()],
        cwd=project.path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert stack.stdout
    api, aws, emulator = json.loads(stack.stdout.readline())
    with pytest.MonkeyPatch.context() as patch:
        port = emulator.rpartition(":")[2]
        patch.setenv("DURABLE_EXECUTIONS_EXTERNAL_EMULATOR_PORT", port)
        yield Stage(project, image, api, aws)
    stack.communicate()


def test_the_api_in_a_container_starts_an_execution(stage: Stage) -> None:
    """202, and the laptop stack runs the job, waits included."""
    accepted = stage.invoke("ApiFunction", stage.event("create_job"))

    assert accepted.payload["statusCode"] == 202, accepted
    job_id = json.loads(accepted.payload["body"])["job_id"]
    job = stage.wait_for(job_id, "completed")
    assert [entry["status"] for entry in job["history"]] == [
        *("queued", "running", "waiting", "running", "completed")
    ]


def test_every_event_of_the_api_is_answered(stage: Stage) -> None:
    """Those that come too late for the job, too: it has completed."""
    expected = {
        "get_job": 200,
        "cancel_job": 409,
        "retry_job": 409,
        "answer_job": 409,
        "get_question": 409,
    }
    names = {path.stem for path in (stage.project.path / "events").iterdir()}
    assert names - {"worker", "dead_letter"} == {"create_job", *expected}

    accepted = stage.invoke("ApiFunction", stage.event("create_job"))
    assert accepted.payload["statusCode"] == 202, accepted
    stage.wait_for(stage.event("worker")["job_id"], "completed")
    for name, status in expected.items():
        done = stage.invoke("ApiFunction", stage.event(name))
        assert done.payload["statusCode"] == status, done


def test_the_worker_in_a_container_suspends_and_resumes(stage: Stage) -> None:
    """It waits for time to pass and for an answer, which comes through the API."""
    reference = stage.event("worker")
    job_id = reference["job_id"]
    stage.store(job_id, customer="ada", delay_seconds=1, approval=True)
    request = urllib.request.Request(
        f"{stage.api}/jobs/{job_id}/callback",
        data=b'{"approved": true}',
        headers={"Content-Type": "application/json"},
    )

    def approved() -> bool:
        try:
            urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            time.sleep(0.2)  # it does not wait for an answer yet
            return False
        return True

    with ThreadPoolExecutor() as pool:
        approval = pool.submit(until, approved, 120)
        done = stage.invoke("WorkerFunction", reference)
        approval.result()

    record = stage.record(done)
    assert record["Status"] == "SUCCEEDED", record
    assert json.loads(record["Result"])["status"] == "completed"
    job = stage.job(job_id)
    assert [entry["status"] for entry in job["history"]] == [
        *("queued", "running", "waiting", "running", "waiting", "running", "completed")
    ]
    assert job["attempts"] == 1
    assert done.stderr.count("START RequestId") >= 2


def test_an_execution_that_fails(stage: Stage) -> None:
    """SAM exits 0 all the same; the record tells."""
    done = stage.invoke("WorkerFunction", {"job_id": "00000000-0000-4000-8000-000000000000"})

    record = stage.record(done)
    assert record["Status"] == "FAILED"
    assert record["Error"]["ErrorMessage"] == "there is no such job"


def test_the_dead_letter_of_an_execution_is_settled(stage: Stage) -> None:
    """As Lambda sends it: the event that began the execution."""
    reference = stage.event("worker")
    stage.store(reference["job_id"], customer="ada")
    done = stage.invoke("DeadLetterFunction", stage.event("dead_letter"))

    assert done.payload == {"batchItemFailures": []}, done
    job = stage.job(reference["job_id"])
    assert (job["status"], job["error"]["type"]) == ("failed", "NeverStarted")
