"""SQS event sources behave as Lambda's do."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.poller import failed, mappings
from local.stack import Stack
from local.template import Template, TemplateError
from tests.laptop.projects import function, queue, sqs, until, write_project

WORKER = """
    import json, os, sys, time

    def handler(event, context):
        first = json.loads(event["Records"][0]["body"])
        with open(os.environ["FILE"], "a") as file:
            file.write(json.dumps({"records": event["Records"], "start": time.time()}) + "\\n")
        again = event["Records"][0]["attributes"]["ApproximateReceiveCount"] != "1"
        if again and not first.get("always"):
            return None
        time.sleep(first.get("sleep", 0))
        with open(os.environ["FILE"] + ".ends", "a") as file:
            file.write(f"{time.time()}\\n")
        if first.get("raise"):
            raise LookupError("not now")
        if first.get("exit"):
            os._exit(1)
        answer = json.dumps(first.get("answer")).replace("$ID", event["Records"][0]["messageId"])
        return float("nan") if first.get("nan") else json.loads(answer)
"""
PARTIAL = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}
TWICE = {
    "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
    "maxReceiveCount": 2,
}


class Queues:
    """The stack under test, and what its workers were given."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack = stack
        self.sqs = stack.aws.client("sqs")
        self._folder = folder

    def send(self, name: str, *bodies: dict[str, Any], **options: Any) -> None:
        for body in bodies:
            self.sqs.send_message(
                QueueUrl=self.stack.aws.queue_url(name), MessageBody=json.dumps(body), **options
            )

    def send_at_once(self, name: str, *bodies: dict[str, Any], **options: Any) -> None:
        with self.stack.paused(f"{name}Worker"):
            self.send(name, *bodies, **options)

    def deliveries(self, name: str) -> list[dict[str, Any]]:
        file = self._folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def ends(self, name: str) -> list[float]:
        """Return when workers came to their end."""
        file = self._folder / f"{name}.ends"
        return [float(line) for line in file.read_text().splitlines()] if file.exists() else []

    def bodies(self, name: str) -> list[list[Any]]:
        """Return the `n` of each record of each delivery."""
        return [[json.loads(r["body"])["n"] for r in d["records"]] for d in self.deliveries(name)]

    def depth(self, name: str) -> tuple[int, int]:
        """Return how many messages are visible and how many are in flight."""
        found = next(q for q in self.stack.queues() if q["name"] == name)
        return found["visible"], found["in_flight"]

    def empty(self, name: str) -> bool:
        return self.depth(name) == (0, 0)


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    folder = tmp_path_factory.mktemp("sqs")
    resources: dict[str, Any] = {"Dead": queue()}

    def add(
        name: str, event: dict[str, Any], attributes: dict[str, Any], **properties: Any
    ) -> None:
        properties.setdefault("Timeout", 1)
        resources[name] = queue(**{"VisibilityTimeout": 1, **attributes})
        resources[f"{name}Worker"] = function(
            "worker.handler",
            sqs(name, **event),
            Environment={"Variables": {"FILE": str(folder / name)}},
            **properties,
        )

    add("Plain", {"BatchSize": 5}, {"VisibilityTimeout": 30})
    add(
        "Windowed",
        {"BatchSize": 20, "MaximumBatchingWindowInSeconds": 2},
        {"VisibilityTimeout": 30},
    )
    add("Partial", {"BatchSize": 10, **PARTIAL}, {})
    add("Poison", {"BatchSize": 10, **PARTIAL}, {"RedrivePolicy": TWICE})
    add("Failing", {"BatchSize": 1}, {})
    add(
        "Ordered",
        {"BatchSize": 10, **PARTIAL},
        {"FifoQueue": True, "ContentBasedDeduplication": True},
    )
    add(
        "Single",
        {"BatchSize": 1},
        {"VisibilityTimeout": 30},
        ReservedConcurrentExecutions=1,
        Timeout=10,
    )
    add(
        "Two",
        {"BatchSize": 1, "ScalingConfig": {"MaximumConcurrency": 2}},
        {"VisibilityTimeout": 30},
    )
    add("Off", {"BatchSize": 1, "Enabled": False}, {})
    resources["Other"] = queue()
    resources["SingleWorker"]["Properties"]["Events"]["Other"] = sqs("Other")
    write_project(folder / "project", resources, {"worker": WORKER})
    with Stack(folder / "project") as stack:
        yield Queues(stack, folder)


