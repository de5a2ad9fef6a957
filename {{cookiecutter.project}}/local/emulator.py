"""The template's tables, queues, topics and buckets, on an emulated AWS that starts empty.

Imitates what CloudFormation creates of a stack's data resources, under their logical ids.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
"""

import json
import os
import re
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError, ParamValidationError

from .processes import Service
from .template import (
    ACCOUNT,
    BUCKET,
    NOT_CALLED,
    QUEUE,
    REGION,
    TABLES,
    TOPIC,
    Template,
    TemplateError,
    is_true,
    text,
)

LOOPBACK = "127.0.0.1"
KEY = "local"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": KEY,
    "AWS_SESSION_TOKEN": KEY,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
}
_KEYS = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


def server_environment() -> dict[str, str]:
    """Return this shell's environment without its AWS settings and proxies."""
    foreign = re.compile(r"AWS_.*|(?i:.*_proxy)")
    return {k: v for k, v in os.environ.items() if not foreign.fullmatch(k)} | CREDENTIALS


def make_client(service: str, url: str) -> Any:
    """Return a boto3 client of an emulated service, without the shell's profile and proxies."""
    import boto3  # late, so that the server starts meanwhile
    from botocore.config import Config
    from botocore.session import Session

    files = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    core = Session({**files, "profile": (None, None, None, None)})
    session = boto3.Session(KEY, KEY, region_name=REGION, botocore_session=core)
    # An empty dictionary of proxies keeps botocore from asking the environment for some.
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=50, proxies={})
    return session.client(service, endpoint_url=url, config=config)


