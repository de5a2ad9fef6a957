"""docs/openapi.yaml, and the check of an answer against it."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.yaml"
_URI = DOCUMENT.as_uri()

TERMINAL = frozenset({"completed", "failed", "cancelled"})

CARRIERS = frozenset(
    {
        *("apigw-requestid", "connection", "content-length", "content-type", "date"),
        *("keep-alive", "server", "transfer-encoding", "x-amzn-requestid", "x-amzn-trace-id"),
    }
)
"""Headers that HTTP and API Gateway add; every other one must be in the document."""


class ContractBroken(AssertionError):
    """An answer is not what docs/openapi.yaml says."""


class Contract:
    """What the API promises: each answer is held against it."""

    def __init__(self, document: dict[str, Any], base_path: str = "") -> None:
        self._document = document
        self._base_path = base_path
        self._registry = Registry().with_resource(_URI, DRAFT202012.create_resource(document))
        self._paths = {
            re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): path for path in document["paths"]
        }

    @classmethod
    def load(cls, base_path: str = "") -> "Contract":
        """Read the project's docs/openapi.yaml, for an API below this path."""
        return cls(yaml.safe_load(DOCUMENT.read_text("utf-8")), base_path)

    @property
    def auth(self) -> str | None:
        """The name of the security scheme, or None for an open API."""
        return next((name for scheme in self._document["security"] for name in scheme), None)

    def check(self, response: httpx.Response) -> None:
        """Compare a response with what the document says of its request.

        Raises:
            ContractBroken: the status, a header, the media type or the body is not documented,
                or something that OpenAPI has no words for is wrong (see `_check_job`).
        """
        request = f"{response.request.method} {response.request.url.raw_path.decode('ascii')}"
        try:
            self._check(response)
        except ContractBroken as broken:
            answer = f"{response.status_code} {dict(response.headers)}\n{response.text[:2000]}"
            raise ContractBroken(f"{request}: {broken}\n{answer}") from None

    def check_value(self, value: object, pointer: str, what: str) -> None:
        """Compare a value with the schema at a place in the document.

        Raises:
            ContractBroken: it does not keep to the schema; `what` is what the message calls it.
        """
        validator = Draft202012Validator(
            {"$ref": f"{_URI}{pointer}"},
            registry=self._registry,
            format_checker=Draft202012Validator.FORMAT_CHECKER,
        )
        if error := best_match(validator.iter_errors(value)):
            place = error.json_path.removeprefix("$")
            raise ContractBroken(f"{what}{place}: {error.message}")

    def _check(self, response: httpx.Response) -> None:
        if response.request.method == "OPTIONS" and response.status_code == httpx.codes.NO_CONTENT:
            return  # a preflight, which API Gateway answers by itself when CORS is on
        pointer, documented = self._find(response)
        self._check_headers(response, f"{pointer}/headers", documented.get("headers", {}))
        media_type = response.headers.get("content-type", "").partition(";")[0].strip()
        if media_type not in documented["content"]:
            raise ContractBroken(f"the media type {media_type!r} is not documented")
        schema = f"{pointer}/content/{media_type.replace('/', '~1')}/schema"
        if not media_type.endswith("json"):
            return
        try:
            body = json.loads(response.content)
        except ValueError:
            raise ContractBroken("the body is not JSON") from None
        self.check_value(body, schema, "the body")
        if media_type == "application/problem+json":
            _check_problem(response, body, documented["content"][media_type])
        if self._follow(schema)[0] == "#/components/schemas/Job":
            _check_job(response, body, self._base_path)
        elif re.search(r"Traceback|\.py\b", response.text):
            raise ContractBroken("the body shows a stack trace")

    def _find(self, response: httpx.Response) -> tuple[str, dict[str, Any]]:
        """Return where the document describes this response, and what it says there."""
        request = response.request
        path = request.url.raw_path.decode("ascii").partition("?")[0]
        path = path.removeprefix(self._base_path)
        template = next((self._paths[p] for p in self._paths if p.fullmatch(path)), "")
        operation = self._document["paths"].get(template, {}).get(request.method.lower())
        if operation is None:
            if response.status_code != httpx.codes.NOT_FOUND:
                raise ContractBroken("there is no such route, so it should be 404")
            return self._follow("#/components/responses/TooManyRequests")  # API Gateway's own too
        if str(response.status_code) not in operation["responses"]:
            raise ContractBroken("the status is not documented")
        return self._follow(
            f"#/paths/{template.replace('/', '~1')}/{request.method.lower()}"
            f"/responses/{response.status_code}"
        )

    def _follow(self, pointer: str) -> tuple[str, dict[str, Any]]:
        """Return the place that `pointer` leads to, past any reference, and what is there."""
        node = self._registry.resolver(_URI).lookup(pointer).contents
        return self._follow(node["$ref"]) if "$ref" in node else (pointer, node)

    def _check_headers(
        self, response: httpx.Response, pointer: str, documented: dict[str, Any]
    ) -> None:
        names = {name.lower() for name in documented}
        if unknown := response.headers.keys() - names - CARRIERS:
            raise ContractBroken(f"undocumented headers: {', '.join(sorted(unknown))}")
        for name in documented:
            place, header = self._follow(f"{pointer}/{name}")
            text = response.headers.get(name)
            if text is not None:
                whole = header["schema"].get("type") == "integer" and text.isdecimal()
                self.check_value(int(text) if whole else text, f"{place}/schema", name)
            elif header.get("required"):
                raise ContractBroken(f"the header {name} is missing")


_ONLY = {"finished_at": TERMINAL, "result": {"completed"}, "waiting": {"waiting"}}
"""What a job has in these statuses, and in no other one."""


def _check_problem(
    response: httpx.Response, problem: dict[str, Any], documented: dict[str, Any]
) -> None:
    """Check that a problem is one of those that the document shows for this response."""
    shown = [documented.get("example", {})]
    shown += [example["value"] for example in documented.get("examples", {}).values()]
    if problem["type"] not in {example.get("type") for example in shown}:
        raise ContractBroken(f"{problem['type']} is not documented: no example has this type")
    if problem["status"] != response.status_code:
        raise ContractBroken("the problem has another status than the response")


def _check_job(response: httpx.Response, job: dict[str, Any], base_path: str) -> None:
    """Check what a job has in its status, and what ties the answer's headers to it."""
    status = job["status"]
    for member, statuses in _ONLY.items():
        if (member in job) != (status in statuses):
            raise ContractBroken(f"{member} should be there only if {' or '.join(statuses)}")
    began = "started_at" in job and job["attempts"] > 0
    if status in {"running", "waiting", "completed"} and not began:
        raise ContractBroken("an attempt has begun, so started_at and attempts should tell of it")
    if ("error" in job, status) in {(True, "completed"), (False, "failed")}:
        raise ContractBroken("a failed job should have an error, a completed one none")
    location = response.headers.get("location")
    if location not in (None, f"{base_path}/jobs/{job['job_id']}"):
        raise ContractBroken("Location names another job, or another base path")
    if ("retry-after" in response.headers) == (job["status"] in TERMINAL):
        raise ContractBroken("Retry-After should be there unless the status is terminal")
    if [entry["status"] for entry in job["history"]][-1] != status:
        raise ContractBroken("the history does not end with the job's status")
