"""Every function and every event, in containers: built by `sam build`, run by `sam local invoke`
against the emulated AWS, and judged by the answer and by what is left behind there."""

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from local.emulator import Emulator
from local.poller import record
from local.template import Template
from tests.conftest import Oven
from tests.helpers.baked import BakedProject
from tests.helpers.support import containers
from tests.helpers.support.containers import RuntimeImage
from tests.helpers.support.sam import SAM, Invocation, LocalLambda
from tests.laptop.projects import until

pytestmark = pytest.mark.container

PARAMETERS = {"MaxAttempts": "2", "RetryBaseSeconds": "0"}
"""So that a failed attempt is followed by the next one at once, and two of them are enough."""

EVENTS = {
    "create_job": "ApiFunction",
    "get_job": "ApiFunction",
    "cancel_job": "ApiFunction",
    "retry_job": "ApiFunction",
    "worker": "WorkerFunction",
    "dead_letter": "DeadLetterFunction",
}
"""The files in events/, in the order of their story, and the functions that they are for."""

OWNER = "local"


@dataclass(frozen=True)
class Stage:
    """A built project, and the emulated AWS that its functions run against."""

    project: BakedProject
    aws: Emulator
    image: RuntimeImage
    up: LocalLambda | None = None
    """Functions that are up already, for what leads to the point of a test."""

    def invoke(
        self, function: str, event: object, env_vars: dict[str, str] | None = None
    ) -> Invocation:
        """`sam local invoke`, with the environment that samconfig.toml names unless given."""
        return SAM.find().local_invoke(
            self.project.path, function, event, env_vars=env_vars, image=self.image
        )

    def ask(self, event: dict[str, Any]) -> Invocation:
        """Invoke an ApiFunction that is up: 25 ms instead of three seconds."""
        assert self.up is not None
        return self.up.invoke("ApiFunction", event)

    def event(self, name: str) -> Path:
        """The file of an event."""
        return self.project.path / "events" / f"{name}.json"

    def request(self, name: str, **changes: Any) -> dict[str, Any]:
        """An event of the HTTP API, changed: its `body`, `job_id` or `caller`."""
        event: dict[str, Any] = json.loads(self.event(name).read_text(encoding="utf-8"))
        if "body" in changes:
            event["body"] = json.dumps(changes["body"])
        if "job_id" in changes:
            event["pathParameters"]["job_id"] = changes["job_id"]
            event["rawPath"] = event["routeKey"].split()[1].format(job_id=changes["job_id"])
            event["requestContext"]["http"]["path"] = event["rawPath"]
        if "caller" in changes:
            event["requestContext"]["authorizer"]["iam"]["userId"] = changes["caller"]
        return event

    def accept(self, **payload: Any) -> str:
        """Have a job accepted; return its id."""
        event = self.request("create_job", body={"site": "docs.example", **payload})
        del event["headers"]["idempotency-key"]
        _, _, job = answer(self.ask(event), 202)
        return str(job["job_id"])

    def item(self, job_id: str) -> dict[str, Any]:
        """The stored job; of its attributes the texts and numbers, as texts."""
        found = self.aws.client("dynamodb").get_item(
            TableName="JobsTable", Key={"job_id": {"S": job_id}}, ConsistentRead=True
        )
        return {name: next(iter(value.values())) for name, value in found["Item"].items()}

    def waiting(self, queue: str) -> tuple[int, int]:
        """How many messages of a queue can be received, and how many are hidden."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        found = self.aws.client("sqs").get_queue_attributes(
            QueueUrl=self.aws.queue_url(queue), AttributeNames=list(names)
        )
        visible, hidden = (int(found["Attributes"][name]) for name in names)
        return visible, hidden

    def receive(self, queue: str) -> dict[str, Any]:
        """Receive one message, as the record that Lambda makes of it."""
        found = self.aws.client("sqs").receive_message(
            QueueUrl=self.aws.queue_url(queue),
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            WaitTimeSeconds=5,
        )
        (message,) = found["Messages"]
        return record(message, self.aws.queue_arn(queue))

    def deliver(
        self, function: str, queue: str, by: LocalLambda | None = None
    ) -> tuple[Invocation, list[str]]:
        """Do what Lambda's mapping does with one message; return also the ids that stay."""
        received = self.receive(queue)
        event = {"Records": [received]}
        done = by.invoke(function, event) if by else self.invoke(function, event)
        assert done.exit_code == 0, done
        stay = [failure["itemIdentifier"] for failure in done.payload["batchItemFailures"]]
        if received["messageId"] not in stay:
            self.aws.client("sqs").delete_message(
                QueueUrl=self.aws.queue_url(queue), ReceiptHandle=received["receiptHandle"]
            )
        return done, stay

    def announced(self) -> list[tuple[str, str]]:
        """What a subscriber of JobEventsTopic got since the last look: (job id, status)."""
        sqs, url = self.aws.client("sqs"), f"{self.aws.url}/000000000000/Subscriber"
        jobs = []
        while messages := sqs.receive_message(QueueUrl=url).get("Messages"):
            for message in messages:
                jobs.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [(job["job_id"], job["status"]) for job in jobs]


