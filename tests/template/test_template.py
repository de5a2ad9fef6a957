"""template.yaml: what `sam validate` sees, what cfn-lint sees once SAM has translated it, and
what neither sees (tests/helpers/rules), with proof that each rule sees it."""

import copy
import itertools
import json
import re
import tomllib
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from tests.conftest import Oven
from tests.helpers.baked import BakedProject, variants
from tests.helpers.cloudformation import Stack
from tests.helpers.rules import RULES, Edit, Rule, put
from tests.helpers.support.sam import REGION, SAM


def templates() -> list[Any]:
    """Answers for every template that differs in more than runtime and processor."""
    return [
        pytest.param(variant, id=f"{variant['worker']}-{variant['auth']}")
        for variant in variants()
        if variant["runtime"] == "python3.13" and variant["architectures"]["value"] == ["x86_64"]
    ]


def runtimes() -> list[Any]:
    """The same, with runtimes and processors taking turns."""
    turns = itertools.cycle([("python3.13", "x86_64"), ("python3.14", "arm64")])
    return [
        pytest.param(
            {**parameter.values[0], "runtime": runtime, "architectures": {"value": [processor]}},
            id=f"{parameter.id}-{runtime}-{processor}",
        )
        for parameter, (runtime, processor) in zip(templates(), turns, strict=False)
    ]


def complaints(stack: Stack) -> list[str]:
    """What cfn-lint has against SAM's translation of a template, warnings included."""
    text = json.dumps(stack.cloudformation)
    # SAM gives an alias the function's policies, but not the Metadata that say why one is alone.
    alias = [n for n, r in stack.cloudformation["Resources"].items() if "::Alias" in r["Type"]]
    return [
        str(match)
        for match in lint(text, config=ManualArgs(regions=[REGION]))
        if not (match.rule.id == "W3011" and match.path[1] in alias)
    ]


_stacks: dict[Path, Stack] = {}


def read(project: BakedProject) -> Stack:
    """A project's stack, read and translated once."""
    if project.path not in _stacks:
        _stacks[project.path] = Stack.of(project)
    return _stacks[project.path]


# ---------------------------------------------------------------- SAM and cfn-lint


@pytest.mark.proof
@pytest.mark.parametrize(
    ("worker", "auth"), [("queue", "iam"), ("durable", "jwt"), ("queue", "none")]
)
def test_sam_finds_it_valid(worker: str, auth: str, baked: Oven) -> None:
    """With each worker and each auth; what SAM makes of each pair is linted below."""
    SAM.find().validate(baked(worker=worker, auth=auth).path)


@pytest.mark.parametrize("answers", runtimes())
def test_its_translation_is_clean(answers: dict[str, Any], baked: Oven) -> None:
    assert complaints(Stack.of(baked(**answers))) == []


def test_its_translation_is_clean_with_every_option_on(baked: Oven) -> None:
    stack = Stack.of(baked()).having(
        JobEvents="disabled",
        NotificationEmail="jobs@example.com",
        AlarmEmail="alarms@example.com",
        CorsOrigin="https://app.example.com",
        EndpointUrl="http://localhost:4566",
    )
    assert complaints(stack) == []


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize("answers", templates())
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_template_keeps_the_rule(rule: Rule, answers: dict[str, Any], baked: Oven) -> None:
    assert list(rule.check(read(baked(**answers)))) == []


@pytest.mark.parametrize(
    ("rule", "breach"),
    [
        pytest.param(rule, breach, id=f"{rule.name}: {name}"[:150])
        for rule in RULES
        for name, breach in rule.breaches.items()
    ],
)
def test_the_rule_catches(rule: Rule, breach: Edit, baked: Oven) -> None:
    stack = read(baked(auth=rule.auth))
    broken = copy.deepcopy(stack.source)
    breach(broken)

    assert list(rule.check(replace(stack, source=broken))) != []


def test_every_rule_has_a_breach() -> None:
    assert [rule.name for rule in RULES if not rule.breaches] == []


