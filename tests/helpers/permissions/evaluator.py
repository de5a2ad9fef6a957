"""Whether IAM allows a request, as @cloud-copilot/iam-simulate decides it.

It knows actions, resource types and condition keys from AWS's own service reference, so that a
misspelt action or a resource of the wrong kind is an error. Python has nothing of the kind that is
maintained: moto's evaluator knows no conditions. What it does not know: the policies of KMS keys,
which are not in a template, and service control policies. Its licence is the AGPL: it is run as a
tool, and nothing of it is shipped.
https://github.com/cloud-copilot/iam-simulate
"""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.helpers.support import tools

ACCOUNT = "000000000000"
ALLOWED, DENIED, FORBIDDEN = "Allowed", "ImplicitlyDenied", "ExplicitlyDenied"

_HERE = Path(__file__).parent


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
    node, packages = tools.npm_packages("iam", _HERE)
    return subprocess.Popen(
        [node, _HERE / "evaluate.mjs"],
        cwd=packages,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
