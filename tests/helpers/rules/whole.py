"""The template as a whole: names, parameters, descriptions, outputs."""

import re
from collections.abc import Iterator

from tests.helpers.cloudformation import Stack
from tests.helpers.rules.rule import (
    ALARM,
    API,
    FUNCTION,
    MAPPING,
    QUEUE,
    TABLE,
    TOPIC,
    drop,
    put,
    rule,
)


@rule(
    put("JobsTable/TableName", "jobs"),
    put("JobsQueue/QueueName", "jobs"),
    put("FunctionLogGroup/LogGroupName", "/jobs"),
    put("WorkerRole/RoleName", "worker"),
    put("Resources/JobsTable/DeletionPolicy", "Retain"),
)
def two_stacks_live_side_by_side_and_come_again(stack: Stack) -> Iterator[str]:
    """Nothing has a name that another stack, or the next one, would stumble over."""
    names = re.compile(
        r"(Table|Queue|Topic|Function|LogGroup|Role|ManagedPolicy|Alarm|Dashboard|Bucket)Name|Name"
    )
    for name, kind, properties in stack.everything():
        if kind in ("AWS::Lambda::Permission", MAPPING) or kind.startswith(
            ("AWS::Lambda::Alias", "AWS::Lambda::Version", "AWS::Lambda::EventInvokeConfig")
        ):
            continue  # there FunctionName says which
        for key, value in properties.items():
            if names.fullmatch(key) and "${AWS::StackName}" not in str(value):
                yield f"{name} has a {key}"
    for name, resource in stack.cloudformation["Resources"].items():
        if resource.get("DeletionPolicy") == "Retain" and "Version" not in resource["Type"]:
            yield f"{name} outlives its stack"


@rule(
    drop("Parameters/MaxAttempts/Description"),
    drop("Parameters/MaxAttempts/MaxValue"),
    drop("Parameters/AlarmEmail/AllowedPattern"),
    put("Parameters/MaxAttempts/Default", 0),
    put("Parameters/LogLevel/Default", "LOUD"),
    put("Parameters/CorsOrigin/Default", "app.example.com"),
    put("Parameters/Extra", {"Type": "String", "Default": "", "Description": "What."}),
)
def every_parameter_is_described_and_bounded(stack: Stack) -> Iterator[str]:
    for name, about in stack.source["Parameters"].items():
        if not str(about.get("Description", "")).endswith("."):
            yield f"{name} has no description"
        default = about.get("Default")
        if "AllowedValues" in about:
            fits = default is None or default in about["AllowedValues"]
        elif about["Type"] == "Number":
            if not {"MinValue", "MaxValue"} <= set(about):
                yield f"{name} has no bounds"
                continue
            fits = default is None or about["MinValue"] <= default <= about["MaxValue"]
        else:
            if not {"AllowedPattern", "MinLength"} & set(about):
                yield f"{name} may be anything"
                continue
            fits = default is None or bool(re.search(about.get("AllowedPattern", ""), default))
        if not fits:
            yield f"{name} refuses its own default"


@rule(
    put("ApiFunction/Description", "x" * 257),
    put("Parameters/LogLevel/Description", "Überall."),
    put("ApiErrorsAlarm/AlarmDescription", "x" * 1025),
    put("Outputs/ApiUrl/Description", "x" * 1025),
)
def descriptions_fit(stack: Stack) -> Iterator[str]:
    """Ours are ASCII; the project's own, which may be in any script, is tried below."""
    described = [
        *((name, about, 4000) for name, about in stack.source["Parameters"].items()),
        *((name, about, 1024) for name, about in stack.source["Outputs"].items()),
        *((name, properties, 256) for name, properties in stack.resources(FUNCTION).items()),
        *((name, properties, 1024) for name, properties in stack.resources(ALARM).items()),
    ]
    for name, about, limit in described:
        text = about.get("Description") or about.get("AlarmDescription", "")
        if not text or not text.isascii() or len(text) > limit:
            yield name


@rule(
    drop("Outputs/ApiUrl"),
    drop("Outputs/DeadLetterQueueUrl"),
    drop("Outputs/JobsTableName"),
    drop("Outputs/JobEventsTopicArn"),
)
def what_people_look_for_is_an_output(stack: Stack) -> Iterator[str]:
    shown = str([about["Value"] for about in stack.source["Outputs"].values()])
    looked_for = [name for kind in (API, QUEUE, TABLE, TOPIC) for name in stack.resources(kind)]
    for name in looked_for:
        if name != "AlarmTopic" and not re.search(rf"['{{]{name}['.}}]", shown):
            yield name
