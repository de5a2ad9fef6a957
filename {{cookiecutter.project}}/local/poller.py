"""SQS event sources: Lambda's pollers bring messages to functions, and delete them on success.

Imitates batch size and window, maximum concurrency, partial batch responses, and Lambda's checks
of a new mapping. The emulated queue does redelivery, receive counts and dead-lettering.
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .emulator import Emulator
from .sandbox import Invocation, Runner
from .template import QUEUE, REGION, Function, Template, TemplateError, is_true

_WAIT_SECONDS = 1  # of a long poll; a pause waits for its end
_HURRY_SECONDS = 5.0
_RECEIVE_LIMIT = 10
_BATCH_BYTES = 6 * 1024 * 1024
_KNOWN = {
    "BatchSize", "Enabled", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds", "Queue",
    "ScalingConfig",
}  # fmt: skip

Message = dict[str, Any]


@dataclass(frozen=True)
class Mapping:
    """One SQS event of a function (`window` and `visibility` in seconds, `queue` a logical id)."""

    function: str
    queue: str
    visibility: int
    batch_size: int
    window: int
    concurrency: int | None
    partial: bool
    fifo: bool


def mappings(template: Template) -> tuple[list[Mapping], list[str]]:
    """Return the enabled SQS event sources, and the events that are not supported here.

    Raises `TemplateError` for a mapping that AWS refuses to create.
    """
    found, unsupported, whole = [], [], template.whole
    queues = {template.arn(name): (name, queue) for name, queue in template.resolved(QUEUE).items()}
    for function in template.functions():
        for name, event in function.events.items():
            where, p = f"{function.name}.{name}", event.get("Properties") or {}
            if event["Type"] not in ("SQS", "HttpApi"):
                unsupported.append(f"{where} ({event['Type']})")
            if event["Type"] != "SQS":
                continue
            unsupported += [f"{where}.{key}" for key in p if key not in _KNOWN]
            if p.get("Queue") not in queues:
                raise TemplateError(f"{where}: Queue {p.get('Queue')} is not in this template")
            queue, attributes = queues[p["Queue"]]
            maximum = (p.get("ScalingConfig") or {}).get("MaximumConcurrency")
            visibility = attributes.get("VisibilityTimeout", 30)
            size, window = p.get("BatchSize", 10), p.get("MaximumBatchingWindowInSeconds", 0)
            mapping = Mapping(
                function.name,
                queue,
                visibility=whole(visibility, f"{queue}.VisibilityTimeout"),
                batch_size=whole(size, f"{where}.BatchSize"),
                window=whole(window, f"{where}.MaximumBatchingWindowInSeconds"),
                concurrency=maximum and whole(maximum, f"{where}.MaximumConcurrency"),
                partial="ReportBatchItemFailures" in (p.get("FunctionResponseTypes") or []),
                fifo=is_true(attributes.get("FifoQueue")),
            )
            if problem := _refusal(mapping, function):
                raise TemplateError(f"{where}: AWS refuses this event source: {problem}")
            if is_true(p.get("Enabled", True)):
                found.append(mapping)
    return found, unsupported


def _refusal(mapping: Mapping, function: Function) -> str:
    """Return why AWS refuses to create a mapping; "" if it does not."""
    size, window, concurrency = mapping.batch_size, mapping.window, mapping.concurrency
    late = f"the queue's VisibilityTimeout ({mapping.visibility}) is below the function's Timeout"
    for broken, reason in (
        (mapping.visibility < function.timeout, f"{late} ({function.timeout})"),
        (not 1 <= size <= 10_000, "BatchSize must be 1 to 10000"),
        (not 0 <= window <= 300, "MaximumBatchingWindowInSeconds must be 0 to 300"),
        (mapping.fifo and size > 10, "BatchSize of a FIFO queue is at most 10"),
        (mapping.fifo and window > 0, "a FIFO queue takes no batching window"),
        (size > 10 and window < 1, "BatchSize above 10 needs MaximumBatchingWindowInSeconds"),
        (not 2 <= (concurrency or 2) <= 1000, "MaximumConcurrency must be 2 to 1000"),
    ):
        if broken:
            return reason
    return ""


def failed(payload: str | None, messages: list[Message]) -> set[str]:
    """Return the ids of the messages that a partial batch response keeps.

    An empty response, no list, or an empty list means success. A response that is not JSON, or an
    identifier that is empty, null, unknown or under a wrong key, fails the whole batch.
    """
    ids = {m["MessageId"] for m in messages}
    try:
        response = json.loads(payload or "null", parse_constant=_refuse)
        items = response.get("batchItemFailures") if response is not None else None
        named = {item["itemIdentifier"] for item in items or []}
    except (ValueError, TypeError, KeyError, AttributeError):
        return ids
    return named if named <= ids else ids


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def with_followers(failures: set[str], messages: list[Message]) -> set[str]:
    """Return failed ids and those that follow one in its FIFO group, to keep the order."""
    kept, groups = set(failures), set()
    for message in messages:
        group = message["Attributes"].get("MessageGroupId")
        if message["MessageId"] in failures:
            groups.add(group)
        if group in groups:
            kept.add(message["MessageId"])
    return kept


def record(message: Message, arn: str) -> dict[str, Any]:
    """Return a received message as a record of Lambda's event."""
    made = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }
    for name, value in message.get("MessageAttributes", {}).items():
        made["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
        binary = value.get("BinaryValue")
        made["messageAttributes"][name] = {
            "stringValue": value.get("StringValue"),
            "binaryValue": None if binary is None else base64.b64encode(binary).decode(),
            "stringListValues": [],
            "binaryListValues": [],
            "dataType": value["DataType"],
        }
    return made


class Poller:
    """Polls one mapping's queue until closed."""

    def __init__(self, mapping: Mapping, runner: Runner, aws: Emulator) -> None:
        self.mapping = mapping
        self._runner = runner
        self._sqs = aws.client("sqs")
        self._url = aws.queue_url(mapping.queue)
        self._arn = aws.queue_arn(mapping.queue)
        self._slots = threading.BoundedSemaphore(mapping.concurrency or runner.limit)
        self._hurry_until = 0.0
        self._closed = False
        self._receiving = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        threading.Thread(target=self._poll, daemon=True).start()

    def close(self) -> None:
        """Stop polling."""
        self._closed = True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Receive nothing inside the `with`; entering it waits for the current receive."""
        self._open.clear()
        with self._receiving:
            pass
        try:
            yield
        finally:
            self._open.set()

    def _poll(self) -> None:
        while not self._closed:
            # First a sandbox, then a message: without a sandbox, it stays in the queue.
            self._slots.acquire()
            self._runner.slots.acquire()
            messages: list[Message] = []
            try:
                self._open.wait()
                with self._receiving:
                    messages = self._collect() if self._open.is_set() else []
            except (BotoCoreError, ClientError):
                time.sleep(0.2)  # the emulator is ending, or busy
            if messages:
                threading.Thread(target=self._deliver, args=(messages,), daemon=True).start()
            else:
                self._runner.slots.release()
                self._slots.release()
                time.sleep(0.05)  # another source of this function gets its turn

    def _collect(self) -> list[Message]:
        """Receive a batch: what is there, and what comes within the window."""
        size, window = self.mapping.batch_size, self.mapping.window
        # moto does not end a long poll when a message's visibility ends or a FIFO group is free.
        soon = self.mapping.fifo or time.monotonic() < self._hurry_until
        messages = self._receive(size, 0 if soon else _WAIT_SECONDS)
        end = time.monotonic() + window
        while messages and len(messages) < size and (left := end - time.monotonic()) > 0:
            if sum(len(m["Body"]) for m in messages) > _BATCH_BYTES:
                break
            messages += self._receive(size - len(messages), 1 if left > 1 else 0)
            time.sleep(0.02)
        return messages

    def _receive(self, count: int, wait: int) -> list[Message]:
        every = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}
        few = {"MaxNumberOfMessages": min(count, _RECEIVE_LIMIT), "WaitTimeSeconds": wait}
        answer = self._sqs.receive_message(QueueUrl=self._url, **few, **every)
        return list(answer.get("Messages", []))

    def _deliver(self, messages: list[Message]) -> None:
        try:
            event = {"Records": [record(m, self._arn) for m in messages]}
            source = f"{self.mapping.queue} ({len(messages)})"
            self._settle(self._runner.invoke(event, source, reserved=True).result(), messages)
        except (BotoCoreError, ClientError):
            pass  # messages that were not deleted come back
        finally:
            self._slots.release()

    def _settle(self, invocation: Invocation, messages: list[Message]) -> None:
        """Delete the messages that succeeded; the others come back when their visibility ends."""
        kept = failed(invocation.payload, messages) if self.mapping.partial else set()
        if invocation.error:
            kept = {m["MessageId"] for m in messages}
        if self.mapping.fifo:
            kept = with_followers(kept, messages)
        if kept:
            self._hurry_until = time.monotonic() + _HURRY_SECONDS
        done = [m["ReceiptHandle"] for m in messages if m["MessageId"] not in kept]
        while done:
            now, done = done[:_RECEIVE_LIMIT], done[_RECEIVE_LIMIT:]
            entries = [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(now)]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)