def answer(invocation: Invocation, status: int) -> tuple[dict[str, str], Any, Any]:
    """Check an HTTP answer's form; return its headers (lower case), its problem type, its JSON."""
    assert invocation.exit_code == 0, invocation
    response = invocation.payload
    assert response["statusCode"] == status, invocation
    headers = {name.lower(): value for name, value in response["headers"].items()}
    body = json.loads(response["body"])
    kind = "application/json" if status < 400 else "application/problem+json"
    assert headers["content-type"] == kind, invocation
    assert headers["cache-control"] == "no-store", invocation
    if status >= 400:
        assert body["status"] == status
        return headers, body["type"], body
    assert ("retry-after" in headers) == (body["status"] in ("queued", "running")), invocation
    assert ("location" in headers) == (status == 202), invocation
    return headers, None, body


def lines(invocation: Invocation) -> list[dict[str, Any]]:
    """The log of an invocation: its JSON lines."""
    return [json.loads(line) for line in invocation.stderr.splitlines() if line.startswith("{")]


def counted(invocation: Invocation) -> list[str]:
    """The metrics that an invocation counted, each by the dimension that the alarms look at."""
    names = []
    for line in lines(invocation):
        for group in line.get("_aws", {}).get("CloudWatchMetrics", []):
            assert (group["Namespace"], group["Dimensions"]) == ("Jobs", [["service"]])
            assert line["service"] == "local"  # the name of the laptop's stack
            names += [metric["Name"] for metric in group["Metrics"]]
    return names


def logged(invocation: Invocation, job_id: str) -> bool:
    """Whether there is a log, and every line of it names the job."""
    records = [line for line in lines(invocation) if "_aws" not in line]
    return bool(records) and all(record.get("job_id") == job_id for record in records)


# ---------------------------------------------------------------- the stage


def build(project: BakedProject) -> BakedProject:
    """`sam build`, once for each distinct source."""
    SAM.find().build(project.path, runtime="python3.13")
    return project


def emulated(project: BakedProject, hosts: ExitStack) -> Emulator:
    """The emulated AWS of a project, open to containers, and the file that leads there."""
    template = Template.load(project.path / "template.yaml", PARAMETERS)
    aws = hosts.enter_context(Emulator(template, host=containers.bridge_address()))
    aws.write_sam_environment(project.path / ".local" / "env.json")
    return aws


@pytest.fixture(scope="module")
def image() -> RuntimeImage:
    """What stands for Lambda."""
    return containers.runtime_image("python3.13")


@pytest.fixture(scope="module")
def house(baked: Oven, image: RuntimeImage) -> Iterator[Stage]:
    """The default project, up."""
    project = build(baked.fresh(worker="queue", auth="iam"))
    with ExitStack() as hosts:
        aws = emulated(project, hosts)
        environment = aws.sam_environment()["WorkerFunction"]  # all that any function has
        up = hosts.enter_context(
            SAM.find().start_lambda(project.path, env_vars=environment, image=image)
        )
        yield Stage(project, aws, image, up)