def test_messages_come_in_batches_and_are_deleted(queues: Queues) -> None:
    queues.send_at_once("Plain", *({"n": n} for n in range(7)))
    until(lambda: queues.empty("Plain"))
    assert sorted(len(batch) for batch in queues.bodies("Plain")) == [2, 5]


def test_a_record_has_the_documented_shape(queues: Queues) -> None:
    queues.send(
        "Plain",
        {"n": "shape"},
        MessageAttributes={
            "text": {"DataType": "String", "StringValue": "a"},
            "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
        },
    )
    (record,) = until(
        lambda: [
            r for d in queues.deliveries("Plain") for r in d["records"] if "shape" in r["body"]
        ]
    )
    assert record.keys() == {
        "messageId",
        "receiptHandle",
        "body",
        "attributes",
        "messageAttributes",
        "md5OfBody",
        "md5OfMessageAttributes",
        "eventSource",
        "eventSourceARN",
        "awsRegion",
    }
    assert record["attributes"].keys() >= {
        "ApproximateReceiveCount",
        "SentTimestamp",
        "SenderId",
        "ApproximateFirstReceiveTimestamp",
    }
    assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert record["messageAttributes"]["text"] == {
        "stringValue": "a",
        "binaryValue": None,
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": "String",
    }
    assert record["messageAttributes"]["bytes"]["binaryValue"] == "AAE="
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:000000000000:Plain"
    assert (record["eventSource"], record["awsRegion"]) == ("aws:sqs", "us-east-1")


def test_a_window_gathers_a_larger_batch(queues: Queues) -> None:
    queues.send("Windowed", *({"n": n} for n in range(13)))
    until(lambda: queues.empty("Windowed"))
    assert [sorted(batch) for batch in queues.bodies("Windowed")] == [list(range(13))]


def test_without_report_any_return_deletes_all(queues: Queues) -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "$ID"}]}
    queues.send("Failing", {"n": "reported", "answer": answer})
    until(lambda: ["reported"] in queues.bodies("Failing") and queues.empty("Failing"))
    assert queues.bodies("Failing").count(["reported"]) == 1


@pytest.mark.parametrize("end", [{"raise": True}, {"sleep": 9}, {"exit": True}])
def test_after_an_error_timeout_or_crash_messages_return(
    queues: Queues, end: dict[str, Any]
) -> None:
    name = str(end)
    queues.stack.log.clear()
    queues.send("Failing", {"n": name, **end})

    def records() -> list[dict[str, Any]]:
        return [
            {"start": d["start"], **r}
            for d in queues.deliveries("Failing")
            for r in d["records"]
            if json.loads(r["body"])["n"] == name
        ]

    until(lambda: len(records()) >= 2)
    first, second = records()[:2]
    assert second["attributes"]["ApproximateReceiveCount"] == "2"
    assert second["start"] - first["start"] >= 0.9  # its visibility timeout is a second
    told = "FailingWorker  in 1 s back in Failing, or dead-lettered"
    until(lambda: told in queues.stack.log)


def test_only_what_failed_returns(queues: Queues) -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "$ID"}]}
    queues.send_at_once("Partial", {"n": "bad", "answer": answer}, {"n": "good"})
    until(lambda: sum(batch.count("bad") for batch in queues.bodies("Partial")) == 2)
    assert sum(batch.count("good") for batch in queues.bodies("Partial")) == 1


