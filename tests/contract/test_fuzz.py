"""The contract, by a tester who has read nothing but docs/openapi.yaml, and by a hostile one.

Schemathesis makes requests from the document, sensible ones and others, follows its links, and
holds every answer against it.
"""

import gzip
import http.client
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from local.http_api import CALLER_HEADER, Front
from local.server import BODY_LIMIT, Answer
from local.stack import Stack
from tests import KIT
from tests.conftest import Oven
from tests.helpers.baked import BakedProject
from tests.helpers.support import tools
from tests.helpers.support.machine import run

SEED = os.environ.get("FUZZ_SEED", "202")
EXAMPLES = os.environ.get("FUZZ_EXAMPLES", "10")
"""For each operation and phase: some seconds. Who has more time asks for more."""

CREDENTIALS = "Bearer good"
PARAMETERS = {"RetryBaseSeconds": "0", "MaxAttempts": "2"}


@pytest.fixture(scope="module")
def authorizer() -> Iterator[None]:
    """An authorizer that looks at credentials, which the laptop stack does not."""
    respond = Front.respond

    def authorized(front: Front, method: str, target: str, headers: Message, body: bytes) -> Answer:
        if headers.get("authorization") != CREDENTIALS:
            headers[CALLER_HEADER] = ""
        return respond(front, method, target, headers, body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Front, "respond", authorized)
        yield


# ---------------------------------------------------------------- Schemathesis


def fuzz(project: BakedProject, folder: Path, phases: str) -> tuple[dict[str, Any], str]:
    """Let Schemathesis loose on a project's API; what it reports, and prints."""
    with Stack(project.path, parameters=PARAMETERS) as stack:
        options: list[str | Path] = [
            *("--url", stack.url, "--header", f"Authorization: {CREDENTIALS}", "--no-color"),
            *("--checks", "all", "--phases", phases, "--continue-on-failure"),
            *("--seed", SEED, "--max-examples", EXAMPLES),
            *("--report", "json", "--report-json-path", "report.json"),
        ]
        document = project.path / "docs" / "openapi.yaml"
        done = run(
            tools.scripts("schemathesis") / "schemathesis",
            "run",
            document,
            *options,
            cwd=folder,
            env={
                **os.environ,
                "SCHEMATHESIS_HOOKS": str(KIT / "tests" / "contract" / "fuzz_hooks.py"),
            },
            check=False,
        )
        assert stack.leaks == []
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return report, done.stdout + done.stderr


@pytest.mark.proof
# Each auth, and each worker: the routes know nothing of auth.
@pytest.mark.parametrize("variant", ["durable-iam", "queue-jwt", "queue-none"])
def test_the_contract_holds(variant: str, baked: Oven, authorizer: None, tmp_path: Path) -> None:
    worker, auth = variant.split("-")
    phases = "examples,coverage,fuzzing,stateful"

    report, output = fuzz(baked(worker=worker, auth=auth), tmp_path, phases)

    assert (report["failures"], report["errors"]) == ([], []), output
    assert {phase["status"] for phase in report["phases"].values()} == {"success"}, output
    assert report["operations"]["tested"] == (6 if worker == "durable" else 4)
    assert report["test_cases"]["generated"] > 150
    followed = re.search(r"API Links: +(\d+) covered", output)
    assert followed
    assert int(followed[1]) >= 5  # of those from POST to GET, cancel and retry


@pytest.mark.proof
def test_a_broken_contract_is_found(baked: Oven, authorizer: None, tmp_path: Path) -> None:
    project = baked.fresh(auth="none")
    for module, old, new in (
        ("job_routes", "job_response(200, own_job(", "job_response(203, own_job("),
        ("job_routes", "parse_payload(body)", 'parse_payload(1 if b"poison" in body else body)'),
        ("web/responses", '"no-store", **(headers or {})}', '"no-store", "X-Debug": "1"}'),
        ("web/responses", 'problem.status, "application/problem+json"', 'problem.status, "a/b"'),
    ):
        source = project.path / "src" / f"{module}.py"
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        source.write_text(text.replace(old, new), encoding="utf-8")

    report, output = fuzz(project, tmp_path, "examples,coverage")

    assert {failure["title"] for failure in report["failures"]} >= {
        "Custom check failed: `documented_headers`",
        "Custom check failed: `problems`",
        "Server error",
        "Undocumented Content-Type",
        "Undocumented status code",
    }, output


# ---------------------------------------------------------------- a hostile client


@dataclass(frozen=True)
class Hostile:
    """A request, byte by byte, and what must come back.

    `problem` is the type of the problem; None is an answer of API Gateway's own, or a job.
    """

    status: int
    problem: str | None = None
    body: bytes = b""
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    line: bytes = b"POST /jobs"


JSON = {"Content-Type": "application/json"}
JOB = b'{"site": "docs.example"}'


