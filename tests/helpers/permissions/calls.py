"""Every call to AWS that the functions make, noted while jobs take every way that there is.

The laptop stack notes them (LOCAL_CALLS, see local/bootstrap.py). What Lambda itself does with a
function's role is deduced from what was seen to happen: it polls queues, and writes dead letters,
logs and traces.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from local.stack import Stack
from tests.helpers.baked import BakedProject
from tests.helpers.permissions.evaluator import ACCOUNT
from tests.helpers.support.sam import REGION

MAPPING = "Lambda: the event source mapping"
DEAD_LETTERS = "Lambda: the dead letters of asynchronous invocations"
LOGS = "Lambda: the logs"
TRACES = "Lambda: the traces"

_OTHER_ACTIONS = {
    "lambda:Invoke": "lambda:InvokeFunction",
    "sns:PublishBatch": "sns:Publish",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
"""IAM's names for operations that have another one; those that move several items are not here,
so that whoever uses one must say which actions it takes."""

_SEVERAL = {"ExecuteTransaction", "TransactGetItems", "TransactWriteItems", "BatchExecuteStatement"}

# The emulator's ARNs do not name the function, AWS's do.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_awslambda.html
_EXECUTION = "WorkerFunction:1/durable-execution/job/1"

PATIENCE = 40.0

LARGE = """
    if payload["customer"] == "large":
        for n in range(24):
            context.step(lambda _: "x" * 230_000, name=f"part-{n}")
        context.wait(Duration.from_seconds(1), name="pause")
"""


@dataclass(frozen=True, order=True)
class Call:
    """A function asks AWS for something; `place` is the code that does."""

    function: str
    action: str
    resource: str
    place: str


def record(project: BakedProject, worker: str, folder: Path) -> list[Call]:
    """Run jobs on the laptop stack and return the calls that were made, each once.

    The project is changed on the way: it must be a fresh one.
    """
    notes = folder / "calls.jsonl"
    notes.touch()
    parameters = {"RetryBaseSeconds": "0", "MaxAttempts": "2"}
    if worker == "queue":
        parameters |= {"WorkerTimeout": "10", "BatchSize": "2", "BatchWindow": "1"}
    _prepare(project, worker)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_CALLS", str(notes))
        with Stack(project.path, parameters=parameters) as stack:
            flow = Flow(stack, notes)
            {"queue": _queue, "durable": _durable}[worker](flow)
            lambdas = set(_by_lambda(stack))
    return sorted({*_noted(notes), *lambdas})


class Flow:
    """Jobs on a running stack, and what has been noted so far."""

    def __init__(self, stack: Stack, notes: Path) -> None:
        self.stack = stack
        self.http = httpx.Client(base_url=stack.url, timeout=35)
        self._notes = notes

    def post(self, key: str | None = None, **payload: Any) -> httpx.Response:
        """Send a job."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.http.post("/jobs", json=payload, headers=headers)

    def run(self, until: str, **payload: Any) -> str:
        """Send a job, wait for a status and return the id."""
        job_id = str(self.post(**payload).json()["job_id"])
        self.wait(job_id, until)
        return job_id

    def ask(self, job_id: str, what: str, status: int = 202, **body: Any) -> None:
        """Ask for something to be done to a job."""
        answer = self.http.post(f"/jobs/{job_id}/{what}", json=body)
        assert answer.status_code == status, answer.text

    def wait(self, job_id: str, status: str) -> None:
        """Wait until a job has a status."""
        self.until(lambda: self.http.get(f"/jobs/{job_id}").json()["status"] == status, status)

    def until_noted(self, function: str, action: str, times: int = 1) -> None:
        """Wait until a function has made a call so many times."""
        self.until(lambda: self.times(function, action) >= times, f"{function} {action}")

    def times(self, function: str, action: str) -> int:
        """How often a function has made a call."""
        return sum((c.function, c.action) == (function, action) for c in _noted(self._notes))

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
            time.sleep(0.05)

    @contextmanager
    def without(self, topic: str) -> Iterator[None]:
        """Let publishing to a topic fail."""
        sns, arn = self.stack.aws.client("sns"), self.stack.template.arn(topic)
        sns.delete_topic(TopicArn=arn)
        yield
        sns.create_topic(Name=topic)

    @contextmanager
    def no_executions(self) -> Iterator[None]:
        """Let the start of an execution end in an error that leaves open whether it began."""
        durable = self.stack.durable
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable, "emulator_url", "http://127.0.0.1:9")
            yield


def _queue(flow: Flow) -> None:
    """Jobs of the queue's sample, each for calls that the others do not make."""
    site = "docs.example"
    done = flow.run("completed", site=site)
    sqs, url = flow.stack.aws.client("sqs"), flow.stack.aws.queue_url("JobsQueue")
    publishes = flow.times("WorkerFunction", "dynamodb:PutItem")
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"job_id": done}))  # delivered twice
    flow.until_noted("WorkerFunction", "dynamodb:PutItem", publishes + 1)
    flow.run("completed", site=site, failure="transient")
    failed = flow.run("failed", site=site, failure="permanent")
    flow.ask(failed, "retry")
    flow.run("failed", site=site, failure="poison")
    slow = flow.run("running", site=site, pages=100, seconds_per_page=0.5)
    flow.until(lambda: "progress" in flow.http.get(f"/jobs/{slow}").json(), "progress")
    flow.ask(slow, "cancel")
    flow.wait(slow, "cancelled")
    with flow.stack.paused("WorkerFunction"):
        queued = str(flow.post("a-key", site=site).json()["job_id"])
        assert flow.post("a-key", site=site).headers["idempotent-replayed"] == "true"
        flow.ask(queued, "cancel")
    with flow.stack.paused("WorkerFunction"):  # in one batch, with time for one
        for _ in range(3):
            flow.post(site=site, pages=1, seconds_per_page=4)
    flow.until_noted("WorkerFunction", "sqs:SendMessage")
    with flow.without("JobEventsTopic"):  # an effect that fails is forgotten
        flow.run("completed", site=site)
        flow.until_noted("WorkerFunction", "dynamodb:DeleteItem")
        flow.run("failed", site=site, failure="poison")
        flow.until_noted("DeadLetterFunction", "dynamodb:DeleteItem")
    sqs.delete_queue(QueueUrl=url)  # a job that cannot be handed over is withdrawn
    assert flow.post(site=site).status_code == httpx.codes.SERVICE_UNAVAILABLE


