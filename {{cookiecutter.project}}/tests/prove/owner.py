"""The owner of the jobs: a caller of the API who sends again what was not answered."""

import time

import httpx

from tests.prove.deck import SCENARIOS
from tests.prove.story import TERMINAL, Story

_PATIENCE = 40
"""Requests; a caller of yours would wait longer between two of them."""


class Owner:
    """Sends requests, each with the job's key, until they are answered."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(self, story: Story) -> None:
        """Have the job accepted."""
        body = {"number": story.number, **SCENARIOS[story.card.scenario].payload}
        answer = self._ask("POST", "/jobs", story, body)
        if answer.status_code == httpx.codes.ACCEPTED:
            story.job_id = answer.json()["job_id"]

    def look(self, story: Story) -> None:
        """Look at the job, and keep what is seen if it is terminal."""
        job = self._ask("GET", f"/jobs/{story.job_id}", story).json()
        if job.get("status") in TERMINAL or "status" not in job:
            story.seen.append(job)

    def act(self, story: Story) -> None:
        """Make the request that the scenario has for the owner."""
        action = SCENARIOS[story.card.scenario].action
        story.retries += action == "retry"
        self._ask("POST", f"/jobs/{story.job_id}/{action}", story, {"says": "the owner"})

    def _ask(
        self, method: str, path: str, story: Story, body: dict[str, object] | None = None
    ) -> httpx.Response:
        """Send a request until the answer is not an error of the server."""
        headers = {"Idempotency-Key": f"job {story.number}"}
        for _ in range(_PATIENCE):
            answer = self._http.request(method, path, json=body, headers=headers)
            if answer.status_code < 500 or not story.card.patient:
                break
            time.sleep(0.2)
        return answer
