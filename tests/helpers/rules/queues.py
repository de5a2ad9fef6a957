"""Queues, topics, and what Lambda makes of them."""

import itertools
from collections.abc import Iterator
from typing import Any

from tests.helpers.cloudformation import Stack, referenced, statements
from tests.helpers.rules.rule import (
    DAY,
    FUNCTION,
    MAPPING,
    QUEUE,
    TABLE,
    TOPIC,
    TOPIC_POLICY,
    add,
    drop,
    put,
    rule,
)

POLICIES = (
    ("Queues", "AWS::SQS::QueuePolicy", "sqs:*"),
    ("Topics", TOPIC_POLICY, "sns:Publish"),
)


@rule(drop("JobsQueue/RedrivePolicy"), add("Extra", QUEUE))
def every_queue_has_a_dead_letter_queue(stack: Stack) -> Iterator[str]:
    queues = stack.resources(QUEUE)
    targets = {
        name: referenced(queue["RedrivePolicy"]["deadLetterTargetArn"])
        for name, queue in queues.items()
        if "RedrivePolicy" in queue
    }
    # A function's own, too.
    last_resorts = {
        name
        for function in stack.resources(FUNCTION).values()
        for name in referenced(function.get("DeadLetterConfig", {}))
    }.union(*targets.values())
    if not last_resorts:
        yield "there is no dead-letter queue"
    for name in queues:
        if name not in last_resorts and not targets.get(name, set()) & set(queues):
            yield f"{name} has no dead-letter queue"


@rule(
    put("JobsQueue/MessageRetentionPeriod", 14 * DAY),
    put("DeadLetterQueue/MessageRetentionPeriod", 4 * DAY),
    drop("DeadLetterQueue/MessageRetentionPeriod"),
)
def dead_letters_outlive_the_queue_they_come_from(stack: Stack) -> Iterator[str]:
    """A redriven message keeps its age."""
    queues = stack.resources(QUEUE)
    for name, queue in queues.items():
        for target in referenced(queue.get("RedrivePolicy", {})):
            if _kept(queues[target]) < _kept(queue) + 7 * DAY:
                yield f"{target} keeps what {name} dead-letters for less than a week"


def _kept(queue: dict[str, Any]) -> int:
    return int(queue.get("MessageRetentionPeriod", 4 * DAY))


@rule(put("Parameters/MaxAttempts/Default", 4), put("JobsQueue/RedrivePolicy/maxReceiveCount", 1))
def a_job_has_five_attempts_by_default(stack: Stack) -> Iterator[str]:
    for name, queue in stack.resources(QUEUE).items():
        if "RedrivePolicy" in queue and int(queue["RedrivePolicy"]["maxReceiveCount"]) < 5:
            yield f"{name} gives up after {queue['RedrivePolicy']['maxReceiveCount']} receives"


@rule(
    put("JobsQueue/VisibilityTimeout", 359),
    put("Mappings/Visibility/WorkerTimeout/900", 900),
    put("Parameters/WorkerTimeout/AllowedValues", [60, 240]),
    put("DeadLetterFunction/Timeout", 31),
    drop("DeadLetterQueue/VisibilityTimeout"),
)
def a_message_is_hidden_for_six_times_the_timeout(stack: Stack) -> Iterator[str]:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""
    allowed = stack.source["Parameters"].get("WorkerTimeout", {}).get("AllowedValues", [None])
    for timeout in allowed:
        configured = stack if timeout is None else stack.having(WorkerTimeout=timeout)
        try:
            queues, functions = configured.resources(QUEUE), configured.resources(FUNCTION)
        except KeyError as missing:
            yield f"WorkerTimeout {timeout} has no visibility timeout: no row {missing}"
            continue
        for name, mapping in configured.resources(MAPPING).items():
            (queue,) = referenced(mapping["EventSourceArn"])
            (function,) = referenced(mapping["FunctionName"])
            hidden = int(queues[queue].get("VisibilityTimeout", 30))
            if hidden < 6 * int(functions[function]["Timeout"]) or hidden > DAY / 2:
                yield f"{name}: hidden for {hidden} s at WorkerTimeout {timeout}"