class Emulator:
    """Emulated DynamoDB, SQS, SNS and S3 that hold what a template declares.

    Example:
        with Emulator(Template.load("template.yaml")) as aws:
            aws.client("sqs").send_message(QueueUrl=aws.queue_url("JobsQueue"), MessageBody="{}")

    Args:
        template: what to create.
        host: an address to open beside loopback, for containers; "0.0.0.0" opens all.
        port: 0 takes a free one.
    """

    def __init__(self, template: Template, host: str = LOOPBACK, port: int = 0) -> None:
        self.template = template
        self.url = ""
        self.port = port
        self._hosts = [host] if host in (LOOPBACK, "0.0.0.0") else [LOOPBACK, host]
        self._process: Service | None = None
        self._clients: dict[str, Any] = {}
        self.endpoints: dict[str, int] = {}  # of services that others emulate: variable → port

    def __enter__(self) -> "Emulator":
        try:
            self.start()
            self.create()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server. Its sockets are open at once; requests wait until it is up.

        Raises `TemplateError` for an address that is taken or not of this machine.
        """
        listening: list[socket.socket] = []
        try:
            for host in self._hosts:
                listening.append(socket.create_server((host, self.port), backlog=128))
                self.port = listening[0].getsockname()[1]
        except OSError as error:
            where = f"{self._hosts[len(listening)]}:{self.port}"
            raise TemplateError(f"the emulated AWS cannot use {where}: {error.strerror}") from None
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.template = self.template.at(self.url)
        numbers = [s.fileno() for s in listening]
        environment = {**server_environment(), "MOTO_ACCOUNT_ID": ACCOUNT}
        self._process = Service(
            "moto_server.py", *numbers, environment=environment, sockets=numbers
        )
        for own in listening:
            own.close()

    def stop(self) -> None:
        """End the server, and everything that it held."""
        if self._process:
            self._process.stop()
        for client in self._clients.values():
            client.close()
        self._process = None

    def check(self, within: float = 0) -> None:
        """Raise `TemplateError`, with the server's last line, if it ends within some seconds."""
        if self._process and (why := self._process.end(within)):
            raise TemplateError(f"the emulated AWS ended: {why}")

    def client(self, service: str) -> Any:
        """Return the boto3 client of an emulated service."""
        if service not in self._clients:
            port = self.endpoints.get(f"AWS_ENDPOINT_URL_{service.upper()}", self.port)
            self._clients[service] = make_client(service, f"http://{LOOPBACK}:{port}")
        return self._clients[service]

    def ref(self, logical_id: str) -> str:
        """Return what `!Ref` stands for: a table's name, a queue's URL, a topic's ARN."""
        return text(self.template.resolve({"Ref": logical_id}))

    def topics(self) -> list[dict[str, str]]:
        """Return topic, subject and text of each message that was published, by topic."""
        connection = HTTPConnection(LOOPBACK, self.port, timeout=10)
        try:
            connection.request("GET", "/_local/topics")
            return list(json.load(connection.getresponse()))
        finally:
            connection.close()

    def queue_url(self, logical_id: str) -> str:
        """Return the URL of a queue."""
        return self.template.queue_url(logical_id)

    def queue_arn(self, logical_id: str) -> str:
        """Return the ARN of a queue."""
        return self.template.arn(logical_id)

    def environment(self, function: str, host: str = LOOPBACK) -> dict[str, str]:
        """Return a function's environment, with the emulator's address as seen from the function.

        Args:
            function: its logical id.
            host: the name of this machine there: "host.docker.internal" in a container.
        """
        url = f"http://{host}:{self.port}"
        for found in self.template.at(url).functions():
            if found.name == function:
                others = {k: f"http://{host}:{port}" for k, port in self.endpoints.items()}
                return {**found.environment, **CREDENTIALS, "AWS_ENDPOINT_URL": url, **others}
        raise TemplateError(f"{self.template.path}: no Python function {function}")

    def sam_environment(self, host: str = "host.docker.internal") -> dict[str, dict[str, str]]:
        """Return what SAM CLI's --env-vars file holds: only declared variables count there."""
        return {
            f.name: {k: v for k, v in self.environment(f.name, host).items() if k in f.declared}
            for f in self.template.functions()
        }

    def write_sam_environment(self, path: Path) -> None:
        """Write that file, for `sam local invoke` and `sam local start-api`."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(self.sam_environment(), indent=2) + "\n", encoding="utf-8")

    def create(self) -> None:
        """Create the template's resources. Raises `TemplateError` for what AWS would refuse."""
        template, sqs, name = self.template, self.client("sqs"), ""
        try:
            for name, table in template.resolved(*TABLES).items():
                self._create_table(name, table)
            queues = template.resolved(QUEUE)
            for name, queue in queues.items():
                attributes = _attributes(queue, but=("QueueName", "RedrivePolicy", "Tags"))
                if not is_true(attributes.get("FifoQueue")):  # the API takes no "false" here
                    attributes.pop("FifoQueue", None)
                sqs.create_queue(QueueName=template.name(name), Attributes=attributes)
            for name, queue in queues.items():  # a redrive policy names a queue that has to exist
                if policy := queue.get("RedrivePolicy"):
                    received = template.whole(policy["maxReceiveCount"], f"{name}.maxReceiveCount")
                    policy = {**policy, "maxReceiveCount": received}
                    redrive = {"RedrivePolicy": json.dumps(policy)}
                    sqs.set_queue_attributes(QueueUrl=self.queue_url(name), Attributes=redrive)
            for name, topic in template.resolved(TOPIC).items():
                fifo = {"FifoTopic": "true"} if is_true(topic.get("FifoTopic")) else {}
                self.client("sns").create_topic(Name=template.name(name), Attributes=fifo)
            for name, _, _ in template.resources(BUCKET):
                self.client("s3").create_bucket(Bucket=template.name(name))
            for name, arn, subscription in template.subscriptions():  # noqa: B007 - for errors
                if subscription["Protocol"] not in NOT_CALLED:
                    self._subscribe(arn, subscription)
        except (ClientError, ParamValidationError) as error:
            told = getattr(error, "response", {}).get("Error", {}).get("Message") or str(error)
            raise TemplateError(f"{name}: AWS would refuse it: {' '.join(told.split())}") from None
        except KeyError as error:
            raise TemplateError(f"{name}: property {error.args[0]} is missing") from None
        except HTTPClientError as error:
            self.check(within=1)  # its connections close before the process ends
            raise TemplateError(f"the emulated AWS does not answer: {error}") from None

    def _create_table(self, logical_id: str, properties: dict[str, Any]) -> None:
        wanted = {k: properties[k] for k in _KEYS if k in properties}
        if not wanted:  # AWS::Serverless::SimpleTable
            key = properties.get("PrimaryKey") or {"Name": "id", "Type": "String"}
            name = {"AttributeName": key["Name"]}
            wanted = {
                "AttributeDefinitions": [{**name, "AttributeType": key["Type"][0]}],
                "KeySchema": [{**name, "KeyType": "HASH"}],
            }
        wanted |= {"TableName": self.template.name(logical_id), "BillingMode": "PAY_PER_REQUEST"}
        self.client("dynamodb").create_table(**wanted)

    def _subscribe(self, topic: str, properties: dict[str, Any]) -> None:
        self.client("sns").subscribe(
            TopicArn=topic,
            Protocol=properties["Protocol"],
            Endpoint=properties["Endpoint"],
            Attributes=_attributes(properties, but=("TopicArn", "Protocol", "Endpoint", "Region")),
        )


def _attributes(properties: dict[str, Any], but: tuple[str, ...]) -> dict[str, str]:
    """Return properties as the APIs take them: text, with JSON for what is structured."""
    return {
        key: json.dumps(value) if isinstance(value, dict) else text(value)
        for key, value in properties.items()
        if key not in but
    }
