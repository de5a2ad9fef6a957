"""Functions, and what they may do."""

import ast
from collections.abc import Iterator
from typing import Any

from tests.helpers.cloudformation import Stack, referenced, statements
from tests.helpers.rules.rule import FUNCTION, MAPPING, ROLE, add, drop, put, rule
from tests.helpers.rules.sources import calls, imported, sources, variables

LOGGING = {"logs:CreateLogStream", "logs:PutLogEvents"}
TRACING = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
MAPPING_NEEDS = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
ANYTHING = {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
DURABLE_NEEDS = {"lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"}
READ_BY_LIBRARIES = {
    "AWS_ENDPOINT_URL",  # https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
    "AWS_ENDPOINT_URL_LAMBDA",
    "RELEASE",  # nothing reads it: it makes versions differ, as local/versions.py says
    # https://docs.aws.amazon.com/powertools/python/latest/environment_variables/
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_SERVICE_NAME",
}


@rule(
    drop("Globals/Function/LoggingConfig"),
    put("WorkerFunction/LoggingConfig/LogGroup", {"Ref": "HttpApiLogGroup"}),
    drop("FunctionLogGroup/RetentionInDays"),
)
def every_function_logs_to_the_group_that_keeps_for_as_long_as_asked(
    stack: Stack,
) -> Iterator[str]:
    """One group serves all: its streams are named after function and version.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html
    """
    for name, function in stack.resources(FUNCTION).items():
        if referenced(function.get("LoggingConfig", {}).get("LogGroup")) != {"FunctionLogGroup"}:
            yield f"{name} logs elsewhere"
    for name, group in stack.resources("AWS::Logs::LogGroup").items():
        if "RetentionInDays" not in group:
            yield f"{name} keeps logs for ever"


@rule(
    put("Globals/Function/LoggingConfig", {"LogFormat": "JSON"}),
    put("WorkerFunction/LoggingConfig/ApplicationLogLevel", {"Ref": "LogLevel"}),
)
def log_level_is_powertools_alone(stack: Stack) -> Iterator[str]:
    """With LogFormat JSON, Lambda's level wins over POWERTOOLS_LOG_LEVEL; and where that is above
    INFO, Lambda drops EMF lines, which have no level: no metrics, no alarms.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
    """
    for name, function in stack.resources(FUNCTION).items():
        if set(function.get("LoggingConfig", {})) != {"LogGroup"}:
            yield name


@rule(
    put("WorkerFunction/Role", {"Fn::GetAtt": ["ApiRole", "Arn"]}),
    drop("WorkerFunction/Role"),
    put(
        "FunctionPolicy/PolicyDocument/Statement/0/Resource",
        {"Fn::GetAtt": ["HttpApiLogGroup", "Arn"]},
    ),
    drop("WorkerRole/ManagedPolicyArns/0"),
)
def every_function_has_a_role_of_its_own(stack: Stack) -> Iterator[str]:
    used: list[str] = []
    for name, function in stack.resources(FUNCTION).items():
        roles = referenced(function["Role"])
        if roles & set(used) or f"{name}Role" in roles:  # the latter is what SAM makes by itself
            yield f"{name} has no role of its own"
        used += roles
        group = referenced(function.get("LoggingConfig", {}))
        writes = [
            referenced(statement["Resource"])
            for statement in allowed_to(stack, name)
            if "logs:PutLogEvents" in statement["Action"]
        ]
        if writes != [group]:
            yield f"{name} may not write to its log group, or to others as well"


def allowed_to(stack: Stack, function: str) -> list[dict[str, Any]]:
    """What the policies of a function's role allow."""
    (role,) = referenced(stack.resources(FUNCTION)[function]["Role"])
    about = stack.resources(ROLE)[role]
    shared = stack.resources("AWS::IAM::ManagedPolicy")
    documents = [policy["PolicyDocument"] for policy in about.get("Policies", [])]
    for policy in about.get("ManagedPolicyArns", []):
        documents += [shared[name]["PolicyDocument"] for name in referenced(policy)]
    for attached in stack.resources("AWS::IAM::Policy").values():
        if role in referenced(attached["Roles"]):
            documents.append(attached["PolicyDocument"])
    return [
        statement
        for document in documents
        for statement in statements(document)
        if statement["Effect"] == "Allow"
    ]


@rule(
    put("ApiRole/Policies/0/PolicyDocument/Statement/0/Resource", "*"),
    put("FinishJobsPolicy/PolicyDocument/Statement/0/Action", "dynamodb:*"),
    put("ApiRole/ManagedPolicyArns", ["arn:aws:iam::aws:policy/AmazonSQSFullAccess"]),
    add("More", "AWS::IAM::Policy", Roles=[{"Ref": "ApiRole"}], PolicyDocument=ANYTHING),
)
def no_role_has_a_wildcard(stack: Stack) -> Iterator[str]:
    """Except for X-Ray, which knows no finer resource.
    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsx-ray.html
    """
    for name, role in stack.resources(ROLE).items():
        for policy in role.get("ManagedPolicyArns", []):
            if not referenced(policy):
                yield f"{name} has a policy that is not in the template: {policy}"
    for name in stack.resources(FUNCTION):
        for statement in allowed_to(stack, name):
            if any("*" in action for action in statement["Action"]):
                yield f"{name}: {statement['Action']}"
            if "*" in statement["Resource"] and not set(statement["Action"]) <= TRACING:
                yield f"{name}: {statement['Action']} on everything"


@rule(
    put("Globals/Function/Tracing", "PassThrough"),
    put(
        "FunctionPolicy/PolicyDocument/Statement/1/Action",
        ["xray:PutTraceSegments"],
    ),
)
def every_function_is_traced(stack: Stack) -> Iterator[str]:
    for name, function in stack.resources(FUNCTION).items():
        actions = {action for s in allowed_to(stack, name) for action in s["Action"]}
        if function.get("TracingConfig") != {"Mode": "Active"} or not actions >= TRACING:
            yield name


@rule(
    put(
        "ApiRole/Policies/0/PolicyDocument/Statement/0/Action",
        ["dynamodb:PutItem", "dynamodb:Scan"],
    ),
    put("DeadLetterRole/Policies/0/PolicyDocument/Statement/0/Action", ["sqs:SendMessage"]),
    put(
        "DeadLetterRole/Policies/0/PolicyDocument/Statement/0/Resource",
        {"Fn::GetAtt": ["JobsQueue", "Arn"]},
    ),
    put(
        "ApiRole/Policies/0/PolicyDocument/Statement/0/Resource",
        [{"Fn::GetAtt": ["JobsTable", "Arn"]}, {"Fn::GetAtt": ["IdempotencyTable", "Arn"]}],
    ),
    add("More", "AWS::IAM::Policy", Roles=[{"Ref": "ApiRole"}], PolicyDocument=ANYTHING),
)
def no_role_may_do_what_its_function_never_does(stack: Stack) -> Iterator[str]:
    """Compares what a role allows with the calls in the sources that its handler imports."""
    for name, function in stack.resources(FUNCTION).items():
        modules = imported(stack.project, function["Handler"].split(".")[0])
        needs = calls(modules) | TRACING | LOGGING
        if fed_by(stack, name):
            needs |= MAPPING_NEEDS
        if "DurableConfig" in function:
            needs |= DURABLE_NEEDS
        if "DeadLetterConfig" in function:
            needs.add("sqs:SendMessage")
        for statement in allowed_to(stack, name):
            for action in sorted(set(statement["Action"]) - needs):
                yield f"{name} may {action}"
            resources = referenced(statement["Resource"])
            if set(statement["Action"]) & MAPPING_NEEDS and resources != fed_by(stack, name):
                yield f"{name} may receive from {resources}"
            if "IdempotencyTable" in resources and "jobs.once" not in modules:
                yield f"{name} may touch IdempotencyTable"


def fed_by(stack: Stack, function: str) -> set[str]:
    """The queues that Lambda polls for a function."""
    return {
        queue
        for mapping in stack.resources(MAPPING).values()
        if referenced(mapping["FunctionName"]) == {function}
        for queue in referenced(mapping["EventSourceArn"])
    }


@rule(
    put("Globals/Function/Environment/Variables/UNUSED", "x"),
    put("DeadLetterFunction/Environment", {"Variables": {"JOBS_QUEUE_URL": "x"}}),
    drop("Globals/Function/Environment/Variables/JOBS_TABLE"),
    drop("WorkerFunction/Environment/Variables/RETRY_BASE_SECONDS"),
)
def the_environment_is_what_the_sources_read(stack: Stack) -> Iterator[str]:
    for name, function in stack.resources(FUNCTION).items():
        modules = imported(stack.project, function["Handler"].split(".")[0])
        read = {key for tree in modules.values() for key in variables(tree)}
        endpoint = stack.having(EndpointUrl="http://localhost:4566")
        given = set(endpoint.resources(FUNCTION)[name]["Environment"]["Variables"])
        for variable in sorted(read - given):
            yield f"{name} lacks {variable}"
        for variable in sorted(given - read - READ_BY_LIBRARIES):
            yield f"{name} does not read {variable}"


@rule(put("WorkerFunction/Handler", "worker.run"), put("ApiFunction/Handler", "app.handler"))
def every_handler_is_there(stack: Stack) -> Iterator[str]:
    for name, function in stack.resources(FUNCTION).items():
        module, handler = function["Handler"].split(".")
        source = sources(stack.project).get(module, ast.Module([], []))
        if handler not in _defined(source):
            yield f"{name}: {function['Handler']}"


def _defined(source: ast.Module) -> set[str]:
    """The names that a module gives to functions, by `def` or by `=`."""
    functions = {node.name for node in source.body if isinstance(node, ast.FunctionDef)}
    assigned = (node.targets for node in source.body if isinstance(node, ast.Assign))
    return functions | {ast.unparse(target) for targets in assigned for target in targets}