@rule(put("Parameters/MaxAttempts/MaxValue", 65), put("JobsQueue/MessageRetentionPeriod", 300_000))
def attempts_that_are_killed_fit_into_the_retention(stack: Stack) -> Iterator[str]:
    """Otherwise SQS drops the message before it is dead-lettered, and its job never ends."""
    parameters = stack.source["Parameters"]
    if "MaxAttempts" in parameters:
        worst = stack.having(
            MaxAttempts=parameters["MaxAttempts"]["MaxValue"],
            WorkerTimeout=max(parameters["WorkerTimeout"]["AllowedValues"]),
        )
        for name, queue in worst.resources(QUEUE).items():
            if "RedrivePolicy" in queue:
                attempts = int(queue["RedrivePolicy"]["maxReceiveCount"])
                if attempts * int(queue["VisibilityTimeout"]) >= _kept(queue):
                    yield f"{name}: {attempts} attempts may outlast its retention"


@rule(
    drop("Rules/LargeBatchesNeedAWindow"),
    put("Rules/LargeBatchesNeedAWindow/RuleCondition/Fn::Not/0/Fn::Contains/0", ["1", "11"]),
    put("Parameters/BatchSize/MaxValue", 10_001),
    put("Parameters/BatchWindow/MaxValue", 301),
    put("DeadLetterFunction/Events/DeadLetters/Properties/BatchSize", 11),
)
def batches_are_legal_whatever_the_parameters(stack: Stack) -> Iterator[str]:
    """At most 10,000; above 10 with a window; and the Rules refuse no batch that is legal."""
    limits = stack.source["Parameters"]
    windows = {0, 1, limits.get("BatchWindow", {}).get("MaxValue", 0)}
    sizes = {1, 2, 10, 11, limits.get("BatchSize", {}).get("MaxValue", 1)}
    for size, window in itertools.product(sorted(sizes), sorted(windows)):
        chosen = stack.having(BatchSize=size, BatchWindow=window)
        if not chosen.allowed():
            if size <= 10 or window >= 1:
                yield f"BatchSize {size} with BatchWindow {window} is refused"
            continue
        for name, mapping in chosen.resources(MAPPING).items():
            batch = int(mapping.get("BatchSize", 10))
            wait = int(mapping.get("MaximumBatchingWindowInSeconds", 0))
            if not (batch <= 10 or (batch <= 10_000 and wait >= 1)) or wait > 300:
                yield f"{name}: a batch of {batch} with a window of {wait} s"


@rule(
    drop("WorkerFunction/Events/Jobs/Properties/FunctionResponseTypes"),
    put("DeadLetterFunction/Events/DeadLetters/Properties/FunctionResponseTypes", []),
)
def what_a_batch_could_not_do_is_reported(stack: Stack) -> Iterator[str]:
    """Without it, Lambda deletes every message of a batch that returns."""
    for name, mapping in stack.resources(MAPPING).items():
        if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield name


@rule(
    drop("WorkerFunction/Events/Jobs/Properties/ScalingConfig"),
    put("Parameters/WorkerConcurrency/MinValue", 1),
    put("Parameters/WorkerConcurrency/MaxValue", 1001),
    put("WorkerFunction/ReservedConcurrentExecutions", 9),
)
def concurrency_has_a_bound(stack: Stack) -> Iterator[str]:
    """Between 2 and 1000, and not above what is reserved, which would throttle."""
    about = stack.source["Parameters"].get("WorkerConcurrency", {})
    bounds = {stack.parameters.get("WorkerConcurrency"), *map(about.get, ("MinValue", "MaxValue"))}
    for bound in bounds:
        chosen = stack.having(WorkerConcurrency=bound)
        for name, mapping in chosen.resources(MAPPING).items():
            most = int(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 0))
            (function,) = referenced(mapping["FunctionName"])
            reserved = chosen.resources(FUNCTION)[function].get("ReservedConcurrentExecutions")
            if not 2 <= most <= 1000 or (reserved is not None and int(reserved) < most):
                yield f"{name}: {most}"


