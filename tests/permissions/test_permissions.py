"""Every call that the functions make is allowed, and everything allowed is called.

Every variant's jobs run on the laptop stack, where each call to AWS is noted. Then the policies of
the template, translated by SAM, decide about each of them. docs/permissions.md shows the result.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests import KIT
from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS
from tests.helpers.cloudformation import Stack
from tests.helpers.permissions.audit import (
    API_GATEWAY,
    CLOUDWATCH,
    OTHER_ACCOUNT,
    STRANGER,
    refused,
    source,
    unused,
)
from tests.helpers.permissions.calls import Call, record
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
from tests.helpers.permissions.policies import Policies
from tests.helpers.rules import Edit, put
from tests.helpers.rules.http_api import operations
from tests.helpers.rules.rule import ALARM, FUNCTION, QUEUE, TOPIC, add, drop
from tests.tools import permissions as document

pytestmark = pytest.mark.proof

Record = Callable[[str], list[Call]]


@pytest.fixture(scope="module")
def recorded(baked: Oven, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The calls of a worker's variant; who may call the API changes nothing about them."""
    done: dict[str, list[Call]] = {}

    def calls(worker: str) -> list[Call]:
        if worker not in done:
            done[worker] = record(
                baked.fresh(worker=worker), worker, tmp_path_factory.mktemp("calls")
            )
        return done[worker]

    return calls


@dataclass(frozen=True)
class Variant:
    """A translated template, and the calls of its functions."""

    policies: Policies
    calls: list[Call]


@pytest.fixture(
    scope="module",
    params=[(worker, auth) for worker in QUESTIONS["worker"] for auth in QUESTIONS["auth"]],
    ids="-".join,
)
def variant(request: pytest.FixtureRequest, baked: Oven, recorded: Record) -> Variant:
    """Each template."""
    worker, auth = request.param
    stack = Stack.of(baked(worker=worker, auth=auth))
    subscribed = stack.having(NotificationEmail="jobs@example.com", AlarmEmail="a@example.com")
    return Variant(Policies(subscribed), recorded(worker))


# ---------------------------------------------------------------- the functions' roles


def test_every_call_is_allowed(variant: Variant) -> None:
    assert refused(variant.policies, variant.calls) == []


def test_everything_allowed_is_called(variant: Variant) -> None:
    assert unused(variant.policies, variant.calls) == []


def broken(baked: Oven, worker: str, edit: Edit) -> Policies:
    """The policies of a template with something changed."""
    stack = Stack.of(baked(worker=worker))
    source = copy.deepcopy(stack.source)
    edit(source)
    return Policies(replace(stack, source=source))


API, WORKER_ROLE = "ApiRole/Policies/0/PolicyDocument", "WorkerRole/Policies/0/PolicyDocument"
FINISH = "FinishJobsPolicy/PolicyDocument"
JOBS_TABLE = {"Fn::GetAtt": ["JobsTable", "Arn"]}


