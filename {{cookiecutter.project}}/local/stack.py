"""The whole stack on this machine: emulated AWS, sandboxes, HTTP front and pollers.

Each module's docstring names the part of AWS that it imitates.
"""

import base64
import errno
import importlib.util
import json
import os
import re
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from . import openapi
from .emulator import LOOPBACK, Emulator
from .events import example
from .http_api import Front, own_answer
from .poller import Poller, mappings
from .processes import Guard
from .sandbox import InitError, Invocation, Runner
from .server import Answer
from .template import BUCKET, FUNCTION, QUEUE, TABLES, TOPIC, Template, TemplateError

__all__ = ["InitError", "Stack", "TemplateError"]

_PAGE = Path(__file__).with_name("page.html")
_POLICY = "default-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
_PAGE_HEADERS = [
    ("cache-control", "no-store"),
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
]
_DURABLE_PACKAGE = "aws-durable-execution-sdk-python-testing"
_SHOWN = 100
_DEPTHS = {"visible": "", "in_flight": "NotVisible", "delayed": "Delayed"}


class Stack:
    """A running project.

    Example:
        with Stack(".", parameters={"MaxAttempts": "2"}) as stack:
            httpx.post(f"{stack.url}/jobs", json={"site": "example.org"})

    Args:
        project: the folder that holds template.yaml.
        parameters: template parameters by name.
        port: of the HTTP API; 0 takes a free one.
        reclaim: discard each sandbox after its response.
        concurrency: sandboxes per function at most.
        host: address for the emulated AWS beside loopback, for containers.
        skip_time: let the waits of durable executions end at once.
        echo: receives ("log" | "event" | "warning", function, line) as things happen.

    Raises TemplateError or InitError, one line each, when it cannot start; nothing is left running.
    """

    def __init__(
        self,
        project: str | Path = ".",
        parameters: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        reclaim: bool = False,
        concurrency: int = 10,
        host: str = LOOPBACK,
        skip_time: bool = False,
        echo: Callable[[str, str, str], None] = lambda kind, function, line: None,
    ) -> None:
        self.project = Path(project).resolve()
        self.template = Template.load(self.project / "template.yaml", parameters)
        self.aws = Emulator(self.template, host)
        self.url = ""
        self.runners: dict[str, Runner] = {}
        self.pollers: list[Poller] = []
        self.invocations: deque[Invocation] = deque(maxlen=1000)
        self.leaks: list[str] = []
        self.log: deque[str] = deque(maxlen=10_000)
        self.unsupported: list[str] = []
        self._options = (port, reclaim, concurrency)
        self.durable = _durable(self, host, skip_time)
        self._echo = echo
        self._ready = False
        self._closing = ExitStack()

    def __enter__(self) -> "Stack":
        try:
            self._start(*self._options)
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End everything, at once."""
        self._closing.close()

    def _start(self, port: int, reclaim: bool, concurrency: int) -> None:
        sources, unsupported = mappings(self.template)
        if calls := os.environ.get("LOCAL_CALLS"):
            Path(calls).write_bytes(b"")
        try:
            front = Front(port, self.template, self.runners, self._local, self._event)
        except OSError as error:
            taken = "is taken; end what listens there, or choose another one: --port"
            why = taken if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise TemplateError(f"port {port} {why}") from None
        defer = self._closing.callback  # closes in reverse order
        defer(front.server_close)
        self.routes, self.url = front.routes, f"http://{LOOPBACK}:{front.server_port}"
        self.unsupported = [*self.template.unsupported(), *front.unsupported, *unsupported]
        folder = tempfile.mkdtemp(prefix="laptop-stack-")
        guard = Guard(folder)
        defer(guard.close)
        defer(self.aws.stop)
        self.aws.start()
        if self.durable:
            defer(self.durable.close)
            self.durable.start()
        for f in self.template.functions():
            environment = self.aws.environment(f.name)
            shared = (reclaim, guard, folder, self._output, self._finished)
            self.runners[f.name] = Runner(f, environment, concurrency, *shared)
            defer(self.runners[f.name].close)
        with ThreadPoolExecutor() as pool:
            starts = [pool.submit(runner.start) for runner in self.runners.values()]
            self.aws.create()
            if self.durable:
                self.durable.wait()
            for start in starts:
                start.result()
        for mapping in sources:
            self.pollers.append(Poller(mapping, self.runners[mapping.function], self.aws))
            defer(self.pollers[-1].close)
        threading.Thread(target=front.serve_forever, args=(0.05,), daemon=True).start()
        defer(front.shutdown)
        self._ready = True

    def check(self) -> None:
        """Raise TemplateError, one line, if an emulator has ended by itself."""
        self.aws.check()
        if self.durable:
            self.durable.check()

    def invoke(self, function: str, event: Any) -> Invocation:
        """Run one event on a function and wait for its end."""
        return self.runners[function].invoke(event).result()

    def kill(self, function: str) -> int:
        """Kill a function's busy sandboxes, as a failing host does; return how many."""
        return self.runners[function].kill_busy()

    @contextmanager
    def paused(self, function: str) -> Iterator[None]:
        """Receive nothing from the function's queues inside the `with`."""
        with ExitStack() as pauses:
            for poller in self.pollers:
                if poller.mapping.function == function:
                    pauses.enter_context(poller.paused())
            yield

    def jobs(self) -> list[dict[str, Any]]:
        """Return the items of JobsTable, newest first; empty without such a table."""
        if "JobsTable" not in self.template.document["Resources"]:
            return []
        from boto3.dynamodb.types import TypeDeserializer  # late, as in Emulator.client

        read, name = TypeDeserializer().deserialize, self.template.name("JobsTable")
        pages = self.aws.client("dynamodb").get_paginator("scan").paginate(TableName=name)
        items = [{k: read(v) for k, v in item.items()} for page in pages for item in page["Items"]]
        return sorted(items, key=lambda item: str(item.get("created_at", "")), reverse=True)

    def queues(self) -> list[dict[str, Any]]:
        """Return each queue with its depth, and whether it is a dead-letter queue."""
        declared = self.aws.template.resolved(QUEUE)
        policies = [q.get("RedrivePolicy") or {} for q in declared.values()]
        targets = {p.get("deadLetterTargetArn") for p in policies}
        if self.durable:
            targets |= {f.dead_letters for f in self.durable.functions.values()}
        found = []
        for name in declared:
            depth = self.aws.client("sqs").get_queue_attributes(
                QueueUrl=self.aws.queue_url(name), AttributeNames=["All"]
            )["Attributes"]
            counts = {k: int(depth[f"ApproximateNumberOfMessages{v}"]) for k, v in _DEPTHS.items()}
            dead = self.aws.queue_arn(name) in targets
            found.append({"name": name, "dead_letter": dead, **counts})
        return found

    def dead_letters(self) -> list[dict[str, Any]]:
        """Look at the messages in dead-letter queues; each look counts as one more receive."""
        sqs, found = self.aws.client("sqs"), []
        for queue in (q["name"] for q in self.queues() if q["dead_letter"]):
            at, seen = {"QueueUrl": self.aws.queue_url(queue)}, []
            look = {"MaxNumberOfMessages": 10, "VisibilityTimeout": 10, "AttributeNames": ["All"]}
            while messages := sqs.receive_message(**at, **look).get("Messages"):
                seen += messages
            for m in seen:
                again = {"ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0}
                sqs.change_message_visibility(**at, **again)
                received = int(m["Attributes"]["ApproximateReceiveCount"])
                found.append({"queue": queue, "received": received, "body": m["Body"]})
        return found

    def resources(self) -> list[dict[str, str]]:
        """Return logical id, type, name and ARN of each emulated resource, and URLs of queues."""
        template, found = self.aws.template, []
        for name, kind, _ in template.resources(*TABLES, QUEUE, TOPIC, BUCKET, FUNCTION):
            known = {"id": name, "type": kind, "name": template.name(name)}
            url = {"url": template.queue_url(name)} if kind == QUEUE else {}
            found.append({**known, "arn": template.arn(name), **url})
        return found

    def invoke_once(self, function: str, event: Any = None) -> dict[str, Any]:
        """Invoke any function; without an event, with one of its schedule or rule.

        Starts an execution of a durable function, and does not wait for its end.
        """
        if function not in self.runners:
            raise TemplateError(f"no function {function}; there are: {', '.join(self.runners)}")
        event = example(self.aws.template, function) if event is None else event
        durable = self.durable and self.durable.functions.get(self.template.name(function))
        if durable:
            target = {"FunctionName": f"{durable.name}:{durable.alias}", "InvocationType": "Event"}
            begun = self.aws.client("lambda").invoke(**target, Payload=json.dumps(event))
            return {"result": {"DurableExecutionArn": begun["DurableExecutionArn"]}}
        invocation = self.invoke(function, event)
        return {"error": invocation.error} if invocation.error else {"result": invocation.result}

    def expire(self, job_id: str) -> dict[str, Any]:
        """Let the callbacks that a job's execution waits for time out, else the execution."""
        if not self.durable:
            raise TemplateError("no durable function: only its jobs have deadlines to bring about")
        return {"expired": self.durable.expire(job_id)}

    def state(self) -> dict[str, Any]:
        """Return everything that the page shows."""
        functions = {name: list(runner.sandboxes) for name, runner in self.runners.items()}
        shown = ("pid", "state", "invocations")
        return {
            "project": self.project.name,
            "functions": [
                {"name": name, "sandboxes": [{k: getattr(s, k) for k in shown} for s in sandboxes]}
                for name, sandboxes in functions.items()
            ],
            "queues": self.queues(),
            "jobs": self.jobs()[:_SHOWN],
            "executions": self.durable.state() if self.durable else [],
            "invocations": [asdict(i) for i in list(self.invocations)[: -_SHOWN - 1 : -1]],
            "topics": self.aws.topics()[-_SHOWN:],
            "leaks": self.leaks,
            "unsupported": self.unsupported,
        }

    def _local(self, method: str, target: str, headers: Any, body: bytes | None) -> Answer:
        path = urlsplit(target).path.rstrip("/")
        if path == "/_local":
            html = ("content-type", "text/html; charset=utf-8")
            return 200, [*_PAGE_HEADERS, html], _PAGE.read_bytes()
        views: dict[str, Callable[[], Any]] = {
            "state": self.state, "jobs": self.jobs, "dead-letters": self.dead_letters,
            "resources": self.resources, "topics": self.aws.topics,
        }  # fmt: skip
        if (self.project / "docs" / "openapi.yaml").is_file():
            views["openapi.json"] = lambda: openapi.document(self.project, self.url)
        commands: dict[str, Callable[..., Any]]
        commands = {"invoke": self.invoke_once, "expire": self.expire}
        verb, _, name = path.removeprefix("/_local/").partition("/")
        try:
            if method == "GET" and not name and verb in views:
                answer = views[verb]()
            elif method == "POST" and name and verb in commands:
                answer = commands[verb](unquote(name), *json.loads(body or b"[]"))
            else:
                return own_answer(404, "Not Found")
        except TemplateError as error:
            answer = {"refused": str(error)}
        content = json.dumps(answer, default=_plain).encode()
        return 200, [*_PAGE_HEADERS, ("content-type", "application/json")], content

    def _output(self, function: str, line: str) -> None:
        self._say("log", function, line)

    def _event(self, function: str, line: str) -> None:
        self._say("event", function, line)

    def _say(self, kind: str, function: str, line: str) -> None:
        self.log.append(f"{function}  {line}")
        if self._ready:  # until then, the exception tells what is wrong
            self._echo(kind, function, line)

    def _finished(self, invocation: Invocation) -> None:
        self.invocations.append(invocation)
        name, source, error = invocation.function, invocation.source, invocation.error
        if error:
            message = " ".join(str(error["errorMessage"]).split())
            self._say("warning", name, f"{source}: {error['errorType']}: {message}")
            for mapping in (poller.mapping for poller in self.pollers):
                if (mapping.function, mapping.queue) == (name, source.partition(" ")[0]):
                    back = f"in {mapping.visibility} s back in {mapping.queue}, or dead-lettered"
                    self._say("event", name, back)
        elif not re.match(r"[A-Z]+ /", source):  # the front tells of those itself
            start = "cold" if invocation.cold else "warm"
            self._say("event", name, f"{source} in {invocation.duration_ms:.0f} ms, {start}")
        for leak in invocation.leaks:
            self.leaks.append(f"{name}: {leak}, left over after {source}")
            self._say("warning", name, f"left over after {source}, and frozen: {leak}")


def _durable(stack: Stack, host: str, skip_time: bool) -> Any:
    """Return what runs durable functions, if the template has any."""
    functions = [raw for _, _, raw in stack.template.resources(FUNCTION)]
    merged = [stack.template.with_globals("Function", raw) for raw in functions]
    if not any("DurableConfig" in properties for properties in merged):
        return None
    if importlib.util.find_spec(_DURABLE_PACKAGE.replace("-", "_")) is None:
        raise TemplateError(
            f"template.yaml has a durable function, which needs {_DURABLE_PACKAGE}."
            " Add it to requirements-dev.txt and run `make setup`."
        )
    from .durable import Durable  # late, so that other projects start sooner

    shared = (stack.template, stack.aws, stack.runners)
    return Durable(*shared, host=host, skip_time=skip_time, log=stack._event)


def _plain(value: Any) -> Any:
    """Return a value that JSON lacks in JSON's terms; binary attributes in base64."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, set):
        return sorted(map(_plain, value), key=str)
    binary = getattr(value, "value", value)  # boto3 wraps bytes
    return base64.b64encode(binary).decode() if isinstance(binary, bytes) else str(value)
