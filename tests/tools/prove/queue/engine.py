"""SQS as a campaign needs it: parameters, fault cases of its own, repeated deliveries."""

import hashlib
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local.poller import record
from local.stack import Stack
from tests.tools.prove.engine import Engine
from tests.tools.prove.faults import (
    API,
    DEAD_LETTERS,
    KILLED_AFTER,
    KILLED_BEFORE,
    LOST,
    TRIES,
    WORKER,
    Fault,
    FaultCase,
)
from tests.tools.prove.queue.points import CALLS

_KILLED = (
    Fault(WORKER, "claim", KILLED_AFTER),
    Fault(WORKER, "work", KILLED_BEFORE),
    Fault(WORKER, "once begins", KILLED_AFTER),
    Fault(WORKER, "once ends", KILLED_BEFORE),
    Fault(WORKER, "complete", KILLED_BEFORE),
)
_CLOCKS = ((60, 0), (-60, 0), (0, 60))

_CASES = (
    *(
        FaultCase("killed, clocks a minute apart", "completes", (fault,), clocks)
        for fault in _KILLED
        for clocks in _CLOCKS
    ),
    *(
        FaultCase("given up, clocks a minute apart", "fails always", clocks=clocks)
        for clocks in ((60,), (-60,), *_CLOCKS)
    ),
    FaultCase("two deliveries at once", "completes", copies="send"),
    FaultCase("two deliveries at once", "takes long", copies="send"),
    FaultCase("delivery during the work", "takes long", copies="claim"),
    FaultCase("delivery after the end", "completes", copies="complete"),
    FaultCase("delivery after the end", "fails for good", copies="fail"),
    FaultCase("delivery between two attempts", "fails once", copies="release"),
    FaultCase("delivery after the cancellation", "is cancelled", copies="stop"),
    FaultCase("old deliveries after a retry, newest first", "is retried", copies="retry"),
    FaultCase("old deliveries after a retry, newest first", "is retried", copies="complete"),
    FaultCase(
        "delivery on a clock that is ahead", "works in silence", clocks=(0, 60), copies="claim"
    ),
    FaultCase(
        "delivery on a clock that is behind", "works in silence", clocks=(0, -60), copies="claim"
    ),
    FaultCase(
        "the client does not repeat its request",
        "completes",
        (Fault(API, "send", LOST, TRIES), Fault(WORKER, "claim", KILLED_BEFORE, TRIES)),
        repeats=False,
    ),
)


def deliver_again(stack: Stack, messages: list[str]) -> None:
    """Deliver a job's messages once more at once, and send them to the queue once more."""
    url, arn = stack.aws.queue_url("JobsQueue"), stack.aws.queue_arn("JobsQueue")
    for body in messages:
        message = {
            "MessageId": str(uuid.uuid4()),
            "ReceiptHandle": "superseded",
            "Body": body,
            "MD5OfBody": hashlib.md5(body.encode()).hexdigest(),
            "Attributes": {"ApproximateReceiveCount": "1"},
        }
        stack.runners["WorkerFunction"].invoke({"Records": [record(message, arn)]})
        stack.aws.client("sqs").send_message(QueueUrl=url, MessageBody=body)


def busy(stack: Stack) -> bool:
    """Whether any message may still be delivered to the worker."""
    (jobs,) = (queue for queue in stack.queues() if queue["name"] == "JobsQueue")
    return any(jobs[state] for state in ("visible", "in_flight", "delayed"))


def send_floor(stack: Stack, jobs: int, callers: int) -> None:
    """Send the AWS calls of the sample's jobs without running a function.

    Each job: accept, claim, one side effect, complete, announce.
    """
    sqs, dynamodb = stack.aws.client("sqs"), stack.aws.client("dynamodb")
    queue = sqs.create_queue(QueueName="floor")["QueueUrl"]
    topic = stack.template.arn("JobEventsTopic")

    def accept(number: int) -> None:
        item = {"job_id": {"S": f"floor {number}"}, "padding": {"S": "x" * 500}}
        dynamodb.put_item(TableName="JobsTable", Item=item)
        sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"job_id": str(number)}))

    def run(number: int) -> None:
        key, record = {"job_id": {"S": f"floor {number}"}}, {"id": {"S": f"floor {number}"}}
        (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
        values = {":a": {"S": "x"}}
        change: dict[str, Any] = {
            "UpdateExpression": "SET a = :a",
            "ExpressionAttributeValues": values,
        }
        for _ in ("claim", "complete"):
            dynamodb.update_item(TableName="JobsTable", Key=key, **change)
        for _ in ("effect", "announcement"):
            dynamodb.put_item(TableName="IdempotencyTable", Item=record)
            dynamodb.update_item(TableName="IdempotencyTable", Key=record, **change)
        stack.aws.client("sns").publish(TopicArn=topic, Message="x" * 500)
        entry = {"Id": "0", "ReceiptHandle": message["ReceiptHandle"]}
        sqs.delete_message_batch(QueueUrl=queue, Entries=[entry])

    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(accept, range(jobs)))
        list(pool.map(run, range(jobs)))


ENGINE = Engine(
    name="queue",
    calls=CALLS,
    parameters={"WorkerTimeout": "5", "MaxAttempts": "5", "RetryBaseSeconds": "1"},
    # Instead of 30 s and 180 s; longer than a lease, which is 10 s.
    visibility_seconds={"JobsQueue": 12, "DeadLetterQueue": 8},
    waits="a message that was not deleted comes back after 12 s here, 30 s or more on AWS",
    given_up="AttemptLost",
    rivals=frozenset({API, WORKER, DEAD_LETTERS}),
    scenarios={},
    cases=_CASES,
    deliver_again=deliver_again,
    busy=busy,
    send_floor=send_floor,
)