def _prepare(project: BakedProject, worker: str) -> None:
    """Have calls made every time that chance decides about otherwise."""
    edits = [("src/jobs/context.py", "REFRESH_SECONDS = 1.0", "REFRESH_SECONDS = 0.0")]
    if worker == "durable":  # what does not fit into an event (5 MB) has to be fetched
        first = "    trial = context.step("
        edits.append(("src/work.py", first, f"{LARGE}\n{first}"))
    for name, old, new in edits:
        source = project.read(name)
        assert source.count(old) == 1, f"{name} has changed: {old}"
        (project.path / name).write_text(source.replace(old, new), encoding="utf-8")


def _durable(flow: Flow) -> None:
    """Jobs of the durable sample, each for calls that the others do not make."""
    who = "ada@example.com"
    soon: dict[str, Any] = {"customer": who, "delay_seconds": 0}
    flow.run("completed", **soon, failure="transient")
    failed = flow.run("failed", **soon, failure="permanent")
    flow.ask(failed, "retry")
    flow.run("failed", **soon, failure="poison")
    slow = flow.run("waiting", customer=who, delay_seconds=600)
    flow.ask(slow, "cancel")
    asked = flow.run("waiting", **soon, approval=True)
    flow.ask(asked, "callback", 200, approved=True)
    flow.wait(asked, "completed")
    flow.run("completed", customer="large", delay_seconds=0)
    with flow.no_executions():  # whether the job was handed over is not known, so it stays
        for _ in range(2):
            assert flow.post("a-key", **soon).status_code == httpx.codes.SERVICE_UNAVAILABLE
    (queued,) = [job["job_id"] for job in flow.stack.jobs() if job["status"] == "queued"]
    flow.ask(queued, "cancel")
    with flow.without("FollowUpTopic"):  # an effect that fails is forgotten
        flow.run("failed", **soon)
        flow.until_noted("WorkerFunction", "dynamodb:DeleteItem")
    with flow.without("JobEventsTopic"):
        stopped = flow.run("waiting", customer=who, delay_seconds=600)
        _stop(flow.stack, stopped)
        flow.wait(stopped, "failed")
        flow.until_noted("DeadLetterFunction", "dynamodb:DeleteItem")
    worker = flow.stack.runners.pop("WorkerFunction")  # Lambda knows no such function
    assert flow.post(**soon).status_code == httpx.codes.SERVICE_UNAVAILABLE
    flow.stack.runners["WorkerFunction"] = worker


def _stop(stack: Stack, job_id: str) -> None:
    """Stop a job's execution, as an operator does."""
    (job,) = [job for job in stack.jobs() if job["job_id"] == job_id]
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("lambda", REGION, endpoint_url=stack.durable.url, **keys)
    client.stop_durable_execution(DurableExecutionArn=job["execution"])


def _noted(notes: Path) -> Iterator[Call]:
    for line in notes.read_text(encoding="utf-8").splitlines():
        note = json.loads(line)
        action = f"{note['service']}:{note['operation']}"
        assert note["operation"] not in _SEVERAL, f"{action}: say which actions IAM wants for it"
        resource = _resource(action, note["parameters"])
        action = _OTHER_ACTIONS.get(action, action)
        yield Call(note["function"], action, resource, note["place"] or "the durable SDK")


def _resource(action: str, parameters: dict[str, str]) -> str:
    """The ARN of what a call is about. Raises ValueError for parameters unknown here."""
    match parameters:
        case {"TableName": name}:
            return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
        case {"QueueUrl": url}:
            return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{url.rpartition('/')[2]}"
        case {"TopicArn": arn}:
            return arn
        case {"FunctionName": name}:
            return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
        case {"DurableExecutionArn": _} | {"CallbackId": _}:
            return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{_EXECUTION}"
    raise ValueError(f"{action}: what is it about? {sorted(parameters)}")


def _by_lambda(stack: Stack) -> Iterator[Call]:
    """What Lambda did with the roles of the functions that ran."""
    ran = {
        (invocation.function, invocation.source.partition(" ")[0])
        for invocation in stack.invocations
    }
    for poller in stack.pollers:
        function, queue = poller.mapping.function, poller.mapping.queue
        if (function, queue) in ran:
            for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"):
                yield Call(function, f"sqs:{action}", stack.aws.queue_arn(queue), MAPPING)
    for name, durable in stack.durable.functions.items() if stack.durable else ():
        queue = durable.dead_letters.rpartition(":")[2]
        if any(source == queue for _, source in ran):
            yield Call(name, "sqs:SendMessage", durable.dead_letters, DEAD_LETTERS)
    for function in sorted({function for function, _ in ran}):
        group = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:FunctionLogGroup"
        yield Call(function, "logs:CreateLogStream", f"{group}:log-stream:1", LOGS)
        yield Call(function, "logs:PutLogEvents", f"{group}:log-stream:1", LOGS)
        for action in ("PutTraceSegments", "PutTelemetryRecords"):
            yield Call(function, f"xray:{action}", "*", TRACES)