@pytest.fixture
def stage(house: Stage) -> Stage:
    """The default project on an AWS account where nothing has happened yet."""
    urllib.request.urlopen(f"{house.aws.url}/moto-api/reset", data=b"").close()
    house.aws.create()
    sqs, sns = house.aws.client("sqs"), house.aws.client("sns")
    sqs.create_queue(QueueName="Subscriber")
    sns.subscribe(
        TopicArn=house.aws.template.arn("JobEventsTopic"),
        Protocol="sqs",
        Endpoint="arn:aws:sqs:us-east-1:000000000000:Subscriber",
        Attributes={"RawMessageDelivery": "true"},
    )
    return house


# ---------------------------------------------------------------- events/


def test_the_events_tell_the_story_of_one_job(stage: Stage) -> None:
    assert {path.stem for path in (stage.project.path / "events").iterdir()} == EVENTS.keys()

    def play(name: str, status: int) -> tuple[dict[str, str], Any]:
        done = stage.invoke(EVENTS[name], stage.event(name))
        headers, _, job = answer(done, status)
        assert counted(done) == {"create_job": ["JobAccepted"], "cancel_job": ["JobCancelled"]}.get(
            name, []
        )
        return headers, job

    headers, job = play("create_job", 202)
    job_id = job["job_id"]
    assert headers["location"] == f"/jobs/{job_id}"
    assert int(headers["retry-after"]) > 0
    assert "idempotent-replayed" not in headers
    assert (job["status"], job["attempts"]) == ("queued", 0)
    stored = stage.item(job_id)
    assert (stored["status"], stored["owner"]) == ("queued", OWNER)
    assert json.loads(stored["payload"]) == {"site": "docs.example", "pages": 3}
    reference = json.loads(stage.receive("JobsQueue")["body"])
    assert (reference.pop("job_id"), list(reference)) == (job_id, ["ticket"])

    assert play("get_job", 200)[1] == job
    assert play("cancel_job", 202)[1]["status"] == "cancelled"
    assert stage.item(job_id)["status"] == "cancelled"
    assert play("retry_job", 202)[1]["status"] == "queued"
    assert stage.waiting("JobsQueue")[0] == 1

    early = stage.invoke("WorkerFunction", stage.event("worker"))  # of before the retry
    assert (early.payload, counted(early)) == ({"batchItemFailures": []}, [])
    worked, _ = stage.deliver("WorkerFunction", "JobsQueue")
    assert (worked.exit_code, worked.payload) == (0, {"batchItemFailures": []}), worked
    assert counted(worked) == ["JobCompleted"]
    assert logged(worked, job_id)
    completed = stage.item(job_id)
    assert (completed["status"], completed["attempts"]) == ("completed", "1")

    settled = stage.invoke("DeadLetterFunction", stage.event("dead_letter"))
    assert (settled.exit_code, settled.payload) == (0, {"batchItemFailures": []}), settled
    assert counted(settled) == []
    assert stage.item(job_id) == completed
    assert stage.announced() == [(job_id, "completed")]


# ---------------------------------------------------------------- accepting


def test_a_replayed_key_gives_the_same_job_and_the_work_of_one(stage: Stage) -> None:
    _, _, first = answer(stage.ask(stage.request("create_job")), 202)

    replayed = stage.invoke("ApiFunction", stage.event("create_job"))

    headers, _, job = answer(replayed, 202)
    assert headers["idempotent-replayed"] == "true"
    assert (job["job_id"], job["created_at"]) == (first["job_id"], first["created_at"])
    assert counted(replayed) == []
    while stage.waiting("JobsQueue")[0]:
        assert stage.deliver("WorkerFunction", "JobsQueue", by=stage.up)[1] == []
    assert (stage.item(first["job_id"])["status"], stage.item(first["job_id"])["attempts"]) == (
        "completed",
        "1",
    )
    assert stage.announced() == [(first["job_id"], "completed")]


def test_a_key_with_another_payload_is_refused(stage: Stage) -> None:
    answer(stage.ask(stage.request("create_job")), 202)
    before = stage.waiting("JobsQueue")

    other = stage.request("create_job", body={"site": "docs.example", "pages": 4})
    _, problem, _ = answer(stage.invoke("ApiFunction", other), 422)

    assert problem == "urn:problem:idempotency-key-reused"
    assert stage.waiting("JobsQueue") == before


