"""Durable executions as a campaign needs them: parameters, fault cases, repeated deliveries."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

from local.emulator import CREDENTIALS
from local.stack import Stack
from local.template import REGION
from tests.tools.prove.durable.points import CALLS
from tests.tools.prove.engine import Engine
from tests.tools.prove.faults import (
    API,
    BROKEN,
    DEAD_LETTERS,
    KILLED_BEFORE,
    WORKER,
    Fault,
    FaultCase,
    Scenario,
)

_ACCESS = {
    "region_name": REGION,
    "aws_access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
    "aws_secret_access_key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
}

_BROKEN_LATER = Fault(WORKER, "import again", BROKEN)
_FAILED = frozenset({"failed"})

_CASES = (
    *(FaultCase("clocks a minute apart", "asks", clocks=(0, off)) for off in (60, -60)),
    *(FaultCase("clocks a minute apart", "takes longer", clocks=(off, 0)) for off in (60, -60)),
    FaultCase(
        "crashes outside of steps, once", "completes", (Fault(WORKER, "run", KILLED_BEFORE),)
    ),
    FaultCase("crashes at every attempt", "crashes", (Fault(WORKER, "run", KILLED_BEFORE, 100),)),
    FaultCase("cannot be imported", "never starts", (Fault(WORKER, "import", BROKEN),)),
    FaultCase("cannot be imported after the wait", "is given up", (_BROKEN_LATER,)),
    FaultCase("two deliveries at once", "completes", copies="send"),
    FaultCase("delivery during the work", "takes long", copies="claim"),
    FaultCase("delivery during the wait", "completes", copies="wait"),
    FaultCase("delivery after the end", "completes", copies="complete"),
    FaultCase("delivery after the end", "fails for good", copies="fail"),
    FaultCase("old deliveries after a retry, newest first", "is retried", copies="retry"),
    FaultCase("old deliveries after a retry, newest first", "is retried", copies="complete"),
)


def deliver_again(stack: Stack, messages: list[str]) -> None:
    """Start a job's executions twice more, under the names that they have."""
    lambda_ = boto3.client("lambda", endpoint_url=stack.durable.url, **_ACCESS)
    references = [json.loads(message) for message in messages]
    executions = [
        (name, reference)
        for reference in references * 2
        for (_, name), execution in list(stack.durable.executions.items())
        if json.loads(execution.payload) == reference
    ]
    for name, reference in executions:
        lambda_.invoke(
            FunctionName="WorkerFunction:live",
            InvocationType="Event",
            DurableExecutionName=name,
            Payload=json.dumps(reference, sort_keys=True),
        )


def busy(stack: Stack) -> bool:
    """Whether any execution of the worker is under way."""
    executions = list(stack.durable.executions.values())
    return any(e.status == "RUNNING" and e.function.name == WORKER for e in executions)


def send_floor(stack: Stack, jobs: int, callers: int) -> None:
    """Send the AWS calls of the sample's jobs without running a function.

    Each job: accept, claim, wait, resume, one side effect, complete, announce. Executions are left
    out: their emulator calls a function.
    """
    dynamodb, topic = stack.aws.client("dynamodb"), stack.template.arn("JobEventsTopic")

    def run(number: int) -> None:
        key, record = {"job_id": {"S": f"floor {number}"}}, {"id": {"S": f"floor {number}"}}
        change: dict[str, Any] = {
            "UpdateExpression": "SET a = :a",
            "ExpressionAttributeValues": {":a": {"S": "x"}},
        }
        dynamodb.put_item(TableName="JobsTable", Item={**key, "padding": {"S": "x" * 500}})
        for _ in ("claim", "wait", "resume", "complete"):
            dynamodb.update_item(TableName="JobsTable", Key=key, **change)
        for _ in ("effect", "announcement"):
            dynamodb.put_item(TableName="IdempotencyTable", Item=record)
            dynamodb.update_item(TableName="IdempotencyTable", Key=record, **change)
        stack.aws.client("sns").publish(TopicArn=topic, Message="x" * 500)

    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(run, range(jobs)))


ENGINE = Engine(
    name="durable",
    calls=CALLS,
    parameters={"WorkerTimeout": "10", "MaxAttempts": "5", "RetryBaseSeconds": "1"},
    visibility_seconds={"DeadLetterQueue": 8},  # instead of 180 s
    waits="an execution is invoked again 5 s after a crash, by the emulator;"
    " MaxAttempts crashes at a step, or in a row outside of steps, fail the job;"
    " a failed import fails it at once",
    given_up="AttemptLost",
    # Not the worker: an execution is the only one that writes to its job, cancellations aside.
    rivals=frozenset({API, DEAD_LETTERS}),
    scenarios={
        "crashes": Scenario({}, _FAILED, "WorkerCrashed"),
        "never starts": Scenario({}, _FAILED, "NeverStarted"),
        "is given up": Scenario({}, _FAILED, "WorkerNotImported"),
        "asks": Scenario(
            {"asks": True}, frozenset({"completed"}), cue=("call", "wait"), action="callback"
        ),
    },
    cases=_CASES,
    deliver_again=deliver_again,
    busy=busy,
    send_floor=send_floor,
)
