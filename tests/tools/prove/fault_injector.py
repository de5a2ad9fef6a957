"""Runs inside a sandbox, between a function and AWS: injects the planned faults, fills the log.

`handler` runs the template's own handler. Nothing in `src/` is changed for it:

- botocore's event `before-send` hands over each request to AWS, every try on its own, and takes
  the returned value for the answer.
- `time.time` and `datetime.now` follow a clock that can be put forward and back.

A request is described by what it is for: its operation, its table, and what it sets. Requests to
resources that are not the kit's pass unchanged.
"""

import contextlib
import datetime
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime as _datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

_time = time.time
_clock = SimpleNamespace(off=0)  # in seconds


class _Kind(type):
    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _datetime)


class _Datetime(_datetime, metaclass=_Kind):
    """`datetime` by the sandbox's clock; `now` returns objects of the real class."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        """Return the time by the sandbox's clock."""
        return _datetime.fromtimestamp(time.time(), tz)


# Before anything else is imported, since modules keep what they import by name.
setattr(time, "time", lambda: _time() + _clock.off)  # noqa: B010 - a function, to mypy
setattr(datetime, "datetime", _Datetime)  # noqa: B010

from botocore.awsrequest import AWSResponse  # noqa: E402
from botocore.exceptions import ConnectionClosedError  # noqa: E402
from botocore.handlers import BUILTIN_HANDLERS  # noqa: E402
from botocore.httpsession import URLLib3Session  # noqa: E402

from tests.tools.prove.effect_log import NOBODY, EffectLog, Entry  # noqa: E402
from tests.tools.prove.engine import KIT_RESOURCES, load_calls  # noqa: E402
from tests.tools.prove.faults import (  # noqa: E402
    BROKEN,
    CLOCK_OFF,
    DENIED,
    KILLED_AFTER,
    KILLED_BEFORE,
    KILLS,
    LOST,
    REFUSED,
    THROTTLED,
    Fault,
)
from tests.tools.prove.observed_job import TERMINAL  # noqa: E402

FOLDER = Path(os.environ["PROVE_FOLDER"])
FUNCTION = os.environ["PROVE_FUNCTION"]
PLAN: list[dict[str, Any]] = json.loads((FOLDER / "plan.json").read_text())
FAULTS = [[Fault(**fault) for fault in case["faults"]] for case in PLAN]
SENDING = ("SendMessage", "Invoke", "Publish")
TELLING = ("attempts", "execution", "retry_of")
"""Attributes that tell two changes to the same status apart."""
HOUSEKEEPING = {"updated_at", "write"}
"""Attributes that tell nothing of what a change is for."""
KIT = re.compile("|".join((*KIT_RESOURCES, "/durable-execution")))
"""What a request to one of the kit's own resources contains."""
NAMES = {
    call.request: name for name, call in load_calls(os.environ["PROVE_ENGINE"])[FUNCTION].items()
}


@dataclass
class Here:
    """The current invocation, the number of its job, and what it has done."""

    invocation: str = ""
    job: int = NOBODY
    works: bool = False
    """Whether side effects are work.py's own: the work has begun and has not ended."""


_here = Here()
_log = EffectLog(FOLDER / "effects.jsonl")
_http = URLLib3Session(timeout=30)


def handler(event: Any, context: Any) -> Any:
    """Run the function's own handler for one event, by a clock that may be off."""
    job = _job_of(event)
    _here.invocation, _here.job, _here.works = context.aws_request_id, job, False
    clocks = PLAN[job]["clocks"] if job != NOBODY else []
    _clock.off = clocks[(_count(f"{job} seen by {FUNCTION}") - 1) % len(clocks)] if clocks else 0
    context._epoch_deadline_time_in_ms += _clock.off * 1000  # Lambda's is by the same clock
    if _clock.off:
        log("fault", "", CLOCK_OFF)
    recorded = event.get("InitialExecutionState", {}).get("Operations", [])
    if strike("import again" if len(recorded) > 1 else "import", BROKEN):
        with _unimportable("worker"):
            return _handler(event, context)
    return _handler(event, context)


@contextlib.contextmanager
def _unimportable(name: str) -> Iterator[None]:
    """Let the module's import fail, as it does when its source is broken."""
    module, sys.modules[name] = sys.modules[name], None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules[name] = module


def log(
    kind: str, name: str = "", what: str = "", attempt: int = 0, *, terminal: bool = False
) -> None:
    """Add an entry for the current job to the effect log."""
    _here.works |= kind == "run"
    _log.write(Entry(kind, name, what, _here.job, attempt, FUNCTION, _here.invocation, terminal))


def strike(call: str, *whats: str) -> str:
    """Inject a fault into the current job at this point if one is planned: kill, or return it."""
    for number, fault in enumerate(FAULTS[_here.job] if _here.job != NOBODY else ()):
        if (fault.function, fault.call) != (FUNCTION, call) or fault.what not in whats:
            continue
        if _count(f"{_here.job} fault {number}") > fault.times:
            continue
        log("fault", call, fault.what)
        if fault.what in KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        return fault.what
    return ""


