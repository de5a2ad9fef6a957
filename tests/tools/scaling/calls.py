"""Notes what one job asks of AWS, and prints a line of JSON.

tests/scaling/test_scaling.py lays this file among the unit tests of a generated project.
"""

import importlib.util
import json
import os
from collections import Counter
from typing import Any

import pytest
import work
import worker
from botocore.client import BaseClient
from botocore.httpsession import URLLib3Session

from tests import samples
from tests.unit import client, given

DURABLE = importlib.util.find_spec("durable_context") is not None


def size(value: Any) -> int:
    """Return the bytes of an attribute's value as DynamoDB counts them."""
    ((kind, content),) = value.items()
    if kind == "M":
        return 3 + sum(len(name) + 1 + size(part) for name, part in content.items())
    if kind == "L":
        return 3 + sum(1 + size(part) for part in content)
    return {"S": len(str(content).encode()), "N": len(str(content)) // 2 + 1}.get(kind, 1)


def test_calls_of_a_job(receiver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Post a job whose work is one step that does nothing, run it, and ask for it once.

    CALLS_OF_THE_SAMPLE in the environment leaves the work as it is.
    """
    calls: Counter[str] = Counter()
    sizes: list[int] = []
    requests: list[Any] = []
    send, call = URLLib3Session.send, BaseClient._make_api_call

    def noted(self: Any, operation: str, parameters: Any) -> Any:
        """Note a call of the job with its parameters; bench.py makes it again."""
        requests.append([self.meta.service_model.service_name, operation, parameters])
        return call(self, operation, parameters)

    def counted(self: Any, request: Any) -> Any:
        answer = send(self, request)
        name = str(request.headers.get("X-Amz-Target", b"").decode()).rpartition(".")[2]
        body = json.loads(request.body) if name else {}
        what = name or request.url.rpartition("/")[2] or "Publish"  # SNS tells it in the body alone
        calls[f"{what} {body.get('TableName', '')}".strip()] += 1
        if body.get("TableName") == "JobsTable" and name in ("PutItem", "UpdateItem"):
            item = json.loads(answer.content).get("Attributes") or body["Item"]
            sizes.append(sum(len(attribute) + size(value) for attribute, value in item.items()))
        return answer

    def run(payload: Any, *contexts: Any) -> dict[str, Any]:
        return contexts[0].step(lambda _: {}, name="work") if DURABLE else {}

    def count(action: Any) -> dict[str, int]:
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(BaseClient, "_make_api_call", noted)
            action()
        return dict(calls)

    if "CALLS_OF_THE_SAMPLE" not in os.environ:
        monkeypatch.setattr(work, "run", run)
    monkeypatch.setattr(URLLib3Session, "send", counted)
    job_ids: list[str] = []
    told: dict[str, Any] = {
        "post": count(lambda: job_ids.append(client.post(samples.HAPPY).body["job_id"]))
    }
    engine_of = run_durably if DURABLE else run_queued
    told |= engine_of(given.stored(job_ids[0]), receiver, monkeypatch, count)
    made = [*requests]
    told["get"] = count(lambda: client.get(job_ids[0]))
    assert given.stored(job_ids[0]).status == "completed"
    data = len(json.dumps(samples.HAPPY)) + len("{}")
    told |= {"items": sizes, "data": data, "requests": made}
    print("CALLS", json.dumps(told, default=str))


def run_queued(job: Any, receiver: Any, monkeypatch: pytest.MonkeyPatch, count: Any) -> Any:
    """Deliver the job's message to the worker; receive and delete are the mapping's."""
    from tests.unit.queues import Queue

    (reference,) = receiver.handed_over()
    queue, told = Queue("JobsQueue"), {}
    monkeypatch.setattr(worker, "QUEUE_URL", queue.url)
    queue.send(json.dumps(reference))

    def handler(event: Any, context: Any) -> Any:
        answers: list[Any] = []
        told["run"] = count(lambda: answers.append(worker.handler(event, context)))
        return answers[0]

    assert queue.deliver(handler) == 0
    return told


def run_durably(job: Any, receiver: Any, monkeypatch: pytest.MonkeyPatch, count: Any) -> Any:
    """Run the job's execution; tell also its operations and how often it saved some."""
    from aws_durable_execution_sdk_python_testing.checkpoint.processor import CheckpointProcessor

    from tests.unit.executions import executions

    saved: list[Any] = []
    process = CheckpointProcessor.process_checkpoint

    def checkpoint(self: Any, *arguments: Any) -> Any:
        saved.append(arguments)
        return process(self, *arguments)

    monkeypatch.setattr(CheckpointProcessor, "process_checkpoint", checkpoint)
    with executions() as running:
        ran: list[Any] = []

        def run() -> None:
            ran.append(running.start({}, job=job))
            ran[0].result()

        told = {"run": count(run), "checkpoints": len(saved)}
        return {**told, "operations": len(ran[0].operations)}
