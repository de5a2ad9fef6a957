"""Whether IAM allows a request, as @cloud-copilot/iam-simulate decides it.

It knows actions, resource types and condition keys from AWS's own service reference, so that a
misspelt action or a resource of the wrong kind is an error. Python has nothing of the kind that is
maintained: moto's evaluator knows no conditions. What it does not know: the policies of KMS keys,
which are not in a template, and service control policies. Its licence is the AGPL: it is run as a
tool, and nothing of it is shipped.
https://github.com/cloud-copilot/iam-simulate
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.helpers.support import tools
from tests.helpers.support.machine import CACHE, lock, run, say

ACCOUNT = "000000000000"
ALLOWED, DENIED, FORBIDDEN = "Allowed", "ImplicitlyDenied", "ExplicitlyDenied"

_HERE = Path(__file__).parent
_NODE = (20, 0, 0)


@dataclass(frozen=True)
class Request:
    """Somebody asks for something.

    `principal` is a role's ARN or a service ("lambda.amazonaws.com"), `identity` the policies of
    the role, `resource_policy` those statements that the resource has itself.
    """

    principal: str
    action: str
    resource: str
    identity: list[dict[str, Any]] = field(default_factory=list)
    resource_policy: list[dict[str, Any]] = field(default_factory=list)
    context: dict[str, str] = field(default_factory=lambda: {"aws:SecureTransport": "true"})


def allow(action: str | list[str], resource: str, **more: Any) -> dict[str, Any]:
    """A statement."""
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def policy(statements: list[dict[str, Any]]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": statements}


def decide(requests: Iterable[Request]) -> list[str]:
    """Each request's fate: ALLOWED, DENIED, FORBIDDEN, or why it cannot be one on AWS."""
    simulations = [
        {
            "request": {
                "principal": request.principal,
                "action": request.action,
                "resource": {"resource": request.resource, "accountId": ACCOUNT},
                "contextVariables": request.context,
            },
            "identityPolicies": [
                {"name": str(n), "policy": document} for n, document in enumerate(request.identity)
            ],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
            **(
                {"resourcePolicy": policy(request.resource_policy)}
                if request.resource_policy
                else {}
            ),
        }
        for request in requests
    ]
    process = _started()
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(simulations) + "\n")
    process.stdin.flush()
    results: list[str] = json.loads(process.stdout.readline())
    return results


@cache
def _started() -> "subprocess.Popen[str]":
    """The evaluator, running; its input ends with this process, and so does it."""
    node = _node()
    return subprocess.Popen(
        [node / "node", _HERE / "evaluate.mjs"],
        cwd=_installed(node),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def _installed(node: Path) -> Path:
    """A folder in .cache/ with the evaluator, made again when its pins change."""
    wanted = (_HERE / "package-lock.json").read_bytes()
    folder = CACHE / f"iam-{hashlib.sha256(wanted).hexdigest()[:12]}"
    with lock("iam"):
        if not (folder / "finished").exists():
            say(f"installing the IAM evaluator into {folder} …")
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_HERE / name, folder)
            path = os.pathsep.join((str(node), os.environ.get("PATH", "")))
            quiet = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            run(node / "npm", "ci", *quiet, cwd=folder, env={**os.environ, "PATH": path})
            (folder / "finished").touch()
    return folder


def _node() -> Path:
    """The folder of a Node that is new enough: the one on PATH, else one from PyPI."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found and npm and Path(found).parent == Path(npm).parent:
        version = run(found, "--version").stdout.strip().removeprefix("v")
        if tuple(map(int, version.split("."))) >= _NODE:
            return Path(found).parent
    return tools.scripts("node")