def test_what_is_refused_leaves_nothing(stage: Stage) -> None:
    broken = {**stage.request("create_job"), "body": "{"}
    _, problem, _ = answer(stage.ask(broken), 400)
    assert problem == "urn:problem:invalid-json"

    invalid = stage.request("create_job", body={"site": "docs.example", "pages": 0})
    _, problem, body = answer(stage.ask(invalid), 422)
    assert problem == "urn:problem:invalid-payload"
    assert [error["field"] for error in body["errors"]] == ["pages"]

    assert stage.waiting("JobsQueue") == (0, 0)
    assert stage.aws.client("dynamodb").scan(TableName="JobsTable")["Count"] == 0
    # And the key is still free.
    answer(stage.ask(stage.request("create_job")), 202)


# ---------------------------------------------------------------- working


def test_a_delivered_job_completes_and_is_never_run_again(stage: Stage) -> None:
    job_id = stage.accept(pages=2)
    message = {"Records": [stage.receive("JobsQueue")]}

    done = stage.invoke("WorkerFunction", message)

    assert (done.exit_code, done.payload) == (0, {"batchItemFailures": []}), done
    assert counted(done) == ["JobCompleted"]
    assert logged(done, job_id)
    completed = stage.item(job_id)
    assert (completed["status"], completed["attempts"]) == ("completed", "1")
    assert {"site": "docs.example", "pages": 2}.items() <= json.loads(completed["result"]).items()
    assert stage.announced() == [(job_id, "completed")]

    again = stage.invoke("WorkerFunction", message)

    assert (again.exit_code, again.payload) == (0, {"batchItemFailures": []}), again
    assert counted(again) == []
    assert stage.item(job_id) == completed
    assert stage.announced() == []


def test_a_failed_attempt_is_followed_by_another(stage: Stage) -> None:
    job_id = stage.accept(failure="transient")

    _, stay = stage.deliver("WorkerFunction", "JobsQueue", by=stage.up)
    assert len(stay) == 1
    assert (stage.item(job_id)["status"], stage.waiting("JobsQueue")) == ("queued", (1, 0))
    assert stage.announced() == []

    done, stay = stage.deliver("WorkerFunction", "JobsQueue")
    assert stay == []
    assert counted(done) == ["JobCompleted"]
    job = stage.item(job_id)
    assert (job["status"], job["attempts"]) == ("completed", "2")
    assert "error" not in job
    assert stage.waiting("JobsQueue") == (0, 0)
    assert stage.announced() == [(job_id, "completed")]


def test_a_poisonous_job_is_dead_lettered_and_fails(stage: Stage) -> None:
    job_id = stage.accept(failure="poison")
    for _ in range(int(PARAMETERS["MaxAttempts"])):
        assert len(stage.deliver("WorkerFunction", "JobsQueue", by=stage.up)[1]) == 1
    # SQS redrives on the receive after the last one.
    url = stage.aws.queue_url("JobsQueue")
    assert "Messages" not in stage.aws.client("sqs").receive_message(QueueUrl=url)
    assert stage.waiting("DeadLetterQueue") == (1, 0)

    settled, stay = stage.deliver("DeadLetterFunction", "DeadLetterQueue")

    assert stay == []
    assert counted(settled) == ["JobDeadLettered"]
    assert logged(settled, job_id)
    job = stage.item(job_id)
    assert (job["status"], job["attempts"]) == ("failed", "2")
    assert job["error"]["type"]["S"] == "ConnectionError"
    assert stage.waiting("DeadLetterQueue") == (0, 0)
    assert stage.announced() == [(job_id, "failed")]


def test_a_permanent_failure_is_final(stage: Stage) -> None:
    job_id = stage.accept(failure="permanent")

    failed, stay = stage.deliver("WorkerFunction", "JobsQueue")

    assert stay == []
    assert counted(failed) == ["JobFailed"]
    assert (stage.item(job_id)["status"], stage.item(job_id)["attempts"]) == ("failed", "1")
    assert stage.waiting("JobsQueue") == (0, 0)
    assert stage.announced() == [(job_id, "failed")]