@pytest.mark.parametrize(
    ("worker", "edit", "fault"),
    [
        ("queue", drop(f"{API}/Statement/1"), "ApiFunction: sqs:SendMessage"),
        (
            "queue",
            put(f"{API}/Statement/0/Action", ["dynamodb:GetItem", "dynamodb:PutItem"]),
            "ApiFunction: dynamodb:UpdateItem",
        ),
        (
            "queue",
            put(f"{API}/Statement/0/Resource", {"Fn::GetAtt": ["IdempotencyTable", "Arn"]}),
            "ApiFunction: dynamodb:PutItem",
        ),
        (
            "queue",
            put(f"{WORKER_ROLE}/Statement/0/Resource", {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}),
            "WorkerFunction: sqs:ReceiveMessage",
        ),
        ("queue", drop("WorkerRole/ManagedPolicyArns"), "WorkerFunction: sns:Publish"),
        (
            "queue",
            put(f"{FINISH}/Statement/2/Resource", {"Ref": "AlarmTopic"}),
            "DeadLetterFunction: sns:Publish",
        ),
        (
            "queue",
            put(f"{FINISH}/Statement/0/Condition", {"Bool": {"aws:SecureTransport": "false"}}),
            "WorkerFunction: dynamodb:UpdateItem",
        ),
        (
            "queue",
            put("QueuePolicy/PolicyDocument/Statement/0/Condition", {}),
            "ApiFunction: sqs:SendMessage",
        ),
        (
            "durable",
            put(
                "ApiRole/Policies/0/PolicyDocument/Statement/1/Resource",
                {"Fn::GetAtt": ["WorkerFunction", "Arn"]},
            ),
            "ApiFunction: lambda:InvokeFunction",
        ),
        ("durable", drop("Resources/WorkerExecutionsPolicy"), "lambda:CheckpointDurableExecution"),
        (
            "durable",
            put(
                "WorkerExecutionsPolicy/PolicyDocument/Statement/0/Action",
                "lambda:CheckpointDurableExecution",
            ),
            "lambda:GetDurableExecutionState",
        ),
        (
            "durable",
            put(f"{WORKER_ROLE}/Statement/0/Resource", {"Ref": "FollowUpTopic"}),
            "WorkerFunction: sqs:SendMessage",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_call_that_would_be_denied_is_found(
    worker: str, edit: Edit, fault: str, baked: Oven, recorded: Record
) -> None:
    found = refused(broken(baked, worker, edit), recorded(worker))

    assert [text for text in found if fault in text], found


@pytest.mark.parametrize(
    ("worker", "edit", "fault"),
    [
        (
            "queue",
            put(f"{FINISH}/Statement/2/Action", ["sns:Publish", "sns:Subscribe"]),
            "WorkerFunction: sns:Subscribe",
        ),
        (
            "queue",
            put(
                f"{FINISH}/Statement/2/Resource", [{"Ref": "JobEventsTopic"}, {"Ref": "AlarmTopic"}]
            ),
            "DeadLetterFunction: sns:Publish on arn:aws:sns:us-east-1:000000000000:AlarmTopic",
        ),
        (
            "queue",
            put("ApiRole/ManagedPolicyArns", [{"Ref": "FinishJobsPolicy"}]),
            "ApiFunction: dynamodb:DeleteItem on arn:aws:dynamodb:us-east-1:000000000000:table/Id",
        ),
        (
            "queue",
            put(
                "FunctionPolicy/PolicyDocument/Statement/0",
                allow(["logs:PutLogEvents", "logs:CreateLogStream", "logs:CreateLogGroup"], "*"),
            ),
            "ApiFunction: logs:CreateLogGroup",
        ),
        (
            "queue",
            add(
                "More",
                "AWS::IAM::Policy",
                PolicyName="more",
                Roles=[{"Ref": "ApiRole"}],
                PolicyDocument=policy([allow("dynamodb:GetItems", "*")]),
            ),
            "ApiFunction: dynamodb:GetItems",
        ),
        (
            "durable",
            put(
                "WorkerExecutionsPolicy/PolicyDocument/Statement/0/Action/0",
                "lambda:InvokeFunction",
            ),
            "WorkerFunction: lambda:InvokeFunction",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_grant_in_vain_is_found(
    worker: str, edit: Edit, fault: str, baked: Oven, recorded: Record
) -> None:
    found = unused(broken(baked, worker, edit), recorded(worker))

    assert [text for text in found if text.startswith(fault)], found


def test_a_policy_that_is_not_in_the_template_is_refused(baked: Oven) -> None:
    """Whoever adds one of AWS's must say here what it grants."""
    elsewhere = ["arn:aws:iam::aws:policy/AmazonSQSFullAccess"]
    policies = broken(baked, "queue", put("ApiRole/ManagedPolicyArns", elsewhere))

    with pytest.raises(ValueError, match="AmazonSQSFullAccess"):
        policies.identity("ApiFunction")


def test_lambda_alone_may_take_the_roles(variant: Variant) -> None:
    stack, requests = variant.policies.stack, []
    for name, properties in stack.resources("AWS::IAM::Role").items():
        trust = variant.policies.concrete(properties["AssumeRolePolicyDocument"]["Statement"])
        for who in ("lambda.amazonaws.com", API_GATEWAY, STRANGER):
            requests.append(
                Request(who, "sts:AssumeRole", variant.policies.arn(name), resource_policy=trust)
            )

    assert decide(requests) == [ALLOWED, DENIED, DENIED] * len(variant.policies.roles)


# ---------------------------------------------------------------- queues, topics, functions


def test_nothing_is_sent_in_the_clear(variant: Variant) -> None:
    """Queues and topics refuse whatever comes without TLS, whoever sends it."""
    calls = [call for call in variant.calls if call.action.startswith(("sqs:", "sns:"))]

    found = refused(variant.policies, calls, tls=False)

    assert len(found) == len({(c.function, c.action, c.resource) for c in calls})
    assert [text for text in found if not text.endswith(FORBIDDEN)] == []


def routes(policies: Policies) -> list[str]:
    """The API's routes, such as "GET /jobs/{job_id}"."""
    return [f"{method} {path}" for method, path, _ in operations(policies.stack)]


def invoked_for(policies: Policies, route: str, api: str = "HttpApi") -> Request:
    """API Gateway invokes the API's function for a route."""
    function = policies.arn("ApiFunction")
    own = policies.of_resource(function)
    context = source(route, api)
    return Request(API_GATEWAY, "lambda:InvokeFunction", function, [], own, context)


def test_the_api_may_invoke_its_function_for_its_routes(variant: Variant) -> None:
    requests = [invoked_for(variant.policies, route) for route in routes(variant.policies)]

    assert len(requests) >= 4
    assert set(decide(requests)) == {ALLOWED}


def test_the_api_may_invoke_for_nothing_else(variant: Variant) -> None:
    """No other route, no other API, no other function, and each permission is for a route."""
    policies = variant.policies
    other = [invoked_for(policies, route) for route in ("DELETE /jobs", "GET /jobs", "GET /")]
    other += [invoked_for(policies, route, "another") for route in routes(policies)]
    assert set(decide(other)) == {DENIED}

    for function in set(policies.roles) - {"ApiFunction"}:
        assert policies.of_resource(policies.arn(function)) == []
    for permission in policies.of_resource(policies.arn("ApiFunction")):
        requests = [
            replace(invoked_for(policies, route), resource_policy=[permission])
            for route in routes(policies)
        ]
        # More than one only where a route continues another: `*` matches slashes, too.
        allowed = [
            r for r, d in zip(routes(policies), decide(requests), strict=True) if d == ALLOWED
        ]
        assert allowed, permission
        assert all(route.startswith(min(allowed, key=len)) for route in allowed), permission


def test_alarms_may_be_published(variant: Variant) -> None:
    """By CloudWatch for this account, and to that topic only."""
    policies, requests = variant.policies, []
    alarms = policies.stack.resources(ALARM)
    topics = {
        topic for alarm in alarms.values() for topic in policies.concrete(alarm["AlarmActions"])
    }
    for name in alarms:
        for topic in sorted(topics):
            for account in (ACCOUNT, OTHER_ACCOUNT):
                context = {
                    "aws:SourceAccount": account,
                    "aws:SourceArn": policies.arn(name).replace(ACCOUNT, account),
                    "aws:SecureTransport": "true",
                }
                own = policies.of_resource(topic)
                requests.append(Request(CLOUDWATCH, "sns:Publish", topic, [], own, context))
    assert decide(requests) == [ALLOWED, DENIED] * len(alarms)

    others = {policies.arn(name) for name in policies.stack.resources(TOPIC)} - topics
    context = {"aws:SourceAccount": ACCOUNT, "aws:SecureTransport": "true"}
    requests = [
        Request(CLOUDWATCH, "sns:Publish", topic, [], policies.of_resource(topic), context)
        for topic in others
    ]
    assert set(decide(requests)) == {DENIED}


def test_strangers_may_nothing(variant: Variant) -> None:
    """Roles of other accounts, whatever their own account allows them."""
    policies = variant.policies
    asked = [
        *((policies.arn(name), "sqs:SendMessage") for name in policies.stack.resources(QUEUE)),
        *((policies.arn(name), "sqs:ReceiveMessage") for name in policies.stack.resources(QUEUE)),
        *((policies.arn(name), "sns:Publish") for name in policies.stack.resources(TOPIC)),
        *((policies.arn(name), "sns:Subscribe") for name in policies.stack.resources(TOPIC)),
        *(
            (policies.arn(name), "lambda:InvokeFunction")
            for name in policies.stack.resources(FUNCTION)
        ),
    ]
    everything = [policy([allow("*", "*")])]
    requests = [
        Request(STRANGER, action, arn, everything, policies.of_resource(arn))
        for arn, action in asked
    ]

    assert set(decide(requests)) == {DENIED}


def test_subscribers_need_no_permission(variant: Variant) -> None:
    """SNS sends mail by itself. For a queue or a function it would need a policy there."""
    subscriptions = variant.policies.stack.resources("AWS::SNS::Subscription")

    assert subscriptions
    assert {subscription["Protocol"] for subscription in subscriptions.values()} == {"email"}


# ---------------------------------------------------------------- docs/permissions.md


def test_the_document_shows_it(baked: Oven, recorded: Record) -> None:
    """When it does not: `python -m tests.tools.permissions` writes it anew."""
    written = (KIT / "docs" / "permissions.md").read_text(encoding="utf-8")
    shown = document.tables({worker: recorded(worker) for worker in QUESTIONS["worker"]})

    assert written.endswith(shown)
