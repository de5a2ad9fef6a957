"""What template.yaml has to keep to in the durable variant alone."""

import json
import re
from typing import Any

import pytest

from tests.conftest import Oven
from tests.helpers.cloudformation import Stack


@pytest.fixture(scope="module")
def stack(baked: Oven) -> Stack:
    """The durable variant."""
    return Stack.of(baked(worker="durable"))


def named(value: Any) -> set[str]:
    """What a part of a template refers to: by Ref, by If and in Sub."""
    if isinstance(value, list):
        return set().union(*(named(item) for item in value))
    if not isinstance(value, dict):
        return set()
    found = named(list(value.values()))
    found |= {value["Ref"]} if "Ref" in value else set()
    found |= {value["Fn::If"][0]} if "Fn::If" in value else set()
    if "Fn::Sub" in value:
        found |= set(re.findall(r"\$\{(\w+)\}", json.dumps(value["Fn::Sub"])))
    return found


def test_a_changed_parameter_reaches_the_alias(stack: Stack) -> None:
    """SAM makes a version when the code changes, CloudFormation when the description does."""
    source = stack.source
    worker = dict(source["Resources"]["WorkerFunction"]["Properties"])
    described = named(worker.pop("VersionDescription"))
    used = named([worker, source["Globals"]["Function"]])
    for condition in used & source["Conditions"].keys():
        used |= named(source["Conditions"][condition])

    local_tools = {"EndpointUrl"}
    # A description has room for 256 characters, not for these lists: docs/limits.md says so.
    lists = {"VpcSubnetIds", "VpcSecurityGroupIds"}
    assert described == (used & source["Parameters"].keys()) - local_tools - lists


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

    assert waits < stack.source["Mappings"]["Execution"]["Longest"]["Seconds"] <= 31_622_400


def test_the_worker_can_be_invoked_by_its_alias_alone(stack: Stack) -> None:
    """A durable function cannot be invoked without a version."""
    worker = stack.source["Resources"]["WorkerFunction"]["Properties"]
    api = stack.source["Resources"]["ApiFunction"]["Properties"]["Environment"]["Variables"]

    assert api["WORKER_FUNCTION"] == {
        "Fn::Sub": f"${{WorkerFunction}}:{worker['AutoPublishAlias']}"
    }
