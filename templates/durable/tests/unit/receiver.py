"""What the API hands jobs over to: Lambda's API, which here only notes its requests."""

import json
from typing import Any

import boto3
import pytest
from botocore.config import Config

import dispatch
import failure_reason
from local.durable import Durable
from local.server import Answer
from tests.unit.emulated import AWS


class Receiver(Durable):
    """Receives jobs and notes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nobody: Any = object()  # runs nothing
        super().__init__(AWS.template, AWS, {"WorkerFunction": nobody})
        self.listen()
        self.answers: dict[str, tuple[int, dict[str, Any]]] = {}
        self.asked: list[tuple[str, bytes]] = []
        self._handed_over: list[dict[str, object]] = []
        self._monkeypatch = monkeypatch
        self._at(self.url)

    def handed_over(self) -> list[dict[str, object]]:
        """Return the references that were handed over since the last look."""
        taken, self._handed_over = self._handed_over, []
        return taken

    def fail(self) -> None:
        """Let every hand-over fail from now on: the worker is gone."""
        self._monkeypatch.setattr(dispatch, "WORKER", "NoFunction:live")

    def fall_silent(self) -> None:
        """Let nobody answer from now on, so that nobody knows what becomes of a request."""
        self._at("http://127.0.0.1:1")

    def _at(self, url: str) -> None:
        once = Config(retries={"total_max_attempts": 1})
        client = boto3.client("lambda", endpoint_url=url, config=once)
        for module in (dispatch, failure_reason):
            self._monkeypatch.setattr(module, "_lambda", client)

    def _begin(self, function: Any, headers: Any, body: bytes) -> Answer:
        answer = super()._begin(function, headers, body)
        if answer[0] == 202:
            self._handed_over.append(json.loads(body))
        return answer

    def _start(self, function: Any, name: str, body: bytes) -> str:
        return f"execution-of-{name}"

    def _forward(self, method: str, target: str, body: bytes) -> Answer:
        """Note what was asked for, and answer as `answers` says for the end of the path."""
        path = target.partition("?")[0]
        self.asked.append((path, body))
        known = (status for end, status in self.answers.items() if path.endswith(end))
        status, content = next(known, (200, {"StopTimestamp": 0, "Status": "FAILED"}))
        headers = [("x-amzn-errortype", str(content["Code"]))] if "Code" in content else []
        return status, headers, json.dumps(content).encode()