@rule(
    put("QueuePolicy/Queues", [{"Ref": "DeadLetterQueue"}]),
    put("QueuePolicy/PolicyDocument/Statement/0/Effect", "Allow"),
    put("QueuePolicy/PolicyDocument/Statement/0/Action", "sqs:SendMessage"),
    put(
        "QueuePolicy/PolicyDocument/Statement/0/Condition",
        {"Bool": {"aws:SecureTransport": "true"}},
    ),
    drop("QueuePolicy/PolicyDocument/Statement/0/Condition"),
    add("Extra", TOPIC),
)
def queues_and_topics_take_tls_only(stack: Stack) -> Iterator[str]:
    guarded = set()
    for attached, kind, action in POLICIES:
        for policy in stack.resources(kind).values():
            for statement in statements(policy["PolicyDocument"]):
                if (
                    statement["Effect"] == "Deny"
                    and statement["Principal"] == "*"
                    and statement["Action"] == [action]
                    and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
                ):
                    everything = statement["Resource"] == ["*"]
                    about = referenced(policy[attached])
                    guarded |= about if everything else about & referenced(statement["Resource"])
    for name in {**stack.resources(QUEUE), **stack.resources(TOPIC)}:
        if name not in guarded:
            yield name


@rule(
    put("AlarmTopicPolicy/Topics", [{"Ref": "AlarmTopic"}, {"Ref": "JobEventsTopic"}]),
    put("AlarmTopicPolicy/Topics", [{"Ref": "JobEventsTopic"}]),
    put("AlarmTopicPolicy/PolicyDocument/Statement/0/Action", "sns:*"),
    put(
        "QueuePolicy/PolicyDocument/Statement/0/Resource",
        [{"Fn::GetAtt": ["JobsQueue", "Arn"]}, {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}],
    ),
)
def a_policy_is_about_what_it_is_attached_to(stack: Stack) -> Iterator[str]:
    """SNS and SQS apply the document to each topic or queue in turn, and refuse a statement that
    names another one, or several: "Policy statement must apply to a single resource!" SNS refuses
    actions with a wildcard, too.
    https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-language-api-permissions-reference.html
    """
    for attached, kind, _ in POLICIES:
        for name, policy in stack.resources(kind).items():
            about = [referenced(place) for place in policy[attached]]
            for statement in statements(policy["PolicyDocument"]):
                (first, *others) = statement["Resource"]
                if others or (first != "*" and any(referenced(first) != one for one in about)):
                    yield f"{name}: {statement['Sid']} names another resource, or several"
                if kind == TOPIC_POLICY and any("*" in action for action in statement["Action"]):
                    yield f"{name}: {statement['Sid']} has an action with a wildcard"


@rule(
    put("JobsQueue/SqsManagedSseEnabled", False),
    drop("DeadLetterQueue/SqsManagedSseEnabled"),
    drop("JobEventsTopic/KmsMasterKeyId"),
    put("JobsTable/SSESpecification/SSEEnabled", False),
    drop("IdempotencyTable/SSESpecification"),
)
def everything_is_encrypted_at_rest(stack: Stack) -> Iterator[str]:
    """AlarmTopic has no key of its own; template.yaml says why."""
    for name, queue in stack.resources(QUEUE).items():
        if queue.get("SqsManagedSseEnabled") is not True and "KmsMasterKeyId" not in queue:
            yield name
    for name, topic in stack.resources(TOPIC).items():
        if "KmsMasterKeyId" not in topic and name != "AlarmTopic":
            yield name
    for name, table in stack.resources(TABLE).items():
        if table.get("SSESpecification", {}).get("SSEEnabled") is not True:
            yield name
