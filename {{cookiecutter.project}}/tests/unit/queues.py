"""Queues like those of template.yaml, and what Lambda's event source mapping does to them."""

import json
import uuid
from collections.abc import Callable
from functools import cache
from typing import Any

from local.poller import record
from tests.unit.client import Context
from tests.unit.emulated import AWS

Handler = Callable[[dict[str, Any], Any], Any]

_VISIBLE = "ApproximateNumberOfMessages"
_HIDDEN = "ApproximateNumberOfMessagesNotVisible"

_sqs = AWS.client("sqs")


class Queue:
    """An empty queue of its own, otherwise like one of the template."""

    def __init__(self, logical_id: str, dead_letters: "Queue | None" = None) -> None:
        template = _attributes_of(logical_id)
        attributes = {"VisibilityTimeout": template["VisibilityTimeout"]}
        if dead_letters:
            policy = json.loads(template["RedrivePolicy"])
            policy["deadLetterTargetArn"] = dead_letters.arn
            attributes["RedrivePolicy"] = json.dumps(policy)
        suffix = f"-{uuid.uuid4()}"
        self.arn: str = template["QueueArn"] + suffix
        self.url = AWS.queue_url(logical_id) + suffix
        _sqs.create_queue(QueueName=self.arn.rpartition(":")[2], Attributes=attributes)
        self._received: list[dict[str, Any]] = []

    def send(self, body: str) -> None:
        """Send a message."""
        _sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def deliver(self, handler: Handler, context: Context | None = None) -> int:
        """Have a handler process what is visible; return how many messages it kept."""
        answer = _sqs.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["All"]
        )
        self._received = answer.get("Messages", [])
        assert self._received, "there is nothing to deliver"
        event = {"Records": [record(message, self.arn) for message in self._received]}
        result = handler(event, context or Context())
        kept = {failure["itemIdentifier"] for failure in result["batchItemFailures"]}
        for message in self._received:
            if message["MessageId"] not in kept:
                _sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return len(kept)

    def wait(self) -> None:
        """Let the visibility timeouts of the messages delivered last run out."""
        for message in self._received:
            _sqs.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )

    def take(self) -> list[Any]:
        """Take out what is visible, read as JSON."""
        answer = _sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)
        messages = answer.get("Messages", [])
        for message in messages:
            _sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in messages]

    def groups(self) -> list[str | None]:
        """Receive what is visible, and return the group of each message."""
        received = _sqs.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"]
        )
        return [m.get("Attributes", {}).get("MessageGroupId") for m in received.get("Messages", [])]

    @property
    def visible(self) -> int:
        """How many messages could be delivered now."""
        return self._count(_VISIBLE)

    @property
    def hidden(self) -> int:
        """How many messages are being processed or wait for their visibility timeout."""
        return self._count(_HIDDEN)

    def _count(self, attribute: str) -> int:
        answer = _sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[attribute])
        return int(answer["Attributes"][attribute])


@cache
def _attributes_of(logical_id: str) -> dict[str, str]:
    answer = _sqs.get_queue_attributes(QueueUrl=AWS.queue_url(logical_id), AttributeNames=["All"])
    return dict(answer["Attributes"])
