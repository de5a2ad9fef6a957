"""Durable functions: Lambda's Invoke API and durable execution API, in front of the SDK's emulator.

The emulator (dex-local-runner, a process of its own) keeps executions and says when the function
runs again; each run is an invocation of a sandbox like any other. What it lacks is here: execution
names that are taken only once, invocation by alias, and dead letters.
https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking.html
https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from .emulator import LOOPBACK, Emulator, make_client, server_environment
from .processes import Guard, kill_tree, patience
from .sandbox import Invocation, Runner
from .server import Answer, Server
from .template import ACCOUNT, FUNCTION, REGION, Template, TemplateError

_MARK = "x-dex-handler-invoke"  # the emulator's invocations; all others begin an execution
_INVOKE = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_STARTS_SECONDS = 20.0
_LOOK_SECONDS = 2.0  # after which the end of an execution is noticed at the latest
_MOMENT_SECONDS = 0.5
_SHOWN = 20
_LATEST = "$LATEST"
_PUBLISHED = "1"  # the version behind an alias; a stack lives for one version
_JSON = ("content-type", "application/json")
_UNSETTLED = ("FAILED", "STOPPED", "TIMED_OUT")


@dataclass(frozen=True)
class DurableFunction:
    """A function that has DurableConfig; `timeout` in seconds, `dead_letters` an ARN or ''.

    `reserved` is ReservedConcurrentExecutions.
    """

    name: str
    alias: str
    timeout: int
    retention_days: int
    dead_letters: str
    reserved: int | None = None

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """What may follow the function's name: its alias, or $LATEST."""
        return (self.alias, _LATEST)


@dataclass
class Execution:
    """An execution that was begun here, under a name of its own."""

    function: DurableFunction
    name: str
    payload: bytes
    arn: str
    asynchronous: bool
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "RUNNING"


def durable_functions(template: Template) -> dict[str, DurableFunction]:
    """Return the durable functions of a template by name.

    Raises `TemplateError` for what AWS would refuse.
    """
    found, reserved = {}, {f.name: f.reserved for f in template.functions()}
    for logical_id, _, raw in template.resources(FUNCTION):
        merged = template.with_globals("Function", raw)
        wanted = ("DurableConfig", "AutoPublishAlias", "DeadLetterQueue")
        properties = template.resolve({key: merged[key] for key in wanted if key in merged})
        if "DurableConfig" not in properties:
            continue
        config, name = properties["DurableConfig"], template.name(logical_id)
        timeout = template.whole(config["ExecutionTimeout"], f"{logical_id}.ExecutionTimeout")
        days = template.whole(
            config.get("RetentionPeriodInDays", 14), f"{logical_id}.RetentionPeriodInDays"
        )
        if not 1 <= timeout <= 31_622_400 or not 1 <= days <= 90:
            raise TemplateError(f"{logical_id}: DurableConfig is out of range: {config}")
        target = (properties.get("DeadLetterQueue") or {}).get("TargetArn", "")
        alias = str(properties.get("AutoPublishAlias", ""))
        found[name] = DurableFunction(name, alias, timeout, days, target, reserved.get(logical_id))
    return found


