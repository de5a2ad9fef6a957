"""Small projects that the laptop stack runs: each test writes the functions it needs."""

import json
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def function(handler: str, *events: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Return a function of a template."""
    named = {f"Event{n}": event for n, event in enumerate(events)}
    properties = {"Handler": handler, "Runtime": "python3.13", "CodeUri": "src", **properties}
    return {"Type": "AWS::Serverless::Function", "Properties": {**properties, "Events": named}}


def http(route: str, **properties: Any) -> dict[str, Any]:
    """Return an HTTP API event, such as of `GET /jobs`."""
    method, path = route.split()
    return {"Type": "HttpApi", "Properties": {"Method": method, "Path": path, **properties}}


def sqs(queue: str, **properties: Any) -> dict[str, Any]:
    """Return an SQS event."""
    arn = {"Fn::GetAtt": [queue, "Arn"]}
    return {"Type": "SQS", "Properties": {"Queue": arn, **properties}}


def queue(**properties: Any) -> dict[str, Any]:
    """Return a queue of a template."""
    return {"Type": "AWS::SQS::Queue", "Properties": properties}


def write_project(folder: Path, resources: dict[str, Any], sources: dict[str, str]) -> Path:
    """Write template.yaml and src/*.py; `app` becomes src/app.py. Further sections may stand
    beside Resources under a key that begins with a capital and a dot: "Globals.".
    """
    sections = {k[:-1]: v for k, v in resources.items() if k.endswith(".")}
    data = {k: v for k, v in resources.items() if not k.endswith(".")}
    (folder / "src").mkdir(parents=True)
    document = {**sections, "Resources": data}
    (folder / "template.yaml").write_text(json.dumps(document), encoding="utf-8")
    for name, code in sources.items():
        (folder / "src" / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return folder


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Return the first true value of `condition`; fail when none comes."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s for a condition that never came true")
        time.sleep(0.01)
    return value


def alive(pid: int) -> bool:
    """Tell whether a process exists and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
