"""`python -m local` runs the stack until Ctrl-C; its commands ask the stack that runs."""

from __future__ import annotations  # so that an older Python gets as far as `main`

import argparse
import contextlib
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPException
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from . import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parent.parent
STATES = PROJECT / ".local"  # holds a file for each running stack: stack-PID.json
ENVIRONMENT = STATES / "env.json"
_COLOURS = {"log": "\033[2m{}\033[0m", "warning": "\033[33m{}\033[0m", "event": "{}"}
_ROUTINE = {  # what Powertools adds to every line
    "location", "timestamp", "service", "cold_start", "function_name", "function_memory_size",
    "function_arn", "function_request_id", "xray_trace_id", "stack_trace", "exception_name",
    "logger", "requestId",
}  # fmt: skip
_LISTS = {  # command → form of a line, noun
    "jobs": ("{job_id}  {status:<9}  attempts {attempts}", "job"),
    "dead-letters": ("{queue}  received {received} times  {body}", "dead letter"),
    "topics": ("{topic}  {subject}  {message}", "message"),
    "resources": ("{id:<28} {type:<30} {name}", "resource"),
}
_NEEDED = ("awslambdaric", "boto3", "flask", "moto", "werkzeug", "yaml")
_OLDEST_PYTHON = (3, 11)
_ACCEPTED, _NOT_FOUND = 202, 404
_VERSION = f"laptop stack {__version__}"


