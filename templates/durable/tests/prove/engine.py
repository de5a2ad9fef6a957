"""What of the campaign depends on the engine: here, durable executions."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

from local.emulator import CREDENTIALS
from local.stack import Stack
from local.template import REGION
from tests.prove.faults import API, DEAD_LETTERS, Card, Scenario

PARAMETERS = {"WorkerTimeout": "10", "MaxAttempts": "5", "RetryBaseSeconds": "1"}
VISIBILITY_SECONDS = {"DeadLetterQueue": 8}
"""Instead of 180, so that a proof takes minutes."""
WAITS = "an execution is invoked again 5 s after a crash, by the emulator"
GIVEN_UP = "ExecutionFailed"
"""What the error of a job says whose invocations all ended without a word."""

RIVALS = frozenset({API, DEAD_LETTERS})
"""Functions whose conditional writes may be refused: others may write to the job at that moment.

The worker's are not: an execution is the only one that writes to its job, cancellations aside.
"""

SCENARIOS = {
    "asks": Scenario(
        {"asks": True}, frozenset({"completed"}), cue=("call", "wait"), action="callback"
    )
}
_ACCESS = {
    "region_name": REGION,
    "aws_access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
    "aws_secret_access_key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
}

CARDS = (
    *(Card("clocks a minute apart", "asks", clocks=(0, off)) for off in (60, -60)),
    *(Card("clocks a minute apart", "takes longer", clocks=(off, 0)) for off in (60, -60)),
    Card("two deliveries at once", "completes", copies="send"),
    Card("delivery during the work", "takes long", copies="claim"),
    Card("delivery during the wait", "completes", copies="wait"),
    Card("delivery after the end", "completes", copies="complete"),
    Card("delivery after the end", "fails for good", copies="fail"),
    Card("old deliveries after a retry, newest first", "is retried", copies="retry"),
    Card("old deliveries after a retry, newest first", "is retried", copies="complete"),
)


def deliver_again(stack: Stack, messages: list[str]) -> None:
    """Begin a job's executions once more, twice, under the names that they have."""
    lambda_ = boto3.client("lambda", endpoint_url=stack.durable.url, **_ACCESS)
    for message in messages * 2:
        reference = json.loads(message)
        retried = f"-{reference['retry_of']}" if "retry_of" in reference else ""
        lambda_.invoke(
            FunctionName="WorkerFunction:live",
            InvocationType="Event",
            DurableExecutionName=reference["job_id"] + retried,
            Payload=json.dumps(reference, sort_keys=True),
        )


def busy(stack: Stack) -> bool:
    """Whether any execution is under way."""
    return any(e.status == "RUNNING" for e in list(stack.durable.executions.values()))


def floor(stack: Stack, jobs: int, callers: int) -> None:
    """Send the requests that jobs cost to the emulated AWS, past all functions.

    Those of a job of two steps and a wait: accept, claim, wait, resume, one side effect, complete,
    announce. The emulator of executions cannot be asked without a function.
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
