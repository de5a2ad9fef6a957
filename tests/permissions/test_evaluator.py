"""The evaluator of IAM policies, on cases whose outcome AWS documents.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from typing import Any

import pytest

from tests.helpers.permissions.audit import API_GATEWAY, CLOUDWATCH, OTHER_ACCOUNT, STRANGER, source
from tests.helpers.permissions.evaluator import (
    ACCOUNT,
    ALLOWED,
    DENIED,
    FORBIDDEN,
    Request,
    allow,
    decide,
    policy,
)
from tests.helpers.support.sam import REGION

pytestmark = pytest.mark.proof

TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/JobsTable"
JOBS = f"arn:aws:sqs:{REGION}:{ACCOUNT}:JobsQueue"
ALARMS = f"arn:aws:sns:{REGION}:{ACCOUNT}:AlarmTopic"
WORKER = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:WorkerFunction"
EXECUTION = f"{WORKER}:7/durable-execution/name/id"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/role"


def role(action: str, resource: str, *own: dict[str, Any], **more: Any) -> Request:
    """A role with these statements asks for something."""
    return Request(ROLE, action, resource, identity=[policy(list(own))], **more)


TLS_ONLY = {
    **allow("sqs:*", "*", Principal="*", Condition={"Bool": {"aws:SecureTransport": "false"}}),
    "Effect": "Deny",
}
TLS, NO_TLS = ({"aws:SecureTransport": value} for value in ("true", "false"))
FROM_HERE = allow(
    "sns:Publish",
    ALARMS,
    Principal={"Service": CLOUDWATCH},
    Condition={"StringEquals": {"aws:SourceAccount": ACCOUNT}},
)
ONE_ROUTE = allow(
    "lambda:InvokeFunction",
    WORKER,
    Principal={"Service": API_GATEWAY},
    Condition={"ArnLike": {"aws:SourceArn": source("GET /jobs/*")["aws:SourceArn"]}},
)

KNOWN = {
    "allowed": (role("dynamodb:GetItem", TABLE, allow("dynamodb:GetItem", TABLE)), ALLOWED),
    "nothing said": (role("dynamodb:GetItem", TABLE), DENIED),
    "another action": (role("dynamodb:PutItem", TABLE, allow("dynamodb:GetItem", TABLE)), DENIED),
    "another resource": (
        role("dynamodb:GetItem", TABLE, allow("dynamodb:GetItem", f"{TABLE}2")),
        DENIED,
    ),
    "case of an action": (
        role("dynamodb:GetItem", TABLE, allow("DynamoDB:getitem", TABLE)),
        ALLOWED,
    ),
    "case of a resource": (
        role("dynamodb:GetItem", TABLE, allow("dynamodb:GetItem", TABLE.lower())),
        DENIED,
    ),
    "stars": (role("dynamodb:GetItem", TABLE, allow("dynamodb:*Item", TABLE[:-5] + "*")), ALLOWED),
    "question mark": (role("sqs:SendMessage", JOBS, allow("sqs:SendMessag?", JOBS)), ALLOWED),
    "explicit deny wins": (
        role(
            "dynamodb:GetItem",
            TABLE,
            allow("*", "*"),
            {**allow("dynamodb:Get*", TABLE), "Effect": "Deny"},
        ),
        FORBIDDEN,
    ),
    "NotAction": (
        role("sqs:SendMessage", JOBS, {"Effect": "Allow", "NotAction": "sqs:*", "Resource": "*"}),
        DENIED,
    ),
    "NotResource": (
        role("sqs:SendMessage", JOBS, {"Effect": "Allow", "Action": "*", "NotResource": TABLE}),
        ALLOWED,
    ),
    "alias": (
        role(
            "lambda:InvokeFunction",
            f"{WORKER}:live",
            allow("lambda:InvokeFunction", f"{WORKER}:live"),
        ),
        ALLOWED,
    ),
    "alias of an unqualified grant": (
        role("lambda:InvokeFunction", f"{WORKER}:live", allow("lambda:InvokeFunction", WORKER)),
        DENIED,
    ),
    "execution": (
        role(
            "lambda:StopDurableExecution",
            EXECUTION,
            allow("lambda:StopDurableExecution", f"{WORKER}:*"),
        ),
        ALLOWED,
    ),
    "execution of an unqualified grant": (
        role(
            "lambda:StopDurableExecution", EXECUTION, allow("lambda:StopDurableExecution", WORKER)
        ),
        DENIED,
    ),
    "with TLS": (
        role(
            "sqs:SendMessage",
            JOBS,
            allow("sqs:SendMessage", JOBS),
            resource_policy=[TLS_ONLY],
            context=TLS,
        ),
        ALLOWED,
    ),
    "without TLS": (
        role(
            "sqs:SendMessage",
            JOBS,
            allow("sqs:SendMessage", JOBS),
            resource_policy=[TLS_ONLY],
            context=NO_TLS,
        ),
        FORBIDDEN,
    ),
    "a service": (
        Request(
            CLOUDWATCH,
            "sns:Publish",
            ALARMS,
            resource_policy=[FROM_HERE],
            context={"aws:SourceAccount": ACCOUNT},
        ),
        ALLOWED,
    ),
    "a service for another account": (
        Request(
            CLOUDWATCH,
            "sns:Publish",
            ALARMS,
            resource_policy=[FROM_HERE],
            context={"aws:SourceAccount": OTHER_ACCOUNT},
        ),
        DENIED,
    ),
    "another service": (
        Request(
            API_GATEWAY,
            "sns:Publish",
            ALARMS,
            resource_policy=[FROM_HERE],
            context={"aws:SourceAccount": ACCOUNT},
        ),
        DENIED,
    ),
    "a route": (
        Request(
            API_GATEWAY,
            "lambda:InvokeFunction",
            WORKER,
            resource_policy=[ONE_ROUTE],
            context=source("GET /jobs/{job_id}"),
        ),
        ALLOWED,
    ),
    "another route": (
        Request(
            API_GATEWAY,
            "lambda:InvokeFunction",
            WORKER,
            resource_policy=[ONE_ROUTE],
            context=source("POST /jobs"),
        ),
        DENIED,
    ),
    "another account's role": (
        Request(STRANGER, "sqs:SendMessage", JOBS, [policy([allow("*", "*")])]),
        DENIED,
    ),
}


def test_the_evaluator_knows_the_known_cases() -> None:
    requests, expected = zip(*KNOWN.values(), strict=True)

    assert dict(zip(KNOWN, decide(requests), strict=True)) == dict(
        zip(KNOWN, expected, strict=True)
    )


def test_the_evaluator_knows_what_there_is() -> None:
    """An action that does not exist, and one that does not act on such a resource, are errors."""
    misspelt, misplaced = decide(
        [
            role("dynamodb:FetchItem", TABLE, allow("dynamodb:*", "*")),
            role("dynamodb:GetItem", JOBS, allow("*", "*")),
        ]
    )

    assert "invalid.action" in misspelt
    assert "no.resource.types" in misplaced
