"""Durable functions: Lambda's Invoke API and durable execution API, in front of the SDK's emulator.

The emulator (dex-local-runner, in a process of its own) keeps executions and decides when the
function runs again; each run is an invocation of a sandbox. This module adds what the emulator
lacks: unique execution names, invocation by alias, and dead letters.
https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking.html
https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
"""

import http.client
import json
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from .emulator import LOOPBACK, Emulator, make_client, server_environment
from .processes import Service, patience
from .sandbox import Invocation, Runner
from .server import Answer, Server
from .template import ACCOUNT, FUNCTION, REGION, Template, TemplateError

_MARK = "x-dex-handler-invoke"  # on the emulator's invocations; all others start an execution
_INVOKE = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")
_OPERATION = re.compile(r"(.+?)(Started|Succeeded|Failed|TimedOut|Stopped|Cancelled|Completed)")
_STARTS_SECONDS = 20.0
_LOOK_SECONDS = 2.0  # between looks at every execution
_MOMENT_SECONDS = 0.5  # that the emulator may take to end an execution
_SHOWN = 20
_LATEST = "$LATEST"
_PUBLISHED = "1"  # the version behind an alias
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


@dataclass
class Execution:
    """An execution that was started here."""

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
        days = config.get("RetentionPeriodInDays", 14)
        days = template.whole(days, f"{logical_id}.RetentionPeriodInDays")
        if not 1 <= timeout <= 31_622_400 or not 1 <= days <= 90:
            raise TemplateError(f"{logical_id}: DurableConfig is out of range: {config}")
        target = (properties.get("DeadLetterQueue") or {}).get("TargetArn", "")
        alias = str(properties.get("AutoPublishAlias", ""))
        found[name] = DurableFunction(name, alias, timeout, days, target, reserved.get(logical_id))
    return found


