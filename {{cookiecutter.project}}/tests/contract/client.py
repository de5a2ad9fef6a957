"""A caller of the API, who checks every answer against docs/openapi.yaml before a test sees it."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from tests.contract.openapi import TERMINAL, Contract

Job = dict[str, Any]


class Caller:
    """One owner of jobs at one base URL.

    Args:
        base_url: The API's URL, without a slash at its end.
        contract: What the answers are checked against.
        auth: Signs each request or names the caller; None for a caller without a name.
        impatience: The longest pause between two looks at a job, in seconds. A client of
            yours keeps to `Retry-After`; a local API need not be spared.
        patience: How long a job may take to get where a test waits for it, in seconds.
    """

    def __init__(
        self,
        base_url: str,
        contract: Contract,
        auth: httpx.Auth | None,
        *,
        impatience: float,
        patience: float,
    ) -> None:
        self._http = httpx.Client(base_url=base_url, auth=auth, timeout=35)
        self._contract = contract
        self._impatience = impatience
        self._patience = patience

    def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> httpx.Response:
        """Send a request as it is given, and return the checked response.

        Raises:
            ContractBroken: the response is not what docs/openapi.yaml says.
        """
        raw = [
            (name.encode(), value.encode() if isinstance(value, str) else value)
            for name, value in (headers or {}).items()
        ]
        response = self._http.request(method, path, content=content, headers=raw)
        self._contract.check(response)
        return response

    def post(self, payload: object, *, key: str | bytes | None = None) -> httpx.Response:
        """POST a payload to /jobs, with an Idempotency-Key if one is given."""
        return self.post_body(json.dumps(payload).encode(), key=key)

    def post_body(
        self,
        body: bytes,
        *,
        key: str | bytes | None = None,
        media_type: str | None = "application/json",
    ) -> httpx.Response:
        """POST a body to /jobs, whatever is in it."""
        headers = {"Content-Type": media_type, "Idempotency-Key": key}
        given = {name: value for name, value in headers.items() if value is not None}
        return self.send("POST", "/jobs", body, given)

    def get(self, job_id: str) -> httpx.Response:
        """GET a job."""
        return self.send("GET", f"/jobs/{job_id}")

    def cancel(self, job_id: str) -> httpx.Response:
        """Ask for a job to be cancelled."""
        return self.send("POST", f"/jobs/{job_id}/cancel")

    def retry(self, job_id: str) -> httpx.Response:
        """Ask for another run of a job."""
        return self.send("POST", f"/jobs/{job_id}/retry")

    def start(self, payload: object) -> str:
        """Have a job accepted, and return its id."""
        return str(accepted(self.post(payload))["job_id"])

    def follow(self, job_id: str) -> Iterator[Job]:
        """Look at a job again and again until it is terminal.

        Raises:
            TimeoutError: it is not terminal after all the patience.
        """
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            response = self.get(job_id)
            assert response.status_code == httpx.codes.OK, response.text
            job: Job = response.json()
            yield job
            if job["status"] in TERMINAL:
                return
            time.sleep(min(int(response.headers["retry-after"]), self._impatience))
        raise TimeoutError(f"after {self._patience} s the job is still {job}")

    def wait_for(self, job_id: str, status: str) -> Job:
        """Follow a job until it has this status, and return it.

        Raises:
            AssertionError: it has ended, and was never seen with this status.
            TimeoutError: it is not there after all the patience.
        """
        for job in self.follow(job_id):
            if job["status"] == status:
                return job
        raise AssertionError(f"the job was never seen {status}: {job}")

    def run(self, payload: object, until: str = "completed") -> Job:
        """Have a job accepted, and return it once it has this status."""
        return self.wait_for(self.start(payload), until)


def accepted(response: httpx.Response) -> Job:
    """Return the job in a response that must be a 202."""
    assert response.status_code == httpx.codes.ACCEPTED, response.text
    job: Job = response.json()
    return job


def refused(response: httpx.Response, status: int, problem: str) -> dict[str, Any]:
    """Return the problem in a response that must have this status and this type of problem."""
    document: dict[str, Any] = response.json()
    told = (response.status_code, document.get("type"))
    assert told == (status, f"urn:problem:{problem}"), response.text
    return document