class UsageError(Exception):
    """Something that the user can correct; one line."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 2 for a `UsageError`."""
    try:
        if os.name == "nt":
            raise UsageError("needs Linux or macOS; on Windows, run it inside WSL")
        if sys.version_info < _OLDEST_PYTHON:
            here = f"Python 3.11 or newer, and this is {sys.version_info[0]}.{sys.version_info[1]}"
            raise UsageError(f"needs {here}. Run `make setup PYTHON=python3.13`, then `make local`")
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # "?" for a character that it lacks
                stream.reconfigure(errors="replace")
        arguments = _parser().parse_args(argv)
        return int(arguments.run(arguments))
    except UsageError as error:
        print(f"local: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local", description="The whole stack on this machine, until Ctrl-C."
    )
    parser.set_defaults(run=_serve)
    add = parser.add_argument
    add("--version", action="version", version=_VERSION)
    add("--port", type=int, default=3000, help="of the HTTP API (3000)")
    add("--reclaim", action="store_true", help="a new sandbox for every event")
    add("--concurrency", type=int, default=10, help="sandboxes per function at most (10)")
    add("--parameter", action="append", default=[], metavar="NAME=VALUE", help="of template.yaml")
    add("--containers", action="store_true", help="open the emulated AWS to containers (sam local)")
    add("--skip-time", action="store_true", help="let waits of durable executions end at once")
    commands = parser.add_subparsers(title="questions to the stack that runs")
    for name, run, what, argument in (
        ("jobs", _list, "list the jobs", ""),
        ("dead-letters", _dead_letters, "look into the dead-letter queues", ""),
        ("topics", _list, "list the messages that topics were sent", ""),
        ("resources", _list, "list tables, queues, topics, buckets and functions", ""),
        ("retry", _retry, "retry a job, as its owner", "job_id"),
        ("expire", _expire, "let a durable job's callback, or its execution, time out", "job_id"),
        ("invoke", _invoke, "run a function once, on an event of its schedule or rule", "function"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.set_defaults(run=run, command=name)
        command.add_argument("--json", action="store_true", help="for scripts")
        if argument:
            command.add_argument(argument)
        if name == "invoke":
            command.add_argument("-e", "--event", type=Path, help="a file that holds the event")
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise UsageError(f"not installed: {', '.join(missing)}. Run `make setup`")
    from .stack import InitError, Stack, TemplateError

    if wrong := [p for p in arguments.parameter if "=" not in p]:
        raise UsageError(f"--parameter {wrong[0]}: write it as NAME=VALUE")
    if not 0 <= arguments.port <= 65_535:
        raise UsageError("--port must be 0 to 65535")
    if arguments.concurrency < 1:
        raise UsageError("--concurrency must be at least 1")
    parameters = dict(p.split("=", 1) for p in arguments.parameter)
    options = {k: getattr(arguments, k) for k in ("port", "reclaim", "concurrency", "skip_time")}
    host = _bridge() if arguments.containers else "127.0.0.1"
    for number in (signal.SIGINT, signal.SIGTERM):  # shells let background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    try:
        with Stack(PROJECT, parameters, **options, host=host, echo=_show) as stack:
            stack.aws.write_sam_environment(ENVIRONMENT)
            _note(stack.url)
            for line in _greeting(stack, host):
                _print(line)
            while True:
                stack.check()
                time.sleep(0.5)
    except (TemplateError, InitError) as error:
        raise UsageError(str(error)) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"something in template.yaml is not as expected: {why}") from None
    except OSError as error:
        raise UsageError(f"{error.filename or 'cannot start'}: {error.strerror}") from None
    except KeyboardInterrupt:
        _print("\nended")
    finally:
        _state(os.getpid()).unlink(missing_ok=True)
    return 0


def _state(pid: int) -> Path:
    return STATES / f"stack-{pid}.json"


def _note(url: str) -> None:
    """Write this stack's address for `_ask`, and forget stacks that were killed."""
    for path in STATES.glob("stack-*.json"):
        if not _runs(path):
            path.unlink(missing_ok=True)
    new = STATES / f"{os.getpid()}.new"  # renamed when complete
    new.write_text(json.dumps({"url": url}), encoding="utf-8")
    new.replace(_state(os.getpid()))


def _runs(path: Path) -> bool:
    """Tell whether the stack of a file still runs."""
    try:
        os.kill(int(path.stem.partition("-")[2]), 0)
    except (OSError, ValueError):
        return False
    return True


def _urls() -> Iterator[str]:
    """Yield the addresses of this project's stacks, the newest first."""
    paths = [path for path in STATES.glob("stack-*.json") if _runs(path)]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # a corrupt file
            yield str(json.loads(path.read_text(encoding="utf-8"))["url"])


def _show(kind: str, function: str, line: str) -> None:
    """Print a line after the function's name, in colour on a terminal."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    for part in _readable(line) if kind == "log" else [line]:
        part = f"{function:<20} {'! ' if kind == 'warning' else ''}{part}"
        _print(part if plain else _COLOURS[kind].format(part))


def _readable(line: str) -> list[str]:
    """Return a line of Powertools' JSON as text; nothing for metrics and the runtime's advice."""
    if line.startswith("LAMBDA_WARNING: Unhandled exception."):
        return []
    try:
        entry = json.loads(line)
    except ValueError:
        return [line]
    if not isinstance(entry, dict) or not entry.keys() & {"_aws", "message", "errorMessage"}:
        return [line]
    if "_aws" in entry:
        return []
    if "errorMessage" in entry:  # an exception in the runtime's JSON
        entry["message"] = f"{entry.pop('errorType', '')}: {entry.pop('errorMessage')}"
        entry["exception"] = "".join(entry.pop("stackTrace", []))
    told = [str(entry.pop(key)) for key in ("level", "message") if key in entry]
    trace = str(entry.pop("exception", "")).splitlines()
    others = [f"{k}={v}" for k, v in entry.items() if k not in _ROUTINE]
    return [" ".join([*told, *others]), *(f"  {part}" for part in trace)]


def _print(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # without a reader, as after `| head`
        sys.stdout.write(line + "\n")  # one write, so that threads' lines do not mix
        sys.stdout.flush()


def _greeting(stack: Any, host: str) -> list[str]:
    """Return the first lines of the screen: the address, what runs, what is not supported."""
    name = stack.project.name
    lines = [f"{name} runs on {stack.url} (page: {stack.url}/_local).", _VERSION, ""]
    lines += [f"  {route.key} → {route.function}" for route in stack.routes]
    lines += [f"  {p.mapping.queue} → {p.mapping.function}" for p in stack.pollers]
    lines += [f"  ! not supported here: {name}" for name in stack.unsupported]
    here = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if others := {r.function.runtime for r in stack.runners.values()} - {here}:
        lines.append(f"  ! {here} here, {', '.join(sorted(others))} on Lambda")
    if idle := ", ".join(f"{n} {kind}" for kind, n in stack.template.without_effect().items()):
        lines.append(f"  without effect here: {idle}")
    if ignored := ", ".join(stack.template.ignored()):
        lines.append(f"  properties without effect here: {ignored}")
    if host != "127.0.0.1":
        lines.append(f"  ! the emulated AWS is open to containers, at {host}:{stack.aws.port}")
        if stack.durable:
            port = stack.durable.emulator_url.rpartition(":")[2]
            lines.append(f"  sam local: DURABLE_EXECUTIONS_EXTERNAL_EMULATOR_PORT={port}")
    names = [r["name"] for r in stack.resources() if not r["type"].endswith("::Function")]
    keys = "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"
    lines += ["", f"The emulated AWS holds {', '.join(names) or 'nothing'}. For AWS CLI:"]
    lines += [f"  {keys} aws --region us-east-1 --endpoint-url {stack.aws.url} sqs list-queues"]
    lines += ["", "Ctrl-C ends it, and all jobs with it. Try it:", f"  {_curl(stack)}", ""]
    return lines


def _curl(stack: Any) -> str:
    """Return a request to try, from the first event in events/ for a POST route."""
    for path in sorted((stack.project / "events").glob("*.json")):
        event = json.loads(path.read_text(encoding="utf-8"))
        key = event.get("routeKey", "") if isinstance(event, dict) else ""
        if key.startswith("POST ") and "{" not in key and event.get("body"):
            body, url = event["body"].replace("'", r"'\''"), stack.url + key.removeprefix("POST ")
            return f"curl -i {url} -H 'Content-Type: application/json' -d '{body}'"
    return f"curl -i {stack.url}/"


def _bridge() -> str:
    """Return the address at which Docker's containers reach this machine."""
    if sys.platform != "linux":
        return "127.0.0.1"  # Docker Desktop maps host.docker.internal to loopback
    command = ["docker", "network", "inspect", "bridge"]
    try:
        shown = subprocess.run(command, capture_output=True, check=True).stdout
        network = json.loads(shown)[0]["IPAM"]["Config"][0]
        # The gateway is the first address of the network, where the engine does not name it.
        return str(network.get("Gateway") or ip_network(network["Subnet"])[1])
    except (OSError, subprocess.CalledProcessError, LookupError, ValueError):
        raise UsageError("--containers: no Docker bridge found; is Docker running?") from None


def _ask(
    path: str, headers: dict[str, str] | None = None, method: str = "GET", body: Any = None
) -> tuple[int, Any]:
    """Ask the stack that runs. Returns the status and the JSON of the answer."""
    data = None if body is None else json.dumps(body).encode()
    direct = build_opener(ProxyHandler({}))  # without the shell's proxy
    for url in _urls():
        request = Request(url + path, data, headers=headers or {}, method=method)
        with contextlib.suppress(OSError, HTTPException, ValueError):  # it is ending
            try:
                with direct.open(request, timeout=960) as answer:
                    return answer.status, json.load(answer)
            except HTTPError as error:
                return error.code, json.load(error)
    raise UsageError("no stack runs here; start it with `python -m local`")


def _tell(path: str, *body: Any) -> Any:
    """Give the stack that runs a command. Raises `UsageError` if the stack refuses it."""
    answer = _ask(f"/_local/{path}", {"Content-Type": "application/json"}, "POST", body)[1]
    if "refused" in answer:
        raise UsageError(answer["refused"])
    return answer


def _list(arguments: argparse.Namespace) -> int:
    (form, noun), found = _LISTS[arguments.command], _ask(f"/_local/{arguments.command}")[1]
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for item in found:
        _print(form.format(**{"attempts": 0, "status": "no status", **item}))
    _print(f"{len(found)} {noun}{'' if len(found) == 1 else 's'}")
    return 0


def _dead_letters(arguments: argparse.Namespace) -> int:
    code = _list(arguments)
    queues = [queue for queue in _ask("/_local/state")[1]["queues"] if queue["dead_letter"]]
    if (hidden := sum(queue["in_flight"] for queue in queues)) and not arguments.json:
        print(f"{hidden} more in flight: a function has received them and not deleted them")
    return code


def _expire(arguments: argparse.Namespace) -> int:
    expired = _tell(f"expire/{quote(arguments.job_id, '')}")["expired"]
    print(json.dumps(expired) if arguments.json else f"timed out: {', '.join(expired)}")
    return 0


def _invoke(arguments: argparse.Namespace) -> int:
    event = []
    if file := arguments.event:
        try:
            event = [json.loads(file.read_text(encoding="utf-8"))]
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"{file} is not JSON: {error}") from None
    answer = _tell(f"invoke/{quote(arguments.function, '')}", *event)
    if failure := answer.get("error"):
        told = f"{failure['errorType']}: {failure['errorMessage']}"
        print(f"local: {arguments.function} failed: {told}", file=sys.stderr)
        return 1
    print(json.dumps(answer["result"], indent=2))
    return 0


def _retry(arguments: argparse.Namespace) -> int:
    job = next((j for j in _ask("/_local/jobs")[1] if j["job_id"] == arguments.job_id), None)
    if job is None:
        raise UsageError(f"no job {arguments.job_id}; see `python -m local jobs`")
    caller, status, answer = str(job.get("owner", "")), _NOT_FOUND, dict[str, Any]()
    while status == _NOT_FOUND:
        headers = {"X-Local-Caller": caller} if caller else {}
        status, answer = _ask(f"/jobs/{arguments.job_id}/retry", headers, "POST")
        if not (caller := caller.partition("/")[2]):  # an ARN ends with the caller's name
            break
    if arguments.json:
        print(json.dumps(answer, indent=2))
    elif status == _ACCEPTED:
        print(f"{arguments.job_id}  {answer['status']}")
    else:
        why = answer.get("detail") or answer.get("message")
        print(f"local: {arguments.job_id} cannot be retried: {why}", file=sys.stderr)
    return 0 if status == _ACCEPTED else 1


if __name__ == "__main__":
    sys.exit(main())