BATCH = [{"MessageId": "a"}, {"MessageId": "b"}, {"MessageId": "c"}]
WHOLE = {
    "empty identifier": '{"batchItemFailures": [{"itemIdentifier": ""}]}',
    "null identifier": '{"batchItemFailures": [{"itemIdentifier": null}]}',
    "unknown identifier": '{"batchItemFailures": [{"itemIdentifier": "z"}]}',
    "known and unknown": json.dumps(
        {"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": "z"}]}
    ),
    "wrong key": '{"batchItemFailures": [{"messageId": "a"}]}',
    "no key": '{"batchItemFailures": [{}]}',
    "bare identifiers": '{"batchItemFailures": ["a"]}',
    "not a list": '{"batchItemFailures": "a"}',
    "a number": '{"batchItemFailures": 1}',
    "an object": '{"batchItemFailures": {"itemIdentifier": "a"}}',
    "unhashable": '{"batchItemFailures": [{"itemIdentifier": ["a"]}]}',
    "not JSON": '{"batchItemFailures": [',
    "NaN": "NaN",
    "NaN beside": '{"batchItemFailures": [], "seconds": NaN}',
    "a list": '[{"itemIdentifier": "a"}]',
    "text": '"ok"',
}
SUCCESS = {
    "nothing": None,
    "null": "null",
    "empty": "{}",
    "null list": '{"batchItemFailures": null}',
    "empty list": '{"batchItemFailures": []}',
    "other keys": '{"statusCode": 200}',
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_malformed_response_fails_the_whole_batch(name: str) -> None:
    assert failed(WHOLE[name], BATCH) == {"a", "b", "c"}


@pytest.mark.parametrize("name", SUCCESS)
def test_an_empty_response_is_success(name: str) -> None:
    assert failed(SUCCESS[name], BATCH) == set()


def test_named_messages_fail() -> None:
    named = {"batchItemFailures": [{"itemIdentifier": "c"}, {"itemIdentifier": "a"}]}
    assert failed(json.dumps(named), BATCH) == {"a", "c"}


def test_malformed_responses_lose_nothing(queues: Queues) -> None:
    asked = {
        name: {"answer": json.loads(text), "always": True}
        for name, text in WHOLE.items()
        if name not in ("not JSON", "NaN")
    }
    asked["NaN"] = {"nan": True, "always": True}
    for name, how in asked.items():
        queues.send_at_once("Poison", {"n": name, **how}, {"n": f"{name} 2", **how})

    def dead() -> set[str]:
        return {json.loads(letter["body"])["n"] for letter in queues.stack.dead_letters()}

    until(lambda: queues.empty("Poison"))
    assert dead() == {*asked, *(f"{name} 2" for name in asked)}
    received = [n for batch in queues.bodies("Poison") for n in batch]
    assert {received.count(n) for n in dead()} == {2}


def test_redrive_moves_what_was_received_too_often(queues: Queues) -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "$ID"}]}
    queues.send("Poison", {"n": "poison", "answer": answer, "always": True})
    letter = until(
        lambda: next((x for x in queues.stack.dead_letters() if '"poison"' in x["body"]), None)
    )
    assert letter["queue"] == "Dead"
    assert sum(batch.count("poison") for batch in queues.bodies("Poison")) == 2


def test_fifo_groups_stay_in_order(queues: Queues) -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "$ID"}]}
    with queues.stack.paused("OrderedWorker"):
        queues.send("Ordered", {"n": "a1", "answer": answer}, {"n": "a2"}, MessageGroupId="a")
        queues.send("Ordered", {"n": "b1"}, MessageGroupId="b")
    until(lambda: len(queues.bodies("Ordered")) >= 2)
    first, second = queues.bodies("Ordered")[:2]
    # The worker named a1 alone; a2 must not overtake it, and b1 has nothing to do with it.
    assert first == ["a1", "a2", "b1"]
    assert second == ["a1", "a2"]


def test_nothing_is_received_before_a_sandbox_is_free(queues: Queues) -> None:
    before = len(queues.ends("Single"))
    queues.send("Single", {"n": "first", "sleep": 2})
    until(lambda: ["first"] in queues.bodies("Single"))
    queues.send("Single", {"n": "second"})
    queues.send("Other", {"n": "third"})
    seen = set()
    while True:
        look = (queues.depth("Single"), queues.depth("Other"))
        if len(queues.ends("Single")) > before:
            break
        seen.add(look)
    assert seen == {((1, 1), (1, 0))}
    until(lambda: queues.empty("Single") and queues.empty("Other"))


