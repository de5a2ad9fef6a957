"""The emulated AWS holds what the template declares, in a process of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.emulator import Emulator
from local.template import Template, TemplateError
from tests.laptop.projects import alive, function, queue, until, write_project

TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "owner", "AttributeType": "S"},
        ],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by-owner",
                "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "SSESpecification": {"SSEEnabled": True},
    },
}
RESOURCES: dict[str, Any] = {
    "Table": TABLE,
    "Simple": {"Type": "AWS::Serverless::SimpleTable"},
    "Jobs": queue(
        VisibilityTimeout=77,
        RedrivePolicy={
            "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
            "maxReceiveCount": "3",
        },
    ),
    "Dead": queue(MessageRetentionPeriod=1209600, FifoQueue=False),
    "Ordered": queue(FifoQueue=True, ContentBasedDeduplication=True),
    "Topic": {
        "Type": "AWS::SNS::Topic",
        "Properties": {"KmsMasterKeyId": "alias/aws/sns"},
    },
    "Pictures": {"Type": "AWS::S3::Bucket"},
    "Told": {
        "Type": "AWS::SNS::Subscription",
        "Properties": {
            "TopicArn": {"Ref": "Topic"},
            "Protocol": "sqs",
            "Endpoint": {"Fn::GetAtt": ["Jobs", "Arn"]},
            "RawMessageDelivery": True,
        },
    },
    "Fn": function(
        "app.handler",
        Environment={
            "Variables": {
                "QUEUE": {"Ref": "Jobs"},
                "BUCKET": {"Ref": "Pictures"},
                "AWS_ENDPOINT_URL": {"Ref": "AWS::NoValue"},
            }
        },
    ),
}


def template(folder: Path, resources: dict[str, Any]) -> Template:
    return Template.load(write_project(folder, resources, {}) / "template.yaml")


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(template(tmp_path_factory.mktemp("emulator") / "p", RESOURCES)) as running:
        yield running


def test_tables_have_their_keys_and_indexes(aws: Emulator) -> None:
    described = aws.client("dynamodb").describe_table(TableName="Table")["Table"]
    assert described["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert [i["IndexName"] for i in described["GlobalSecondaryIndexes"]] == ["by-owner"]
    assert described["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/Table"
    simple = aws.client("dynamodb").describe_table(TableName="Simple")["Table"]
    assert simple["AttributeDefinitions"] == [{"AttributeName": "id", "AttributeType": "S"}]


def test_queues_have_their_attributes(aws: Emulator) -> None:
    def attributes(name: str) -> dict[str, str]:
        answer = aws.client("sqs").get_queue_attributes(
            QueueUrl=aws.queue_url(name), AttributeNames=["All"]
        )
        return dict(answer["Attributes"])

    assert attributes("Jobs")["VisibilityTimeout"] == "77"
    assert attributes("Jobs")["QueueArn"] == aws.queue_arn("Jobs")
    assert json.loads(attributes("Jobs")["RedrivePolicy"]) == {
        "deadLetterTargetArn": aws.queue_arn("Dead"),
        "maxReceiveCount": 3,
    }
    assert attributes("Dead")["MessageRetentionPeriod"] == "1209600"
    assert attributes("Ordered")["FifoQueue"] == "true"


def test_subscriptions_deliver(aws: Emulator) -> None:
    aws.client("sns").publish(TopicArn=aws.template.arn("Topic"), Message="told")
    url = aws.queue_url("Jobs")
    messages = aws.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert [m["Body"] for m in messages] == ["told"]


def test_buckets_hold_what_they_are_given(aws: Emulator) -> None:
    bucket, s3 = aws.environment("Fn")["BUCKET"], aws.client("s3")
    s3.put_object(Bucket=bucket, Key="a/b", Body=b"picture")
    assert s3.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"picture"
    assert aws.template.arn("Pictures") == "arn:aws:s3:::pictures"


def test_functions_are_given_its_address_and_dummy_keys(aws: Emulator) -> None:
    environment = aws.environment("Fn")
    assert environment["QUEUE"] == f"{aws.url}/000000000000/Jobs"
    assert environment["AWS_ENDPOINT_URL"] == aws.url
    assert environment["AWS_ACCESS_KEY_ID"] == "local"
    assert environment["AWS_DEFAULT_REGION"] == "us-east-1"


def test_settings_of_this_machine_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile real]\nendpoint_url = http://127.0.0.1:9\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for profile in ("real", "missing"):
        monkeypatch.setenv("AWS_PROFILE", profile)
        with Emulator(template(tmp_path / profile, {"Q": queue()})) as aws:
            assert aws.client("sqs").list_queues()["QueueUrls"] == [aws.queue_url("Q")]


def test_sam_local_is_given_the_declared_variables(aws: Emulator, tmp_path: Path) -> None:
    aws.write_sam_environment(tmp_path / ".local" / "env.json")
    outside = f"http://host.docker.internal:{aws.port}"
    assert json.loads((tmp_path / ".local" / "env.json").read_text()) == {
        "Fn": {
            "QUEUE": f"{outside}/000000000000/Jobs",
            "BUCKET": "pictures",
            "AWS_ENDPOINT_URL": outside,
        }
    }


def test_only_one_of_many_conditional_writes_wins(aws: Emulator) -> None:
    client, barrier = aws.client("dynamodb"), threading.Barrier(8)
    bulk = {
        f"attribute{n}": {"S": "x"} for n in range(400)
    }  # the longer the write, the wider the gap
    for n in range(8):
        won: list[int] = []

        def write(who: int, won: list[int] = won, n: int = n) -> None:
            barrier.wait()
            with contextlib.suppress(ClientError):
                client.put_item(
                    TableName="Table",
                    Item={"id": {"S": f"race{n}"}, "owner": {"S": str(who)}, **bulk},
                    ConditionExpression="attribute_not_exists(id)",
                )
                won.append(who)

        threads = [threading.Thread(target=write, args=[who]) for who in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1


def test_transactions_work_beside_single_writes(aws: Emulator) -> None:
    items = [{"id": {"S": f"t{n}"}, "owner": {"S": "x"}} for n in (1, 2)]
    puts = [{"Put": {"TableName": "Table", "Item": item}} for item in items]
    aws.client("dynamodb").transact_write_items(TransactItems=puts)
    assert "Item" in aws.client("dynamodb").get_item(TableName="Table", Key={"id": {"S": "t2"}})


def test_only_loopback_is_open(aws: Emulator) -> None:
    found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    addresses = {str(address[0]) for *_, address in found}
    outside = {a for a in addresses if not a.startswith("127.")} or {"127.0.0.2"}
    for address in outside:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, aws.port), timeout=5)


def test_a_second_address_opens_on_request(tmp_path: Path) -> None:
    with Emulator(template(tmp_path / "p", {"Q": queue()}), host="127.0.0.2") as aws:
        other = boto3.client(
            "sqs",
            endpoint_url=f"http://127.0.0.2:{aws.port}",
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        other.send_message(
            QueueUrl=aws.queue_url("Q").replace("127.0.0.1", "127.0.0.2"), MessageBody="a"
        )
        found = aws.client("sqs").receive_message(QueueUrl=aws.queue_url("Q"))
        assert len(found["Messages"]) == 1


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(TemplateError, match=f"cannot use 127.0.0.1:{port}: "),
            Emulator(template(tmp_path / "p", {}), port=port),
        ):
            pytest.fail("it started")


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"Q": queue(MaximumMessageSize=1)}, "Q: AWS would refuse it: "),
        (
            {"T": {"Type": "AWS::SNS::Subscription", "Properties": {"Protocol": "sqs"}}},
            "property TopicArn is missing",
        ),
    ],
)
def test_a_refused_resource_is_named(
    tmp_path: Path, resources: dict[str, Any], message: str
) -> None:
    with pytest.raises(TemplateError) as refused, Emulator(template(tmp_path / "p", resources)):
        pytest.fail("it started")
    assert message in str(refused.value)


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "p", {}, {})
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from local.emulator import Emulator; from local.template import Template\n"
        "with Emulator(Template.load(sys.argv[2])) as aws:\n"
        "    print(aws._process.pid, flush=True); time.sleep(60)"
    )
    package = str(Path(sys.modules["local.emulator"].__file__ or "").parents[1])
    command = [sys.executable, "-c", code, package, str(folder / "template.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        server = int(owner.stdout.readline())
        assert alive(server)
        os.kill(owner.pid, signal.SIGKILL)
    until(lambda: not alive(server))


DEPTHS = """
import sys, time
from moto.sqs.models import sqs_backends
from local import moto_server

if "slow" not in sys.argv:
    moto_server._make_moto_faster()
sqs = sqs_backends["000000000000"]["us-east-1"]
for depth in (1, 400):
    sqs.create_queue(f"deep-{depth}", {}, VisibilityTimeout="600")
    for _ in range(depth + 20):
        sqs.send_message(f"deep-{depth}", "body")
    start = time.process_time()
    for _ in range(20):
        assert len(sqs.receive_message(f"deep-{depth}", 1, 0, 600)) == 1
    print(time.process_time() - start)
"""


def test_a_deep_queue_is_not_slow() -> None:
    """moto's own receive takes 30 times as long from 400 messages as from one."""
    places = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", DEPTHS],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=True,
    )
    shallow, deep = map(float, done.stdout.split())
    assert deep < 8 * shallow
