"""Calls held against policies: what would be denied, and what is granted in vain."""

from collections.abc import Iterable
from itertools import groupby

from tests.helpers.permissions.calls import Call
from tests.helpers.permissions.evaluator import ACCOUNT, ALLOWED, Request, decide, policy
from tests.helpers.permissions.policies import Policies

API_GATEWAY, CLOUDWATCH = "apigateway.amazonaws.com", "cloudwatch.amazonaws.com"
OTHER_ACCOUNT = "111111111111"
STRANGER = f"arn:aws:iam::{OTHER_ACCOUNT}:role/stranger"


def asked(calls: Iterable[Call]) -> list[tuple[str, str, str]]:
    """Function, action and resource of the calls, each once."""
    return sorted({(call.function, call.action, call.resource) for call in calls})


def refused(policies: Policies, calls: Iterable[Call], *, tls: bool = True) -> list[str]:
    """The calls that IAM would refuse, and how."""
    wanted = asked(calls)
    requests = [
        Request(
            principal=policies.roles[function],
            action=action,
            resource=resource,
            identity=list(policies.identity(function).values()),
            resource_policy=policies.of_resource(resource),
            context={"aws:SecureTransport": str(tls).lower()},
        )
        for function, action, resource in wanted
    ]
    return [
        f"{function}: {action} on {resource}: {result}"
        for (function, action, resource), result in zip(wanted, decide(requests), strict=True)
        if result != ALLOWED
    ]


def unused(policies: Policies, calls: Iterable[Call]) -> list[str]:
    """The grants that none of the calls needs: each is tried alone on all that was asked."""
    found, requests, grants = [], [], []
    for function, own in groupby(asked(calls), key=lambda call: call[0]):
        wanted = list(own)
        for grant in policies.grants(function):
            alone = [policy([grant.statement])]
            for _, action, resource in wanted:
                grants.append(grant)
                requests.append(Request(policies.roles[function], action, resource, alone))
    results = zip(grants, decide(requests), strict=True)
    for grant, tried in groupby(results, key=lambda result: result[0]):
        if ALLOWED not in {result for _, result in tried}:
            found.append(f"{grant.function}: {grant.action} on {grant.resource} ({grant.where})")
    return found


def source(route: str, api: str = "HttpApi") -> dict[str, str]:
    """What API Gateway says of itself when it invokes a function for a route ("GET /jobs")."""
    method, path = route.split()
    arn = f"arn:aws:execute-api:us-east-1:{ACCOUNT}:{api}/$default/{method}{path}"
    return {"aws:SourceArn": arn, "aws:SecureTransport": "true"}