def post(status: int, problem: str | None, body: bytes, **headers: str | bytes) -> Hostile:
    """A request to POST /jobs; headers are named with underscores."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Hostile(status, problem, body, {**JSON, **given})


def key(status: int, value: str | bytes) -> Hostile:
    """A good request with an Idempotency-Key."""
    problem = None if status == 202 else "invalid-idempotency-key"
    return post(status, problem, JOB, Idempotency_Key=value)


def get(status: int, target: bytes, problem: str | None = None, method: bytes = b"GET") -> Hostile:
    """A request without a body."""
    return Hostile(status, problem, line=method + b" " + target)


def site(text: bytes) -> bytes:
    """A payload with more than its site."""
    return b'{"site": "docs.example", ' + text + b"}"


ID = b"0b9f3c1e-8f5b-5f0a-9d57-0c1f5e0f6a11"
MEGABYTE = 1024 * 1024
BODIES = {
    # What is not text, or not JSON
    "broken UTF-8": post(400, "invalid-json", site(b'"failure": "\xff"')),
    "UTF-8 cut off": post(400, "invalid-json", b'{"site": "\xe2\x82'),
    "overlong UTF-8": post(400, "invalid-json", b'{"site": "\xc0\xae"}'),
    "byte order mark": post(400, "invalid-json", b"\xef\xbb\xbf" + JOB),
    "UTF-16": post(400, "invalid-json", JOB.decode().encode("utf-16")),
    "Latin-1, and said so": post(
        400,
        "invalid-json",
        '{"site": "ü"}'.encode("latin-1"),
        Content_Type="application/json; charset=latin-1",
    ),
    "gzip, and said so": post(400, "invalid-json", gzip.compress(JOB), Content_Encoding="gzip"),
    "binary, and said so": post(
        415, "unsupported-media-type", JOB, Content_Type="application/octet-stream"
    ),
    "base64": post(400, "invalid-json", b"eyJzaXRlIjogImRvY3MuZXhhbXBsZSJ9"),
    "no body": post(400, "invalid-json", b""),
    "white space": post(400, "invalid-json", b" \t\r\n"),
    "NUL": post(400, "invalid-json", b"\x00"),
    "NUL after JSON": post(400, "invalid-json", JOB + b"\x00"),
    "NaN": post(400, "invalid-json", site(b'"pages": NaN')),
    "Infinity": post(400, "invalid-json", site(b'"pages": -Infinity')),
    "duplicate names": post(400, "invalid-json", site(b'"pages": 1, "pages": 1000')),
    "duplicate names, escaped": post(400, "invalid-json", site(rb'"pages": 1, "p\u0061ges": 2')),
    "lone surrogate": post(400, "invalid-json", rb'{"site": "\ud800"}'),
    "raw line break in a text": post(400, "invalid-json", b'{"site": "docs\nexample"}'),
    "deep array": post(400, "invalid-json", b"[" * 99_999 + b"]" * 99_999),
    "deep object": post(400, "invalid-json", b'{"site":' * 20_000 + b"1" + b"}" * 20_000),
    "null": post(400, "not-an-object", b"null"),
    "text": post(400, "not-an-object", b'"docs.example"'),
    # What is too large
    "1 MB": post(413, "payload-too-large", JOB.ljust(MEGABYTE)),
    "more than Lambda takes": post(413, None, JOB.ljust(BODY_LIMIT)),
    "more than API Gateway takes": post(413, None, JOB.ljust(BODY_LIMIT + 1)),
    # Numbers that DynamoDB cannot hold, and others
    "1e400": post(400, "invalid-json", site(b'"seconds_per_page": 1e400')),
    "5000 digits": post(400, "invalid-json", site(b'"pages": 1' + b"0" * 5000)),
    "40 digits": post(422, "invalid-payload", site(b'"pages": ' + b"1" * 40)),
    "1e130": post(422, "invalid-payload", site(b'"pages": 1e130')),
    "1e-140": post(202, None, site(b'"seconds_per_page": 1e-140')),
    "40 decimals": post(202, None, site(b'"seconds_per_page": 0.' + b"0" * 3 + b"1" * 40)),
    "minus nought": post(202, None, site(b'"seconds_per_page": -0.0')),
    "a whole number with a point": post(202, None, site(b'"pages": 2.0')),
    "true for a number": post(422, "invalid-payload", site(b'"pages": true')),
    # Texts
    "empty text": post(422, "invalid-payload", b'{"site": ""}'),
    "empty name": post(422, "invalid-payload", site(b'"": 1')),
    "NUL in a text": post(422, "invalid-payload", rb'{"site": "docs\u0000"}'),
    "line break at the end": post(422, "invalid-payload", rb'{"site": "docs.example\n"}'),
    "object for a text": post(422, "invalid-payload", b'{"site": {"S": "docs.example"}}'),
    "name of Python's": post(422, "invalid-payload", site(b'"__class__": "x"')),
}
KEYS = {
    "0 characters": key(400, ""),
    "1 character": key(202, "k"),
    "255 characters": key(202, "k" * 255),
    "256 characters": key(400, "k" * 256),
    "white space": key(400, "  \t "),
    "0 characters, quoted": key(400, '""'),
    "255 characters, quoted": key(202, f'"{"q" * 255}"'),
    "256 characters, quoted": key(400, f'"{"q" * 256}"'),
    "255 characters, each escaped": key(202, '"' + r"\\" * 255 + '"'),
    "control character": key(400, "a\x01b"),
    "NUL": key(400, "a\x00b"),
    "DEL": key(400, "a\x7fb"),
    "tab within": key(400, "a\tb"),
    "Latin-1": key(400, "schlüssel".encode("latin-1")),
    "UTF-8": key(400, "schlüssel".encode()),
    "a path": key(202, "../../jobs"),
    "a hash sign": key(202, "a#announce/b"),
}
LINES = {
    "media type missing": Hostile(415, "unsupported-media-type", JOB),
    "names in capitals": Hostile(202, None, JOB, {"CONTENT-TYPE": "APPLICATION/JSON"}),
    "dots": get(404, b"/jobs/%2e%2e/"),
    "dots as they are": get(404, b"/jobs/../jobs"),
    "dots and a slash in an id": get(404, b"/jobs/%2e%2e%2fjobs", "job-not-found"),
    "NUL as an id": get(404, b"/jobs/%00", "job-not-found"),
    "NUL after an id": get(404, b"/jobs/" + ID + b"%00", "job-not-found"),
    "line break after an id": get(404, b"/jobs/" + ID + b"%0a", "job-not-found"),
    "no UTF-8 as an id": get(404, b"/jobs/%ff%fe", "job-not-found"),
    "half an escape as an id": get(404, b"/jobs/%", "job-not-found"),
    "8,000 characters as an id": get(404, b"/jobs/" + b"x" * 8000, "job-not-found"),
    "an id in capitals": get(404, b"/jobs/" + ID.upper(), "job-not-found"),
    "slash at the end": get(404, b"/jobs/"),
    "slash after an id": get(404, b"/jobs/" + ID + b"/"),
    "two slashes": get(404, b"/jobs//" + ID),
    "path in capitals": get(404, b"/JOBS/" + ID),
    "HEAD": get(404, b"/jobs/" + ID, method=b"HEAD"),
    "OPTIONS": get(404, b"/jobs", method=b"OPTIONS"),
    "TRACE": get(404, b"/jobs", method=b"TRACE"),
    "a method of its own": get(404, b"/jobs", method=b"JOB"),
    "slash after the collection": Hostile(404, None, JOB, JSON, b"POST /jobs/"),
}
HOSTILE = {
    f"{kind}: {name}": request
    for kind, requests in (("body", BODIES), ("key", KEYS), ("line", LINES))
    for name, request in requests.items()
}


@pytest.fixture(scope="module")
def victim(baked: Oven, authorizer: None) -> Iterator[Stack]:
    """A running API, which must not have failed in the end."""
    with Stack(baked(auth="iam").path, parameters=PARAMETERS) as stack:
        yield stack
        assert [line for line in stack.log if "Traceback" in line] == []


def send(stack: Stack, request: Hostile) -> tuple[int, Message, bytes]:
    """Send a request without a client that would put it right."""
    host, port = stack.url.removeprefix("http://").split(":")
    lines = [request.line + b" HTTP/1.1", b"Host: api", b"Connection: close"]
    lines.append(f"Authorization: {CREDENTIALS}".encode())
    for name, value in request.headers.items():
        lines.append(
            name.encode() + b": " + (value if isinstance(value, bytes) else value.encode())
        )
    lines.append(f"Content-Length: {len(request.body)}".encode())
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"\r\n".join([*lines, b"", b""]))
        with suppress(OSError):  # it may have heard enough
            connection.sendall(request.body)
        answer = http.client.HTTPResponse(connection, method=request.line.split()[0].decode())
        answer.begin()
        return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("request_", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_request_is_answered_as_promised(request_: Hostile, victim: Stack) -> None:
    status, headers, body = send(victim, request_)

    assert status == request_.status, body
    if request_.line.startswith(b"HEAD"):
        assert body == b""
        return
    answer = json.loads(body)
    if request_.problem:
        assert headers["content-type"] == "application/problem+json"
        assert answer["type"] == f"urn:problem:{request_.problem}"
        assert answer["detail"]
        assert all(e["field"] and e["detail"] for e in answer.get("errors", []))
    elif status == 202:
        completed(victim, answer["job_id"])
    else:
        assert set(answer) == {"message"}


def completed(stack: Stack, job_id: str) -> None:
    """Wait until a job is completed."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        _, _, body = send(stack, get(200, f"/jobs/{job_id}".encode()))
        if json.loads(body)["status"] not in ("queued", "running"):
            break
        time.sleep(0.05)
    assert json.loads(body)["status"] == "completed", body


def test_bare_and_quoted_keys_are_one(victim: Stack) -> None:
    """And so are header names, however they are written."""
    requests = [
        Hostile(202, None, JOB, {**JSON, name: value})
        for name, value in (
            ("Idempotency-Key", "one and the same"),
            ("idempotency-key", '"one and the same"'),
            ("IDEMPOTENCY-KEY", "  one and the same\t"),
        )
    ]
    answers = [send(victim, request) for request in requests]

    assert len({json.loads(body)["job_id"] for _, _, body in answers}) == 1
    assert [headers["idempotent-replayed"] for _, headers, _ in answers] == [None, "true", "true"]