def _send(request: Any, event_name: str, **_: Any) -> Any:
    """Send one request to AWS, or do to it what is planned, and return the answer."""
    operation, body = event_name.rpartition(".")[2], _read(request.body)
    if not KIT.search(f"{request.url} {json.dumps(body)}"):
        log("other", operation)
        return None  # botocore sends it
    _find_job(operation, body)
    purpose = _purpose(body)
    described = " ".join(filter(None, (operation, body.get("TableName"), purpose)))
    if _here.works and "IdempotencyTable" in described:
        described += " in work"
    call = NAMES.get(described)
    if call is None:
        log("unnamed", f"makes an AWS call that points.py does not name: {described}")
        call = described

    struck = strike(call, KILLED_BEFORE, THROTTLED, DENIED, REFUSED)
    if struck in (THROTTLED, DENIED):
        return _refusal(request, struck)
    if struck == REFUSED:
        _make_refused(request, body)
    response = _http.send(request)
    done = response.status_code < 300
    if done and operation in SENDING:
        log("sent", call, body.get("Message") or body.get("MessageBody") or json.dumps(body))
    terminal = purpose in TERMINAL
    log("call", call, str(response.status_code), terminal=terminal)
    _here.works &= not (done and terminal)
    if strike(call, KILLED_AFTER, LOST) == LOST:
        raise ConnectionClosedError(endpoint_url=request.url)
    return response


def _find_job(operation: str, body: dict[str, Any]) -> None:
    """Note which job a request is about, if it tells: one batch of dead letters has several."""
    key = body.get("Item") or body.get("Key") or {}
    if operation == "SendMessage":
        job_id = json.loads(body["MessageBody"])["job_id"]
    elif operation == "Invoke":
        job_id = body["job_id"]
    elif "job_id" in key:
        job_id = key["job_id"]["S"]
    else:
        return
    if operation == "PutItem" and _here.job != NOBODY:  # a job's id is first seen here
        new = FOLDER / "numbers" / _here.invocation
        new.write_text(str(_here.job))
        new.replace(FOLDER / "numbers" / job_id)
    _here.job = _number(job_id)


def _read(body: Any) -> dict[str, Any]:
    """Return a request's members, of JSON or of a form."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    try:
        return dict(json.loads(text or "{}"))
    except (TypeError, ValueError):
        return {name: values[0] for name, values in parse_qs(text).items()}


def _purpose(body: dict[str, Any]) -> str:
    """Tell what an update of a job is for: its new status, or else the attributes that it sets."""
    if "UpdateExpression" not in body or body["TableName"] != "JobsTable":
        return ""
    names = body.get("ExpressionAttributeNames", {})
    assignments = re.findall(r"(#?\w+) = (:?\w*)", body["UpdateExpression"])
    assigned = {names.get(name, name): value for name, value in assignments}
    if "status" not in assigned:
        return " ".join(sorted(assigned.keys() - HOUSEKEEPING))
    status = str(body["ExpressionAttributeValues"][assigned["status"]]["S"])
    return " ".join([status, *(name for name in TELLING if name in assigned)])


def _refusal(request: Any, what: str) -> Any:
    """Return the answer of a service that rejects a request."""
    if what == DENIED:
        status, error = 403, {"__type": "AccessDeniedException"}
    elif "DynamoDB" in str(request.headers.get("X-Amz-Target")):
        status, error = 400, {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"}
    else:
        status, error = 503, {}
    body = json.dumps(error).encode() if error else b""
    headers = {"x-amzn-errortype": error.get("__type", "ServiceUnavailable")}
    raw = SimpleNamespace(stream=lambda **_: iter([body]))
    return AWSResponse(request.url, status, headers, raw)


def _make_refused(request: Any, body: dict[str, Any]) -> None:
    """Add a condition to a write that does not hold, so that the store itself rejects it."""
    body["ConditionExpression"] += " AND attribute_exists(never_there)"
    request.body = json.dumps(body).encode()
    request.headers["Content-Length"] = str(len(request.body))


def _job_of(event: Any) -> int:
    """Return the number of the job that an event is about, or NOBODY."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        if "Records" in event:
            return _number(json.loads(event["Records"][0]["body"])["job_id"])
        if "InitialExecutionState" in event:
            begun = event["InitialExecutionState"]["Operations"][0]["ExecutionDetails"]
            return _number(json.loads(begun["InputPayload"])["job_id"])
        if "job_id" in event.get("pathParameters", {}):
            return _number(event["pathParameters"]["job_id"])
        return int(json.loads(event["body"])["number"])
    return NOBODY


def _number(job_id: str) -> int:
    """Return the number of a job, or NOBODY for a job that is not the campaign's."""
    with contextlib.suppress(OSError):
        return int((FOLDER / "numbers" / job_id).read_text())
    return NOBODY


def _count(what: str) -> int:
    """Count over all sandboxes: return how many times this has been asked.

    Each call appends a byte to a file. The kernel appends one write after the other, so the
    position after the write is a number that no other sandbox gets; and a sandbox that is killed
    leaves no lock behind.
    """
    with (FOLDER / "counts" / what).open("ab", buffering=0) as file:
        file.write(b".")
        return file.tell()


BUILTIN_HANDLERS.append(("before-send", _send))
_module, _, _name = os.environ["PROVE_HANDLER"].rpartition(".")
_handler = getattr(import_module(_module), _name)
