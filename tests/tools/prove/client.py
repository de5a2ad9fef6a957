"""A client of the API. It repeats each request that was not answered, with the same key."""

import time

import httpx

from tests.tools.prove.observed_job import TERMINAL, ObservedJob

_MAX_REQUESTS = 40
"""At most, for one answer. A real client would wait longer between two of them."""


class Client:
    """Sends requests for jobs, each with the job's idempotency key."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(self, job: ObservedJob) -> None:
        """Send the job until it is accepted."""
        body = {"number": job.number, **job.scenario.payload}
        answer = self._request("POST", "/jobs", job, body)
        if answer.status_code == httpx.codes.ACCEPTED:
            job.job_id = answer.json()["job_id"]

    def look(self, job: ObservedJob) -> None:
        """Get the job, and keep the answer if the job is terminal or not found."""
        answer = self._request("GET", f"/jobs/{job.job_id}", job).json()
        if answer.get("status") in TERMINAL or "status" not in answer:
            job.seen.append(answer)

    def act(self, job: ObservedJob) -> None:
        """Send the request that the scenario has for the client."""
        action = job.scenario.action
        job.retries += action == "retry"
        self._request("POST", f"/jobs/{job.job_id}/{action}", job, {"says": "the client"})

    def _request(
        self, method: str, path: str, job: ObservedJob, body: dict[str, object] | None = None
    ) -> httpx.Response:
        """Send a request until the answer is no server error."""
        headers = {"Idempotency-Key": f"job {job.number}"}
        for _ in range(_MAX_REQUESTS):
            answer = self._http.request(method, path, json=body, headers=headers)
            if answer.status_code < 500 or not job.case.repeats:
                break
            time.sleep(0.2)
        return answer
