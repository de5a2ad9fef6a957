"""The bug that the kit exists for: in one process it hides, on the laptop stack it shows.

docs/lost-work.md tells the story with this code.
"""

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from local.emulator import Emulator
from local.stack import Stack
from local.template import Template
from tests.conftest import Oven
from tests.laptop.projects import until

PROJECT = Path(__file__).resolve().parent / "lost_work"
WORK_SECONDS = 0.5


def call(url: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON in the answer to a request."""
    data = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def test_the_naive_test_is_green(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the test's own process nothing freezes: the thread completes the job."""
    with Emulator(Template.load(PROJECT / "template.yaml")) as aws:
        for name, value in aws.environment("ApiFunction").items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(PROJECT / "src"))
        for module in ("api", "status"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        import api  # type: ignore[import-not-found]
        import status  # type: ignore[import-not-found]

        answer = api.handler({}, None)
        assert answer["statusCode"] == 202
        key = {"pathParameters": json.loads(answer["body"])}
        until(lambda: status.handler(key, None)["status"] == "completed")
        for module in ("api", "status"):
            sys.modules.pop(module, None)


@pytest.mark.parametrize("reclaim", [False, True], ids=["frozen", "reclaimed"])
def test_on_the_laptop_stack_the_work_is_lost(reclaim: bool) -> None:
    """The sandbox freezes with its response: the job stays `running`, and we are told why."""
    with Stack(PROJECT, reclaim=reclaim) as stack:
        job = call(f"{stack.url}/jobs", {})
        time.sleep(WORK_SECONDS * 4)
        assert call(f"{stack.url}/jobs/{job['job_id']}")["status"] == "running"
        assert [leak for leak in stack.leaks if "ApiFunction" in leak and "'work'" in leak], (
            stack.leaks
        )


def test_the_queue_variant_completes_the_same_job(baked: Oven) -> None:
    """The work goes to the worker, which is given the time for it; nothing is left over."""
    with Stack(baked(worker="queue").path) as stack:
        slow = {"site": "docs.example", "pages": 1, "seconds_per_page": WORK_SECONDS}
        job = call(f"{stack.url}/jobs", slow)
        until(lambda: call(f"{stack.url}/jobs/{job['job_id']}")["status"] == "completed")
        assert not stack.leaks