class Durable:
    """What the template's durable functions run on.

    Args:
        template: whose functions these are.
        aws: where dead letters go.
        runners: the sandboxes of all functions, by logical id; may be filled later.
        host: an address to listen on beside loopback, for containers.
        skip_time: let waits and delays of retries end at once.
        log: receives (function, line) for what happens to executions.
    """

    def __init__(
        self,
        template: Template,
        aws: Emulator,
        runners: dict[str, Runner],
        *,
        host: str = LOOPBACK,
        skip_time: bool = False,
        log: Callable[[str, str], None] = lambda function, line: None,
    ) -> None:
        self.functions = durable_functions(template)
        self.executions: dict[tuple[str, str], Execution] = {}
        self.url = self.emulator_url = ""
        self._aws, self._runners, self._host, self._log = aws, runners, host, log
        self._skip_time = skip_time
        self._names = threading.Lock()
        self._happened = threading.Event()
        self._expected: dict[str, float] = {}  # executions about to end, and how long to look
        self._closed = False
        self._servers: list[_LambdaApi] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    def listen(self) -> None:
        """Open the Lambda API, at `url`."""
        for host in dict.fromkeys((LOOPBACK, self._host)):
            port = self._servers[0].server_port if self._servers else 0
            self._servers.append(_LambdaApi(host, port, self._answer))
        self.url = f"http://{LOOPBACK}:{self._servers[0].server_port}"
        self._aws.endpoints["AWS_ENDPOINT_URL_LAMBDA"] = self._servers[0].server_port
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def start(self) -> None:
        """Open the Lambda API and start the emulator."""
        self.listen()
        port = _free_port()
        self.emulator_url = f"http://{LOOPBACK}:{port}"
        configurations: dict[str, Any] = {name: {} for name in self._runners} | {
            f.name: {
                "DurableConfig": {
                    "ExecutionTimeout": f.timeout,
                    "RetentionPeriodInDays": f.retention_days,
                }
            }
            for f in self.functions.values()
        }
        options = {
            "--host": LOOPBACK if self._host == LOOPBACK else "0.0.0.0",
            "--port": port,
            "--lambda-endpoint": self.url,
            "--local-runner-region": REGION,
            "--store-type": "memory",
            "--log-level": "ERROR",
            "--function-configs": json.dumps(configurations),
        }
        emulator = Path(__file__).with_name("durable_server.py")
        command = [sys.executable, "-P", str(emulator), "start-server"]
        command += [str(word) for option in options.items() for word in option]
        self._process = subprocess.Popen(
            [*command, *(["--skip-time"] if self._skip_time else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=server_environment(),
            start_new_session=True,
        )
        self._guard = Guard()
        self._guard.add(self._process.pid)
        self._client = make_client("lambda", self.emulator_url)

    def wait(self) -> None:
        """Wait until the emulator is up. Raises `TemplateError` when it does not come up."""
        ends = time.monotonic() + patience(_STARTS_SECONDS)
        while time.monotonic() < ends and self._process and self._process.poll() is None:
            try:
                self._forward("GET", "/health", b"")
            except OSError:
                time.sleep(0.02)
            else:
                threading.Thread(target=self._watch, daemon=True).start()
                return
        self.close()
        raise TemplateError("the emulator of durable executions does not start; run `make setup`")

    def check(self) -> None:
        """Raise `TemplateError` if the emulator has ended."""
        if self._process and self._process.poll() is not None:
            raise TemplateError("the emulator ended, and with it all durable executions")

    def close(self) -> None:
        """End the emulator, and with it every execution."""
        self._closed = True
        self._happened.set()
        if self._process:
            kill_tree(self._process.pid)
            self._process.wait()
        if self._guard:
            self._guard.close()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._process = self._guard = None
        self._servers = []

    def state(self) -> list[dict[str, Any]]:
        """Return the newest executions with their operations."""
        return [
            {
                "name": e.name,
                "function": e.function.name,
                "status": e.status,
                "operations": self._operations(e.arn),
            }
            for e in list(self.executions.values())[: -_SHOWN - 1 : -1]
        ]

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        path = urlsplit(target).path
        if match := _INVOKE.fullmatch(path):
            name = unquote(match[1]).rpartition(":function:")[2]
            query = urlsplit(target).query
            if qualifier := re.search(r"(?:^|&)Qualifier=([^&]+)", query):
                name += f":{unquote(qualifier[1])}"
            return self._invoke(name, headers, body)
        answer = self._forward(method, target, body)
        if stopped := re.fullmatch(r"/2025-12-01/durable-executions/([^/]+)/stop", path):
            self._look_at(unquote(stopped[1]))
        return answer

    def _invoke(self, target: str, headers: Any, body: bytes) -> Answer:
        name, _, qualifier = target.partition(":")
        durable, runner = self.functions.get(name), self._runners.get(name)
        if runner is None or (qualifier and durable and qualifier not in durable.qualifiers):
            return _error(404, "ResourceNotFoundException", f"Function not found: {target}")
        try:
            event = json.loads(body or b"{}")
        except ValueError:
            why = "Could not parse request body into json"
            return _error(400, "InvalidRequestContentException", why)
        version = _PUBLISHED if durable and qualifier not in ("", _LATEST) else _LATEST
        executed = [("x-amz-executed-version", version)]
        if durable and _MARK not in headers:
            if not qualifier:
                why = "You cannot invoke a durable function using an unqualified ARN."
                return _error(400, "InvalidParameterValueException", why)
            status, told, content = self._begin(durable, headers, body)
            return status, [*told, *executed], content
        source = "execution" if durable else "invoke"
        future = runner.invoke(event, source)
        if headers.get("x-amz-invocation-type") == "Event":  # a failure is not tried again here
            return 202, [], b""
        invocation: Invocation = future.result()
        if durable and '"PENDING"' not in (invocation.payload or ""):  # it may have ended
            self._look_at(event["DurableExecutionArn"])
        if invocation.error:
            failed = ("x-amz-function-error", "Unhandled")
            return 200, [*executed, failed], json.dumps(invocation.error).encode()
        return 200, executed, (invocation.payload or "null").encode()

    def _begin(self, function: DurableFunction, headers: Any, body: bytes) -> Answer:
        name = headers.get("x-amz-durable-execution-name") or str(uuid.uuid4())
        asynchronous = headers.get("x-amz-invocation-type") == "Event"
        if function.reserved == 0:
            # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
            why = "Rate Exceeded."
            if not asynchronous:
                return _error(429, "TooManyRequestsException", why)
            refused = {"Code": "429", "Error": {"ErrorMessage": why}}
            self._dead_letter(Execution(function, name, body, "", asynchronous), refused)
            self._log(function.name, f"execution {name} is dead-lettered: no concurrency is left")
            return 202, [], b""
        with self._names:
            execution = self.executions.get((function.name, name))
            if execution and execution.payload != body:
                why = "Execution with this name has already been started with another payload."
                return _error(409, "DurableExecutionAlreadyStartedException", why)
            if execution is None:
                execution = Execution(
                    function, name, body, self._start(function, name, body), asynchronous
                )
                self.executions[function.name, name] = execution
                self._log(function.name, f"execution {name} begins")
        told = [("x-amz-durable-execution-arn", execution.arn)]
        if asynchronous:
            return 202, told, b""
        while execution.status == "RUNNING" and not self._closed:
            time.sleep(0.02)
        found = self._client.get_durable_execution(DurableExecutionArn=execution.arn)
        if execution.status == "SUCCEEDED":
            return 200, told, found.get("Result", "null").encode()
        error = {name[0].lower() + name[1:]: value for name, value in found["Error"].items()}
        return 200, [*told, ("x-amz-function-error", "Unhandled")], json.dumps(error).encode()

    def _start(self, function: DurableFunction, name: str, body: bytes) -> str:
        begin = {
            "AccountId": ACCOUNT,
            "FunctionName": function.name,
            "FunctionQualifier": function.alias,
            "ExecutionName": name,
            "ExecutionTimeoutSeconds": function.timeout,
            "ExecutionRetentionPeriodDays": function.retention_days,
            "Input": body.decode("utf-8"),
        }
        made = self._forward("POST", "/start-durable-execution", json.dumps(begin).encode())
        return str(json.loads(made[2])["ExecutionArn"])

    def _forward(self, method: str, target: str, body: bytes) -> Answer:
        """Ask the emulator."""
        connection = http.client.HTTPConnection(urlsplit(self.emulator_url).netloc, timeout=60)
        try:
            connection.request(method, target, body, {_JSON[0]: _JSON[1]})
            made = connection.getresponse()
            shown = [(n, v) for n, v in made.getheaders() if n.lower().startswith("x-amz")]
            return made.status, [*shown, _JSON], made.read()
        finally:
            connection.close()

    def _look_at(self, arn: str) -> None:
        """Expect an execution to end: what happens here takes the emulator a moment."""
        self._expected[arn] = time.monotonic() + _MOMENT_SECONDS
        self._happened.set()

    def _watch(self) -> None:
        """Notice the end of executions, and dead-letter those that end badly."""
        looked = 0.0
        while not self._closed:
            self._happened.wait(0.02 if self._expected else _LOOK_SECONDS)
            self._happened.clear()
            every = time.monotonic() > looked + _LOOK_SECONDS
            for execution in list(self.executions.values()):
                if execution.status == "RUNNING" and (every or execution.arn in self._expected):
                    self._look(execution)
            if every:
                looked = time.monotonic()
            for arn, ends in list(self._expected.items()):
                if time.monotonic() > ends:
                    del self._expected[arn]

    def _look(self, execution: Execution) -> None:
        """Look at an execution that is not known to have ended."""
        try:
            found = self._client.get_durable_execution(DurableExecutionArn=execution.arn)
            if found["Status"] == "RUNNING":
                return
            if execution.asynchronous and found["Status"] in _UNSETTLED:
                self._dead_letter(execution, found)
        except (BotoCoreError, ClientError):
            return  # it is ending, or we are
        self._expected.pop(execution.arn, None)
        execution.status = found["Status"]
        end = f"execution {execution.name} ends: {execution.status.lower()}"
        self._log(execution.function.name, end)

    def _dead_letter(self, execution: Execution, found: dict[str, Any]) -> None:
        """Send the event that began an execution to the function's dead-letter queue."""
        queue = execution.function.dead_letters.rpartition(":")[2]
        if not queue:
            return
        message = found.get("Error", {}).get("ErrorMessage") or found["Status"]
        attributes = {
            "RequestID": ("String", execution.request_id),
            "ErrorCode": ("Number", found.get("Code", "200")),
            "ErrorMessage": ("String", message[:1024]),
        }
        self._aws.client("sqs").send_message(
            QueueUrl=f"{self._aws.url}/{ACCOUNT}/{queue}",
            MessageBody=execution.payload.decode("utf-8"),
            MessageAttributes={
                name: {"DataType": kind, "StringValue": value}
                for name, (kind, value) in attributes.items()
            },
        )

    def _operations(self, arn: str) -> list[dict[str, Any]]:
        """Return what an execution has done: name, type, status and times of each operation."""
        try:
            events = self._client.get_durable_execution_history(DurableExecutionArn=arn)["Events"]
        except (BotoCoreError, ClientError):
            return []
        found: dict[str, dict[str, Any]] = {}
        for event in events:
            kind = re.fullmatch(
                r"(.+?)(Started|Succeeded|Failed|TimedOut|Stopped|Cancelled|Completed)",
                event["EventType"],
            )
            if kind is None or kind[1] in ("Execution", "Invocation"):
                continue
            operation = found.setdefault(
                event.get("Id", ""),
                {
                    "name": event.get("Name", ""),
                    "type": kind[1],
                    "started": event["EventTimestamp"],
                },
            )
            operation["status"] = kind[2].lower()
            if kind[2] != "Started":
                operation["ended"] = event["EventTimestamp"]
        return list(found.values())


class _LambdaApi(Server):
    """The Lambda API's socket."""

    def __init__(self, host: str, port: int, answer: Callable[..., Answer]) -> None:
        self._answer = answer
        super().__init__(host, port)

    def respond(self, method: str, target: str, headers: Message, body: bytes | None) -> Answer:
        """Answer one request."""
        try:
            status, found, content = self._answer(method, target, headers, body or b"")
        except (OSError, ValueError, KeyError) as error:
            status, found, content = _error(503, "ServiceException", str(error))
        return status, [*found, ("x-amzn-requestid", str(uuid.uuid4()))], content


def _error(status: int, code: str, message: str) -> Answer:
    headers = [("x-amzn-errortype", code), _JSON]
    return status, headers, json.dumps({"Type": "User", "Message": message}).encode()


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as taken:
        return int(taken.getsockname()[1])
