"""Checkov, a security scanner for CloudFormation, on every template that SAM makes.

What it finds is either mended or accepted for a reason: for the whole stack in .checkov.yaml, for
one resource in that resource's Metadata.
"""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, BakedProject
from tests.helpers.cloudformation import Stack
from tests.helpers.rules import put
from tests.helpers.rules.rule import drop
from tests.helpers.support import tools
from tests.helpers.support.machine import run

pytestmark = pytest.mark.proof

Finding = tuple[str, str]
"""A check's id, and the logical id of the resource that it found wanting."""

VARIANTS = [f"{worker}-{auth}" for worker in QUESTIONS["worker"] for auth in QUESTIONS["auth"]]


def scan(folder: Path, templates: dict[str, dict[str, Any]]) -> dict[str, set[Finding]]:
    """Everything that Checkov has against templates, whether accepted or not."""
    for name, template in templates.items():
        text = json.dumps(template, indent=1)  # Checkov names lines
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    files = [f"{name}.json" for name in templates]
    options = ("--framework", "cloudformation", "--skip-download", "--soft-fail", "-o", "json")
    done = run(tools.scripts("checkov") / "checkov", *options, "-f", *files, cwd=folder)
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    found: dict[str, set[Finding]] = {name: set() for name in templates}
    for failed in report["results"]["failed_checks"]:
        resource = failed["resource"].rpartition(".")[2]
        found[Path(failed["file_path"]).stem].add((failed["check_id"], resource))
    return found


def bare(template: dict[str, Any]) -> dict[str, Any]:
    """A template in which nothing is accepted."""
    resources = {
        name: {key: value for key, value in resource.items() if key != "Metadata"}
        for name, resource in template["Resources"].items()
    }
    return {**template, "Resources": resources}


def accepted(project: BakedProject, template: dict[str, Any], found: set[Finding]) -> set[Finding]:
    """The findings that the project accepts, those of .checkov.yaml as far as they were made."""
    everywhere = yaml.safe_load(project.read(".checkov.yaml"))["skip-check"]
    unfounded = set(everywhere) - {check for check, _ in found}
    return {
        *(finding for finding in found if finding[0] in everywhere),
        *((check, "nowhere") for check in unfounded),
        *(
            (skip["id"], name)
            for name, resource in template["Resources"].items()
            for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
        ),
    }


@pytest.fixture(scope="module")
def stacks(baked: Oven) -> dict[str, Stack]:
    """Each template."""
    answers = {
        name: dict(zip(("worker", "auth"), name.split("-"), strict=True)) for name in VARIANTS
    }
    return {name: Stack.of(baked(**answers[name])) for name in VARIANTS}


@pytest.fixture(scope="module")
def findings(
    stacks: dict[str, Stack], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[Finding]]:
    """What Checkov finds in each template, and in one with faults of our own."""
    templates = {name: bare(stack.cloudformation) for name, stack in stacks.items()}
    stack = stacks["queue-none"]
    broken = copy.deepcopy(stack.source)
    drop("JobEventsTopic/KmsMasterKeyId")(broken)
    drop("JobsTable/PointInTimeRecoverySpecification")(broken)
    put("ApiRole/AssumeRolePolicyDocument/Statement/0/Principal", {"AWS": "*"})(broken)
    templates["faults"] = bare(replace(stack, source=broken).cloudformation)
    return scan(tmp_path_factory.mktemp("checkov"), templates)


@pytest.mark.parametrize("name", VARIANTS)
def test_what_it_finds_is_accepted_and_nothing_else_is(
    name: str, stacks: dict[str, Stack], findings: dict[str, set[Finding]]
) -> None:
    stack = stacks[name]
    assert findings[name] == accepted(stack.project, stack.cloudformation, findings[name])


def test_it_finds_faults(findings: dict[str, set[Finding]]) -> None:
    assert findings["faults"] - findings["queue-none"] == {
        ("CKV_AWS_26", "JobEventsTopic"),
        ("CKV_AWS_28", "JobsTable"),
        ("CKV_AWS_60", "ApiRole"),
    }


def test_each_acceptance_has_its_reason(baked: Oven) -> None:
    lines = baked().read(".checkov.yaml").splitlines()
    checks = [line for line in lines if "CKV" in line]
    assert [line for line in checks if not re.fullmatch(r"  - CKV_AWS_\d+ # \w.*", line)] == []


def test_a_user_s_own_scan_is_clean(stacks: dict[str, Stack]) -> None:
    """Of template.yaml as it is, before SAM translates it; `run` fails when it finds anything."""
    queue, durable = (stacks[name].project.path for name in ("queue-iam", "durable-iam"))
    options = ("--framework", "cloudformation", "--skip-download", "--quiet")
    files = ("template.yaml", durable / "template.yaml")
    run(tools.scripts("checkov") / "checkov", *options, "-f", *files, cwd=queue)