def test_a_cancelled_job_is_not_run_until_it_is_retried(stage: Stage) -> None:
    job_id = stage.accept()
    cancelled = stage.ask(stage.request("cancel_job", job_id=job_id))
    assert answer(cancelled, 202)[2]["status"] == "cancelled"

    dropped, stay = stage.deliver("WorkerFunction", "JobsQueue")

    assert (stay, counted(dropped)) == ([], [])
    assert (stage.item(job_id)["status"], stage.item(job_id)["attempts"]) == ("cancelled", "0")
    assert stage.announced() == [(job_id, "cancelled")]

    retried = stage.ask(stage.request("retry_job", job_id=job_id))
    assert answer(retried, 202)[2]["status"] == "queued"
    assert stage.deliver("WorkerFunction", "JobsQueue", by=stage.up)[1] == []
    assert (stage.item(job_id)["status"], stage.item(job_id)["attempts"]) == ("completed", "1")
    assert stage.announced() == [(job_id, "completed")]

    for name, problem in (("cancel_job", "job-finished"), ("retry_job", "job-not-retryable")):
        late = stage.ask(stage.request(name, job_id=job_id))
        assert answer(late, 409)[1] == f"urn:problem:{problem}"


def test_another_caller_does_not_see_the_job(stage: Stage) -> None:
    job_id = stage.accept()
    other = {"job_id": job_id, "caller": "arn:aws:iam::000000000000:user/other"}

    seen = stage.invoke("ApiFunction", stage.request("get_job", **other))

    assert answer(seen, 404)[1] == "urn:problem:job-not-found"
    for name in ("cancel_job", "retry_job"):
        touched = stage.ask(stage.request(name, **other))
        assert answer(touched, 404)[1] == "urn:problem:job-not-found"
    assert stage.item(job_id)["status"] == "queued"


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("function", "variable"),
    [
        ("ApiFunction", "JOBS_QUEUE_URL"),
        ("WorkerFunction", "MAX_ATTEMPTS"),
        ("DeadLetterFunction", "JOBS_TABLE"),
    ],
)
def test_a_missing_variable_is_named(function: str, variable: str, stage: Stage) -> None:
    environment = stage.aws.sam_environment()[function]

    done = stage.invoke(function, {}, env_vars={**environment, variable: ""})

    assert done.payload["errorType"] == "SettingsError", done
    assert done.payload["errorMessage"].startswith(f"{variable} is not set."), done


@pytest.mark.parametrize(
    ("function", "queue"),
    [("WorkerFunction", "JobsQueue"), ("DeadLetterFunction", "DeadLetterQueue")],
)
def test_what_cannot_be_handled_is_kept_and_named(function: str, queue: str, stage: Stage) -> None:
    newer = stage.accept()
    stage.aws.client("dynamodb").update_item(
        TableName="JobsTable",
        Key={"job_id": {"S": newer}},
        UpdateExpression="SET #s = :new",
        ExpressionAttributeNames={"#s": "schema"},
        ExpressionAttributeValues={":new": {"N": "1000"}},
    )
    stage.aws.client("sqs").purge_queue(QueueUrl=stage.aws.queue_url("JobsQueue"))
    unknown = "00000000-0000-4000-8000-000000000000"
    bodies = ["<xml/>", json.dumps({"job_id": unknown}), json.dumps({"job_id": newer})]
    for body in bodies:
        stage.aws.client("sqs").send_message(QueueUrl=stage.aws.queue_url(queue), MessageBody=body)
    records = [stage.receive(queue) for _ in bodies]
    before = stage.item(newer)

    done = stage.invoke(function, {"Records": records})

    assert done.exit_code == 0, done
    kept = [failure["itemIdentifier"] for failure in done.payload["batchItemFailures"]]
    assert kept == [record["messageId"] for record in records], done
    errors = {
        line["message_id"]: line["exception_name"]
        for line in lines(done)
        if line.get("level") == "ERROR" and "message_id" in line
    }
    assert [errors[message] for message in kept] == ["NotAReference", "LookupError", "NewerSchema"]
    assert stage.item(newer) == before
    assert stage.waiting(queue) == (0, len(bodies))
    assert counted(done) == []


def test_a_job_of_a_newer_schema_is_left_to_newer_code(stage: Stage) -> None:
    job_id = stage.accept()
    stage.aws.client("dynamodb").update_item(
        TableName="JobsTable",
        Key={"job_id": {"S": job_id}},
        UpdateExpression="SET #s = :new",
        ExpressionAttributeNames={"#s": "schema"},
        ExpressionAttributeValues={":new": {"N": "1000"}},
    )

    headers, problem, _ = answer(stage.ask(stage.request("get_job", job_id=job_id)), 503)

    assert problem == "urn:problem:service-unavailable"
    assert int(headers["retry-after"]) > 0