class Durable:
    """Runs the template's durable functions.

    Args:
        template: declares the functions.
        aws: takes dead letters.
        runners: the sandboxes of all functions, by logical id; may be filled later.
        host: an address to listen on beside loopback, for containers.
        skip_time: let waits and delays of retries end at once.
        log: receives (function, line) when an execution starts or ends.
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
        self._expected: dict[str, float] = {}  # executions about to end → until when to look
        self._closed = False
        self._servers: list[Server] = []
        self._process: Service | None = None

    def listen(self) -> None:
        """Open the Lambda API, at `url`."""
        port = 0
        for host in dict.fromkeys((LOOPBACK, self._host)):
            self._servers.append(Server(host, port, self._respond))
            port = self._servers[0].server_port
            serve = self._servers[-1].serve_forever
            threading.Thread(target=serve, args=(0.05,), daemon=True).start()
        self.url = f"http://{LOOPBACK}:{port}"
        self._aws.endpoints["AWS_ENDPOINT_URL_LAMBDA"] = port

    def start(self) -> None:
        """Open the Lambda API and start the emulator."""
        self.listen()
        port = _free_port()
        self.emulator_url = f"http://{LOOPBACK}:{port}"
        configurations: dict[str, Any] = {name: {} for name in self._runners}
        for f in self.functions.values():
            config = {"ExecutionTimeout": f.timeout, "RetentionPeriodInDays": f.retention_days}
            configurations[f.name] = {"DurableConfig": config}
        options = {
            "--host": LOOPBACK if self._host == LOOPBACK else "0.0.0.0",
            "--port": port,
            "--lambda-endpoint": self.url,
            "--local-runner-region": REGION,
            "--store-type": "memory",
            "--log-level": "ERROR",
            "--function-configs": json.dumps(configurations),
        }
        command = ["start-server", *(word for option in options.items() for word in option)]
        command += ["--skip-time"] if self._skip_time else []
        environment = server_environment()
        self._process = Service("durable_server.py", *command, environment=environment, sockets=[])
        self._client = make_client("lambda", self.emulator_url)

    def wait(self) -> None:
        """Wait until the emulator is up. Raises `TemplateError` if it does not start."""
        ends = time.monotonic() + patience(_STARTS_SECONDS)
        while time.monotonic() < ends and self._process and not self._process.end():
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
        if self._process and self._process.end():
            raise TemplateError("the emulator ended, and with it all durable executions")

    def close(self) -> None:
        """End the emulator, and with it every execution."""
        self._closed = True
        self._happened.set()
        if self._process:
            self._process.stop()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._process, self._servers = None, []

    def state(self) -> list[dict[str, Any]]:
        """Return the newest executions with their operations."""
        newest = list(self.executions.values())[: -_SHOWN - 1 : -1]
        operations = [self._operations(e.arn) for e in newest]
        return [
            {"name": e.name, "function": e.function.name, "status": e.status, "operations": done}
            for e, done in zip(newest, operations, strict=True)
        ]

    def expire(self, job_id: str) -> list[str]:
        """Let the callbacks of a job's running execution time out, or else the execution.

        Returns what timed out. Raises `TemplateError` if no execution of the job runs.
        """
        running = (e for e in list(self.executions.values()) if e.status == "RUNNING")
        found = [e.arn for e in running if e.name.startswith(job_id)]
        if not found:
            raise TemplateError(f"no execution of {job_id} runs; see `python -m local jobs`")
        expired = json.loads(self._forward("POST", f"/expire/{quote(found[-1], '')}", b"")[2])
        self._look_at(found[-1])
        return list(expired)

    def _respond(self, method: str, target: str, headers: Message, body: bytes | None) -> Answer:
        """Answer one request to the Lambda API."""
        try:
            status, found, content = self._answer(method, target, headers, body or b"")
        except (OSError, ValueError, KeyError) as error:
            status, found, content = _error(503, "ServiceException", str(error))
        return status, [*found, ("x-amzn-requestid", str(uuid.uuid4()))], content

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if match := _INVOKE.fullmatch(path):
            name = unquote(match[1]).rpartition(":function:")[2]
            return self._invoke(":".join([name, *query.get("Qualifier", [])]), headers, body)
        answer = self._forward(method, target, body)
        if stopped := re.fullmatch(r"/2025-12-01/durable-executions/([^/]+)/stop", path):
            self._look_at(unquote(stopped[1]))
        return answer

    def _invoke(self, target: str, headers: Any, body: bytes) -> Answer:
        name, _, qualifier = target.partition(":")
        durable, runner = self.functions.get(name), self._runners.get(name)
        known = {"", _LATEST, durable.alias} if durable else {qualifier}
        if runner is None or qualifier not in known:
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
        if headers.get("x-amz-invocation-type") == "Event":  # failures are not retried here
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
                arn = self._start(function, name, body)
                execution = Execution(function, name, body, arn, asynchronous)
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
        """Pass a request on to the emulator."""
        connection = http.client.HTTPConnection(urlsplit(self.emulator_url).netloc, timeout=60)
        try:
            connection.request(method, target, body, {_JSON[0]: _JSON[1]})
            made = connection.getresponse()
            shown = [(n, v) for n, v in made.getheaders() if n.lower().startswith("x-amz")]
            return made.status, [*shown, _JSON], made.read()
        finally:
            connection.close()

    def _look_at(self, arn: str) -> None:
        """Look often at an execution that is about to end: the emulator takes a moment."""
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
        """Take note of the end of an execution."""
        try:
            found = self._client.get_durable_execution(DurableExecutionArn=execution.arn)
            if found["Status"] == "RUNNING":
                return
            if execution.asynchronous and found["Status"] in _UNSETTLED:
                self._dead_letter(execution, found)
        except (BotoCoreError, ClientError):
            return  # one of the two emulators ends
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
            "RequestID": {"DataType": "String", "StringValue": execution.request_id},
            "ErrorCode": {"DataType": "Number", "StringValue": found.get("Code", "200")},
            "ErrorMessage": {"DataType": "String", "StringValue": message[:1024]},
        }
        self._aws.client("sqs").send_message(
            QueueUrl=f"{self._aws.url}/{ACCOUNT}/{queue}",
            MessageBody=execution.payload.decode("utf-8"),
            MessageAttributes=attributes,
        )

    def _operations(self, arn: str) -> list[dict[str, Any]]:
        """Return name, type and status of each operation of an execution."""
        try:
            events = self._client.get_durable_execution_history(DurableExecutionArn=arn)["Events"]
        except (BotoCoreError, ClientError):
            return []
        found: dict[str, dict[str, Any]] = {}
        for event in events:
            kind = _OPERATION.fullmatch(event["EventType"])
            if kind and kind[1] not in ("Execution", "Invocation"):
                first = {"name": event.get("Name", ""), "type": kind[1]}
                found.setdefault(event.get("Id", ""), first)["status"] = kind[2].lower()
        return list(found.values())


def _error(status: int, code: str, message: str) -> Answer:
    headers = [("x-amzn-errortype", code), _JSON]
    return status, headers, json.dumps({"Type": "User", "Message": message}).encode()


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as taken:
        return int(taken.getsockname()[1])