def test_two_sources_share_one_sandbox(queues: Queues) -> None:
    queues.send("Other", {"n": "other"})
    queues.send("Single", {"n": "single"})
    until(lambda: ["other"] in queues.bodies("Single") and ["single"] in queues.bodies("Single"))


def test_maximum_concurrency_holds(queues: Queues) -> None:
    queues.send("Two", *({"n": n, "sleep": 0.2} for n in range(6)))
    until(lambda: queues.empty("Two") and len(queues.deliveries("Two")) == 6)
    starts = [d["start"] for d in queues.deliveries("Two")]
    ends = queues.ends("Two")
    for moment in starts:
        assert sum(s <= moment for s in starts) - sum(e < moment for e in ends) <= 2


def test_a_disabled_source_is_left_alone(queues: Queues) -> None:
    queues.send("Off", {"n": 1})
    assert all(p.mapping.queue != "Off" for p in queues.stack.pollers)
    time.sleep(0.3)
    assert queues.depth("Off") == (1, 0)


def test_a_paused_source_receives_nothing(queues: Queues) -> None:
    with queues.stack.paused("PlainWorker"):
        queues.send("Plain", {"n": "paused"})
        time.sleep(0.3)
        assert queues.depth("Plain") == (1, 0)
    until(lambda: any("paused" in batch for batch in queues.bodies("Plain")))


@pytest.mark.parametrize(
    ("event", "attributes", "reason"),
    [
        (
            {},
            {"VisibilityTimeout": 59},
            "VisibilityTimeout (59) is below the function's Timeout (60)",
        ),
        ({"BatchSize": 11}, {}, "BatchSize above 10 needs MaximumBatchingWindowInSeconds"),
        ({"BatchSize": 0}, {}, "BatchSize must be 1 to 10000"),
        ({"MaximumBatchingWindowInSeconds": 301}, {}, "must be 0 to 300"),
        (
            {"BatchSize": 11, "MaximumBatchingWindowInSeconds": 1},
            {"FifoQueue": True},
            "BatchSize of a FIFO queue is at most 10",
        ),
        (
            {"MaximumBatchingWindowInSeconds": 1},
            {"FifoQueue": True},
            "FIFO queue takes no batching window",
        ),
        ({"ScalingConfig": {"MaximumConcurrency": 1}}, {}, "MaximumConcurrency must be 2 to 1000"),
        (
            {"ScalingConfig": {"MaximumConcurrency": 1001}},
            {},
            "MaximumConcurrency must be 2 to 1000",
        ),
        ({"Queue": "arn:aws:sqs:us-east-1:000000000000:Elsewhere"}, {}, "is not in this template"),
    ],
)
def test_a_mapping_that_aws_refuses_is_refused(
    tmp_path: Path, event: dict[str, Any], attributes: dict[str, Any], reason: str
) -> None:
    resources = {
        "Q": queue(**{"VisibilityTimeout": 60, **attributes}),
        "Fn": function("worker.handler", sqs("Q", **event), Timeout=60),
    }
    write_project(tmp_path / "p", resources, {"worker": WORKER})
    with pytest.raises(TemplateError) as refused:
        mappings(Template.load(tmp_path / "p" / "template.yaml"))
    assert reason in str(refused.value)
    with pytest.raises(TemplateError), Stack(tmp_path / "p"):
        pytest.fail("it started")


def test_what_a_source_does_here_not_is_named(tmp_path: Path) -> None:
    schedule = {"Type": "Schedule", "Properties": {"Schedule": "rate(1 day)"}}
    resources = {
        "Q": queue(),
        "Fn": function("worker.handler", sqs("Q", FilterCriteria={"Filters": []}), schedule),
    }
    write_project(tmp_path / "p", resources, {"worker": WORKER})
    _, unsupported = mappings(Template.load(tmp_path / "p" / "template.yaml"))
    assert unsupported == ["Fn.Event0.FilterCriteria", "Fn.Event1 (Schedule)"]