# ---------------------------------------------------------------- the other ways to invoke


@pytest.mark.parametrize(("auth", "owner"), [("jwt", "local"), ("none", "anonymous")])
def test_the_caller_is_known_with_every_authorizer(
    auth: str, owner: str, baked: Oven, image: RuntimeImage
) -> None:
    project = build(baked.fresh(worker="queue", auth=auth))
    with ExitStack() as hosts:
        stage = Stage(project, emulated(project, hosts), image)

        created = stage.invoke("ApiFunction", stage.event("create_job"))

        _, _, job = answer(created, 202)
        assert stage.item(job["job_id"])["owner"] == owner
        seen = stage.invoke("ApiFunction", stage.event("get_job"))
        assert answer(seen, 200)[2] == job
        if auth == "none":
            api = hosts.enter_context(SAM.find().start_api(project.path, image=image))
            start_api(api, stage)


def start_api(url: str, stage: Stage) -> None:
    """`sam local start-api`, which knows no authorizer, answers as API Gateway would."""
    request = urllib.request.Request(
        f"{url}/jobs",
        data=b'{"site": "docs.example"}',
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.status == 202
        job = json.load(response)
        location = response.headers["Location"]
    assert location == f"/jobs/{job['job_id']}"
    assert stage.item(job["job_id"])["status"] == "queued"
    with urllib.request.urlopen(f"{url}{location}", timeout=60) as response:
        assert (response.status, json.load(response)) == (200, job)
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"{url}/jobs/00000000-0000-4000-8000-000000000000", timeout=60)
    assert missing.value.code == 404
    assert missing.value.headers["Content-Type"] == "application/problem+json"


def test_a_bare_command_reaches_the_laptop_stack(house: Stage, tmp_path: Path) -> None:
    """What the README says: `python -m local --containers`, then `sam local invoke` alone.

    Only the options that stand for a registry are added, where there is none.
    """
    project = Path(shutil.copytree(house.project.path, tmp_path / "jobs-api"))
    stack = subprocess.Popen(
        [sys.executable, "-m", "local", "--containers", "--port", "0"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        state = project / ".local" / f"stack-{stack.pid}.json"
        until(lambda: state.exists() or stack.poll() is not None, 60)
        options = ["--skip-pull-image"]
        if house.image.origin == "stand-in":
            options += ["--invoke-image", house.image.name]
        done = SAM.find().run(
            *("local", "invoke", "ApiFunction", "-e", "events/create_job.json", *options),
            cwd=project,
            local=True,
        )
        headers, _, job = answer(Invocation("ApiFunction", 0, done.stdout, done.stderr), 202)
        url = json.loads(state.read_text())["url"]
        deadline = time.monotonic() + 60
        while job["status"] != "completed" and time.monotonic() < deadline:
            with urllib.request.urlopen(url + headers["location"], timeout=60) as response:
                job = json.load(response)
    finally:
        stack.terminate()
        output, _ = stack.communicate(timeout=60)
    assert job["status"] == "completed", output


# ---------------------------------------------------------------- the artifact


def test_one_small_artifact_serves_every_function(house: Stage) -> None:
    built = house.project.path / ".aws-sam" / "build"
    artifacts = {name: contents(built / name) for name in set(EVENTS.values())}
    files = artifacts["ApiFunction"]
    assert all(files == other for other in artifacts.values())

    archive = BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    assert len(archive.getvalue()) <= 3_000_000

    parts = {name.split("/")[0] for name in files}
    packages = {name.split("-")[0] for name in parts if name.endswith(".dist-info")}
    pinned = {
        line.split("==")[0].replace("-", "_")
        for line in house.project.read("src/requirements.txt").splitlines()
        if "==" in line
    }
    assert packages == pinned  # boto3 comes with the runtime
    assert contents(house.project.path / "src").items() <= files.items()
    assert parts & {"boto3", "botocore", "tests", "local", "events", "docs"} == set()
    assert [name for name in files if "__pycache__" in name or name.endswith(".pyc")] == []


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's content by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
