"""What template.yaml has to keep to in the durable variant alone."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.template import Template
from local.versions import expected
from tests.conftest import Oven
from tests.helpers.cloudformation import Stack
from tests.helpers.rules import put


@pytest.fixture(scope="module")
def stack(baked: Oven) -> Stack:
    """The durable variant."""
    return Stack.of(baked(worker="durable"))


# https://github.com/aws/aws-cdk/blob/main/packages/aws-cdk-lib/aws-lambda/lib/function-hash.ts
HELD_BY_A_VERSION = {
    "Architectures", "DeadLetterConfig", "Description", "DurableConfig", "Environment",
    "EphemeralStorage", "FileSystemConfigs", "Handler", "KmsKeyArn", "Layers", "LoggingConfig",
    "MemorySize", "Role", "Runtime", "Timeout", "TracingConfig", "VpcConfig",
}  # fmt: skip
CHANGES: dict[str, Any] = {
    "Architectures": ["arm64"],
    "DeadLetterQueue/TargetArn": {"Fn::GetAtt": ["Other", "Arn"]},
    "Description": "Runs something else.",
    "DurableConfig/ExecutionTimeout": 60,
    "Environment/Variables/MORE": "1",
    "EphemeralStorage": {"Size": 1024},
    "FileSystemConfigs": [{"Arn": "arn", "LocalMountPath": "/mnt/x"}],
    "Handler": "other.handler",
    "KmsKeyArn": "arn",
    "Layers": ["arn"],
    "LoggingConfig/LogGroup": "other",
    "MemorySize": 1024,
    "Role": {"Fn::GetAtt": ["ApiRole", "Arn"]},
    "Runtime": "python3.14",
    "Timeout": 61,
    "Tracing": "PassThrough",
    "VpcConfig": {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
}
CHANGES_AT_ONCE: dict[str, Any] = {
    "Events": {},
    "ReservedConcurrentExecutions": 5,
    "Tags": {"team": "reports"},
}
OF_SAM = {"AutoPublishAlias", "CodeUri", "VersionDescription"}
LISTS = {"VpcSubnetIds": "subnet-1", "VpcSecurityGroupIds": "sg-1"}
VALUES = {
    "EndpointUrl": "http://localhost:4566",
    "KmsKeyArn": f"arn:aws-us-gov:kms:us-gov-east-1:123456789012:key/mrk-{'0' * 32}",
    "Release": "x" * 40,
}


def versions(stack: Stack) -> dict[str, Any]:
    """What a function's version is made by, in CloudFormation: its logical id and description."""
    return {
        name: substituted(stack, version["Properties"]["Description"])
        for name, version in stack.cloudformation["Resources"].items()
        if version["Type"] == "AWS::Lambda::Version"
    }


def held(stack: Stack) -> dict[str, Any]:
    """What Lambda compares with the last version before it publishes another."""
    function = stack.resources("AWS::Lambda::Function")["WorkerFunction"]
    return {k: substituted(stack, v) for k, v in function.items() if k in HELD_BY_A_VERSION}


def substituted(stack: Stack, value: Any) -> Any:
    """`value` with the parameters in its texts replaced."""
    values = stack.parameters
    return json.loads(re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), json.dumps(value)))


def with_texts(stack: Stack) -> Stack:
    """The stack once its user has written what tests/unit/test_versions.py prints."""
    source = copy.deepcopy(stack.source)
    texts = expected(Template(Path("template.yaml"), source, {}), "WorkerFunction")
    worker = source["Resources"]["WorkerFunction"]["Properties"]
    worker["VersionDescription"] = {"Fn::Sub": texts["VersionDescription"]}
    worker["Environment"]["Variables"]["RELEASE"] = {"Fn::Sub": texts["RELEASE"]}
    return replace(stack, source=source)


def outcome(before: Stack, after: Stack) -> tuple[bool, bool]:
    """Whether a change makes a version, and whether Lambda finds that one has changed."""
    return versions(before) != versions(after), held(before) != held(after)


@pytest.mark.parametrize("path", [*CHANGES, *CHANGES_AT_ONCE])
def test_what_a_changed_property_of_the_worker_does(stack: Stack, path: str) -> None:
    """A version without a change is refused, and a change without a version reaches no job.

    https://github.com/aws/serverless-application-model/issues/3281
    """
    before = with_texts(stack)
    source = copy.deepcopy(stack.source)
    put(f"WorkerFunction/{path}", {**CHANGES, **CHANGES_AT_ONCE}[path])(source)
    after = with_texts(replace(stack, source=source))

    assert outcome(before, after) == ((True, True) if path in CHANGES else (False, False))


