"""What stands between a function and its surroundings: strikes the faults, tells the witness.

`handler` runs the template's own handler. Nothing in `src/` is changed for it: botocore's event
`before-send` hands over every request to AWS, each try on its own, and takes what is returned for
the answer; `time.time` and `datetime.now` are by a clock that can be put forward and back.
"""

import contextlib
import datetime
import json
import os
import re
import signal
import time
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
    """`datetime` by the sandbox's clock; what it returns is the real one."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        """Return what the sandbox takes for the present moment."""
        return _datetime.fromtimestamp(time.time(), tz)


# Before anything else is imported, since modules keep what they import by name.
setattr(time, "time", lambda: _time() + _clock.off)  # noqa: B010 - a function, to mypy
setattr(datetime, "datetime", _Datetime)  # noqa: B010

from botocore.awsrequest import AWSResponse  # noqa: E402
from botocore.exceptions import ConnectionClosedError  # noqa: E402
from botocore.handlers import BUILTIN_HANDLERS  # noqa: E402
from botocore.httpsession import URLLib3Session  # noqa: E402

from tests.prove.faults import (  # noqa: E402
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
from tests.prove.points import CALLS, job_of  # noqa: E402
from tests.prove.story import TERMINAL  # noqa: E402
from tests.prove.witness import NOBODY, Line, Witness  # noqa: E402

FOLDER = Path(os.environ["PROVE_FOLDER"])
FUNCTION = os.environ["PROVE_FUNCTION"]
PLAN: list[dict[str, Any]] = json.loads((FOLDER / "plan.json").read_text())
FAULTS = [[Fault(**fault) for fault in card["faults"]] for card in PLAN]
SENDING = ("SendMessage", "Invoke", "Publish")
TELLING = ("attempts", "execution", "retry_of")
NAMES = {call.request: name for name, call in CALLS[FUNCTION].items()}


@dataclass
class Here:
    """The invocation at hand, the number of the job that it is about, and what it has done."""

    invocation: str = ""
    job: int = NOBODY
    works: bool = False
    """Whether side effects are the work's own: it has begun, and has not ended."""


_here = Here()
_witness = Witness(FOLDER / "witness.jsonl")
_http = URLLib3Session(timeout=30)


def handler(event: Any, context: Any) -> Any:
    """Run the function's own handler for one event, by a clock that may be off."""
    job = _number(job_of(event))
    _here.invocation, _here.job, _here.works = context.aws_request_id, job, False
    clocks = PLAN[job]["clocks"] if job != NOBODY else []
    _clock.off = clocks[(_nth(f"{job} seen by {FUNCTION}") - 1) % len(clocks)] if clocks else 0
    context._epoch_deadline_time_in_ms += _clock.off * 1000  # Lambda's is by the same clock
    if _clock.off:
        tell("fault", "", CLOCK_OFF)
    return _handler(event, context)


def tell(kind: str, name: str = "", what: str = "", attempt: int = 0) -> None:
    """Tell the witness what happens to the job at hand."""
    _here.works |= kind == "run"
    _witness.write(Line(kind, name, what, _here.job, attempt, FUNCTION, _here.invocation))


def strike(call: str, *whats: str) -> str:
    """Strike the job at hand at this point, if that is planned: kill, or return what to do."""
    for number, fault in enumerate(FAULTS[_here.job] if _here.job != NOBODY else ()):
        if (fault.function, fault.call) != (FUNCTION, call) or fault.what not in whats:
            continue
        if _nth(f"{_here.job} fault {number}", fault.times) > fault.times:
            continue
        tell("fault", call, fault.what)
        if fault.what in KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        return fault.what
    return ""


def _send(request: Any, event_name: str, **_: Any) -> Any:
    """Send one request to AWS, or do to it what is planned. Returns the answer."""
    operation, body = event_name.rpartition(".")[2], _read(request.body)
    _find_job(operation, body)
    aim = _aim(body)
    wanted = " ".join(filter(None, (operation, body.get("TableName"), aim)))
    if _here.works and "IdempotencyTable" in wanted:
        wanted += " in work"
    call = NAMES.get(wanted)
    if call is None:
        tell("odd", f"makes an AWS call that points.py does not name: {wanted}")
        call = wanted

    struck = strike(call, KILLED_BEFORE, THROTTLED, DENIED, REFUSED)
    if struck in (THROTTLED, DENIED):
        return _refusal(request, struck)
    if struck == REFUSED:
        _make_refused(request, body)
    response = _http.send(request)
    done = response.status_code < 300
    if done and operation in SENDING:
        tell("sent", call, body.get("Message") or body.get("MessageBody") or json.dumps(body))
    tell("call", call, str(response.status_code))
    _here.works &= not (done and aim in TERMINAL)
    if strike(call, KILLED_AFTER, LOST) == LOST:
        raise ConnectionClosedError(endpoint_url=request.url)
    return response


def _find_job(operation: str, body: dict[str, Any]) -> None:
    """Note which job a request is about, if it tells: a batch of dead letters has several."""
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
        new = FOLDER / "marks" / _here.invocation
        new.write_text(str(_here.job))
        new.replace(FOLDER / "marks" / job_id)
    _here.job = _number(job_id)


def _read(body: Any) -> dict[str, Any]:
    """Return a request's members, of JSON or of a form."""
    text = body.decode() if isinstance(body, bytes) else str(body or "")
    try:
        return dict(json.loads(text or "{}"))
    except ValueError:
        return {name: values[0] for name, values in parse_qs(text).items()}


def _aim(body: dict[str, Any]) -> str:
    """Tell what an update of a job is for: its new status, or else the attributes that it sets.

    What sets `TELLING` attributes beside the status is another call than what does not.
    """
    if "UpdateExpression" not in body or body["TableName"] != "JobsTable":
        return ""
    names = set(re.findall(r"#(\w+) = ", body["UpdateExpression"]))
    if "status" not in names:
        return " ".join(sorted(names - {"updated_at", "write"}))
    status = str(body["ExpressionAttributeValues"][":status"]["S"])
    return " ".join([status, *(name for name in TELLING if name in names)])


def _refusal(request: Any, what: str) -> Any:
    """Return the answer of a service that did nothing."""
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
    """Add to a conditional write what does not hold, so that the store itself refuses it."""
    body["ConditionExpression"] += " AND attribute_exists(never_there)"
    request.body = json.dumps(body).encode()
    request.headers["Content-Length"] = str(len(request.body))


def _number(job: str | int | None) -> int:
    """Return the number of a job that is known by number or by id."""
    if isinstance(job, int):
        return job
    with contextlib.suppress(OSError):
        return int((FOLDER / "marks" / job).read_text()) if job else NOBODY
    return NOBODY


def _nth(what: str, most: int = 1_000) -> int:
    """Count over all sandboxes: return how many times this has been asked, at most `most` + 1."""
    for n in range(1, most + 1):
        with contextlib.suppress(FileExistsError):
            (FOLDER / "marks" / f"{what} {n}").touch(exist_ok=False)
            return n
    return most + 1


BUILTIN_HANDLERS.append(("before-send", _send))
_module, _, _name = os.environ["PROVE_HANDLER"].rpartition(".")
_handler = getattr(import_module(_module), _name)