@pytest.mark.parametrize(
    "edits",
    [
        [put("WorkerFunction/Timeout", 60), put("JobsQueue/VisibilityTimeout", 30)],
        [put("ApiFunction/Environment/Variables/URL", {"Fn::Sub": "https://${HttpApi}.example"})],
        [put("FunctionLogGroup/RetentionInDays", 31)],
    ],
    ids=["visibility below the timeout", "API and function need each other", "retention"],
)
def test_the_lint_of_the_translation_catches(edits: list[Edit], baked: Oven) -> None:
    """What `sam validate --lint` lets pass."""
    stack = read(baked())
    broken = copy.deepcopy(stack.source)
    for edit in edits:
        edit(broken)

    assert [c for c in complaints(replace(stack, source=broken)) if c.startswith("[E")] != []


# ---------------------------------------------------------------- events/


def events_of(project: BakedProject) -> dict[str, Any]:
    """What `sam local invoke` is given, by its name."""
    files = (project.path / "events").iterdir()
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


@pytest.mark.parametrize("answers", templates())
def test_every_route_and_function_has_its_event(answers: dict[str, Any], baked: Oven) -> None:
    """A route's says so itself; that of a function without routes has the function's name."""
    project = baked(**answers)
    routes, others = [], set()
    for name, resource in read(project).source["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            sources = resource["Properties"].get("Events", {}).values()
            asked = [s["Properties"] for s in sources if s["Type"] == "HttpApi"]
            routes += [f"{route['Method']} {route['Path']}" for route in asked]
            if not asked:
                words = re.findall("[A-Z][a-z]+", name.removesuffix("Function"))
                others.add("_".join(words).lower())
    events = events_of(project)
    routed = {name: event["routeKey"] for name, event in events.items() if "routeKey" in event}

    assert routes
    assert sorted(routed.values()) == sorted(routes)
    assert events.keys() - routed.keys() == others


@pytest.mark.parametrize("answers", templates())
def test_a_message_in_events_is_whole(answers: dict[str, Any], baked: Oven) -> None:
    """With its checksum, which depends on the job's id and so on the caller's name."""
    events = events_of(baked(**answers))
    records = [record for event in events.values() for record in event.get("Records", [])]

    assert records
    for record in records:
        assert record["md5OfBody"] == md5(record["body"].encode()).hexdigest()


# ---------------------------------------------------------------- what no rule is for


def test_every_star_has_its_reason(baked: Oven) -> None:
    lines = baked().read("template.yaml").splitlines()
    stars = [line for line in lines if re.search(r"""Resource: *["']\*""", line)]

    assert stars
    assert [line for line in stars if not re.search(r'"\*" # \w', line)] == []


def test_the_longest_answers_fit_into_its_description(baked: Oven) -> None:
    """A template's description takes 1024 bytes."""
    project = baked(project="longest", project_name="🚀" * 50, description="🖨" * 200)

    assert len(Stack.of(project).source["Description"].encode()) <= 1024


@pytest.mark.parametrize("answers", templates())
def test_samconfig_fits_the_template(answers: dict[str, Any], baked: Oven) -> None:
    project = baked(**answers)
    config = tomllib.loads(project.read("samconfig.toml"))
    parameters = read(project).source["Parameters"]

    names = {config[name]["global"]["parameters"]["stack_name"] for name in ("default", "prod")}
    assert names == {project.path.name, f"{project.path.name}-prod"}
    for name in ("default", "prod"):
        assert config[name]["build"]["parameters"] == {"cached": True, "parallel": True}
        deploy = config[name]["deploy"]["parameters"]
        assert deploy["capabilities"] == "CAPABILITY_IAM"  # nothing has a name of its own
        for override in deploy.get("parameter_overrides", "").split():
            parameter, value = override.split("=")
            assert value in map(str, parameters[parameter]["AllowedValues"]), override


@pytest.mark.parametrize("answers", templates())
def test_a_stack_of_the_other_worker_is_refused(answers: dict[str, Any], baked: Oven) -> None:
    """SAM CLI passes the previous value of a parameter that is not set, and CloudFormation checks
    it against the new template's AllowedValues."""
    project = baked(**answers)
    parameter = read(project).source["Parameters"]["Worker"]

    assert (parameter["Default"], parameter["AllowedValues"]) == (
        answers["worker"],
        [answers["worker"]],
    )
    assert "Worker=" not in project.read("samconfig.toml")