def test_every_property_of_the_worker_is_looked_at(stack: Stack) -> None:
    source = stack.source
    given = source["Resources"]["WorkerFunction"]["Properties"].keys()
    known = {path.partition("/")[0] for path in {**CHANGES, **CHANGES_AT_ONCE}}

    assert (given | source["Globals"]["Function"].keys()) - known == OF_SAM
    renamed = {"DeadLetterQueue": "DeadLetterConfig", "Tracing": "TracingConfig"}
    assert {renamed.get(p, p) for p in (path.partition("/")[0] for path in CHANGES)} == (
        HELD_BY_A_VERSION
    )


def other_value(name: str, about: dict[str, Any]) -> Any:
    """A value of a parameter that is not its default, the longest one."""
    allowed = [v for v in about.get("AllowedValues", [about.get("MaxValue")]) if v is not None]
    others = [value for value in allowed if value != about.get("Default")]
    return max(others, key=lambda v: len(str(v))) if others else VALUES.get(name)


def test_what_a_changed_parameter_does(stack: Stack) -> None:
    """Every parameter that Lambda sees in the worker makes a version, but for the lists."""
    before = stack.having(VpcSubnetIds="subnet-0", VpcSecurityGroupIds="sg-0")
    made, lost, refused = set(), set(), set()
    for name, about in stack.source["Parameters"].items():
        value = LISTS.get(name) or other_value(name, about)
        version, change = outcome(before, before.having(**{name: value})) if value else (0, 0)
        made |= {name} if version and change else set()
        lost |= {name} if change and not version else set()
        refused |= {name} if version and not change else set()

    assert (lost, refused) == (set(LISTS), set())
    text = stack.source["Resources"]["WorkerFunction"]["Properties"]["VersionDescription"]
    assert made == set(re.findall(r"\w+", text["Fn::Sub"]))
    assert outcome(before, before.having(**LISTS, Release="2")) == (True, True)


def test_the_longest_description_of_a_version_fits(stack: Stack) -> None:
    """https://docs.aws.amazon.com/lambda/latest/api/API_PublishVersion.html"""
    parameters = stack.source["Parameters"].items()
    longest = {name: value for name, p in parameters if (value := other_value(name, p))}
    (text,) = versions(stack.having(**longest)).values()

    assert "$" not in text["Fn::Sub"]
    assert len(text["Fn::Sub"]) <= 256


def test_versions_outlive_their_successors(stack: Stack) -> None:
    """Executions stay on the version that they began on."""
    versions = [
        resource
        for resource in stack.cloudformation["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Version"
    ]

    assert [v["DeletionPolicy"] for v in versions] == ["Retain"]
    assert [v["UpdateReplacePolicy"] for v in versions] == ["Retain"]


def test_the_name_of_an_expired_job_is_free_again(stack: Stack) -> None:
    """Otherwise its key, used once more, would give a job that nothing runs."""
    config = stack.source["Resources"]["WorkerFunction"]["Properties"]["DurableConfig"]
    days = stack.source["Parameters"]["JobRetentionDays"]["MinValue"]

    assert config["RetentionPeriodInDays"] < days


def test_the_longest_payload_fits_into_an_execution(baked: Oven, stack: Stack) -> None:
    """The sample's waits, each as long as its schema allows."""
    schema = json.loads(baked(worker="durable").read("src/payload.schema.json"))["properties"]
    waits = schema["delay_seconds"]["maximum"] + schema["approval_seconds"]["maximum"]

    days = stack.source["Parameters"]["ExecutionTimeoutDays"]["Default"]
    assert waits < stack.source["Mappings"]["ExecutionTimeout"][days]["Seconds"]


def test_each_execution_timeout_is_its_days_in_seconds(stack: Stack) -> None:
    """CloudFormation does not multiply; Lambda allows 366 days."""
    allowed = stack.source["Parameters"]["ExecutionTimeoutDays"]["AllowedValues"]
    seconds = stack.source["Mappings"]["ExecutionTimeout"]
    assert seconds == {days: {"Seconds": int(days) * 86_400} for days in allowed}
    assert all(1 <= int(days) <= 366 for days in allowed)


def test_the_worker_can_be_invoked_by_its_alias_alone(stack: Stack) -> None:
    """A durable function cannot be invoked without a version."""
    worker = stack.source["Resources"]["WorkerFunction"]["Properties"]
    api = stack.source["Resources"]["ApiFunction"]["Properties"]["Environment"]["Variables"]

    assert api["WORKER_FUNCTION"] == {
        "Fn::Sub": f"${{WorkerFunction}}:{worker['AutoPublishAlias']}"
    }
