"""A generated template as CloudFormation gets it: translated by SAM, with parameters given."""

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from unittest import mock

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from tests.helpers.baked import BakedProject
from tests.helpers.support.sam import REGION

REQUIRED = {"JwtIssuer": "https://issuer.example", "JwtAudience": "jobs"}
"""Values for parameters without a default."""

NO_VALUE = {"Ref": "AWS::NoValue"}


class _NoManagedPolicies:
    def load(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class Stack:
    """A project's template with the values of its parameters; those not given have their default.

    References to resources stay as they are: `{"Ref": "JobsTable"}`.
    """

    project: BakedProject
    source: dict[str, Any]
    """template.yaml, its intrinsic functions in their long form."""
    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, project: BakedProject) -> "Stack":
        """Read a project's template.yaml, what its YAML anchors share copied out."""
        return cls(project, json.loads(json.dumps(yaml_parse(project.read("template.yaml")))))

    def having(self, **parameters: object) -> "Stack":
        """The same stack with other values for some of its parameters."""
        given = {name: str(value) for name, value in parameters.items()}
        other = replace(self, given={**self.given, **given})
        if not any(self._consumed(name) for name in given):
            other.__dict__["cloudformation"] = self.cloudformation  # and SAM need not run again
        return other

    def _consumed(self, parameter: str) -> bool:
        """Whether SAM put a parameter's value in, instead of leaving the reference as it was."""
        reference = json.dumps({"Ref": parameter})
        before, after = (json.dumps(t).count(reference) for t in (self.source, self.cloudformation))
        return after < before

    @cached_property
    def parameters(self) -> dict[str, str]:
        """Every parameter's value."""
        declared = self.source.get("Parameters", {})
        return {
            name: str(self.given.get(name, about.get("Default", REQUIRED.get(name, ""))))
            for name, about in declared.items()
        }

    @cached_property
    def cloudformation(self) -> dict[str, Any]:
        """What SAM makes of the template. Raises what samtranslator raises."""
        source = copy.deepcopy(self.source)
        source["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # as `sam package` writes it
        with mock.patch.dict(os.environ, AWS_DEFAULT_REGION=REGION):
            made: dict[str, Any] = transform(source, dict(self.parameters), _NoManagedPolicies())
        return made

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of all resources of one type, resolved, by logical id."""
        return {
            name: self.resolve(resource.get("Properties", {}))
            for name, resource in self.cloudformation["Resources"].items()
            if resource["Type"] == kind and self._exists(resource)
        }

    def everything(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every resource: logical id, type, resolved properties."""
        for kind in sorted({r["Type"] for r in self.cloudformation["Resources"].values()}):
            for name, properties in self.resources(kind).items():
                yield name, kind, properties

    def allowed(self) -> bool:
        """Whether the template's Rules let CloudFormation begin with these parameters."""
        for rule in self.source.get("Rules", {}).values():
            if self._true(rule.get("RuleCondition", {"Fn::Equals": ["", ""]})):
                for assertion in rule["Assertions"]:
                    if not self._true(assertion["Assert"]):
                        return False
        return True

    def resolve(self, value: Any) -> Any:
        """`value` with parameters, mappings and conditions put in. Raises KeyError for a gap."""
        if isinstance(value, list):
            return [done for item in value if (done := self.resolve(item)) != NO_VALUE]
        if not isinstance(value, dict):
            return value
        match value:
            case {"Ref": str(name)} if name in self.parameters:
                return self.parameters[name]
            case {"Fn::If": [str(condition), yes, no]}:
                return self.resolve(yes if self._true({"Condition": condition}) else no)
            case {"Fn::Join": [str(between), parts]} if isinstance(self.resolve(parts), str):
                return between.join(self.resolve(parts).split(","))  # a list as it is given
            case {"Fn::FindInMap": [name, first, second]}:
                rows = self.cloudformation["Mappings"][name][self.resolve(first)]
                return rows[self.resolve(second)]
        resolved = {name: self.resolve(item) for name, item in value.items()}
        return {name: item for name, item in resolved.items() if item != NO_VALUE}

    def _exists(self, resource: dict[str, Any]) -> bool:
        return "Condition" not in resource or self._true({"Condition": resource["Condition"]})

    def _true(self, condition: dict[str, Any]) -> bool:
        ((function, argument),) = condition.items()
        match function:
            case "Condition":
                return self._true(self.source["Conditions"][argument])
            case "Fn::Equals":
                left, right = (self.resolve(side) for side in argument)
                return str(left) == str(right)
            case "Fn::Not":
                return not self._true(argument[0])
            case "Fn::And":
                return all(self._true(part) for part in argument)
            case "Fn::Or":
                return any(self._true(part) for part in argument)
            case "Fn::Contains":
                return self.resolve(argument[1]) in argument[0]
        raise ValueError(f"{function} is not a condition that this file knows")


def referenced(value: Any) -> set[str]:
    """The logical ids that a resolved value refers to, by Ref, GetAtt or Sub."""
    if isinstance(value, list):
        return {name for item in value for name in referenced(item)}
    if not isinstance(value, dict):
        return set()
    match value:
        case {"Ref": str(name)} if not name.startswith("AWS::"):
            return {name}
        case {"Fn::GetAtt": [str(name), *_]}:
            return {name}
        case {"Fn::Sub": str(text)} | {"Fn::Sub": [str(text), *_]}:
            return set(re.findall(r"\$\{(\w+)(?:\.\w+)?\}", text))
    return {name for item in value.values() for name in referenced(item)}


def statements(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A policy document's statements, their actions and resources as lists."""
    for statement in document["Statement"]:
        yield {
            **statement,
            **{
                part: statement[part] if isinstance(statement[part], list) else [statement[part]]
                for part in ("Action", "Resource")
                if part in statement
            },
        }
