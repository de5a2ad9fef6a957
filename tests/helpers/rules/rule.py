"""What a rule is, and how an edit of a template is written."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.helpers.cloudformation import Stack

QUEUE, TOPIC, TABLE = "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::DynamoDB::Table"
FUNCTION, MAPPING = "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping"
ALARM, API, ROLE = "AWS::CloudWatch::Alarm", "AWS::ApiGatewayV2::Api", "AWS::IAM::Role"
TOPIC_POLICY = "AWS::SNS::TopicPolicy"
DAY = 86_400


Edit = Callable[[dict[str, Any]], None]
Check = Callable[[Stack], Iterator[str]]


@dataclass(frozen=True)
class Rule:
    """Something that holds for every template, and edits of a template that break it."""

    check: Check
    breaches: dict[str, Edit]
    auth: str

    @property
    def name(self) -> str:
        """The rule in words."""
        return self.check.__name__


RULES: list[Rule] = []


def rule(*breaches: Edit, auth: str = "iam") -> Callable[[Check], Check]:
    """Register a check, which yields what is wrong, and the edits that it must catch."""

    def register(check: Check) -> Check:
        RULES.append(Rule(check, {edit.__name__: edit for edit in breaches}, auth))
        return check

    return register


def put(path: str, value: Any) -> Edit:
    """An edit that sets what `path` leads to.

    A path starts at a section of the template, or at a resource: then it goes on in its properties.
    """

    def edit(source: dict[str, Any]) -> None:
        place, last = _find(source, path)
        place[last] = value

    return _named(f"{path} = {json.dumps(value)}", edit)


def drop(path: str) -> Edit:
    """An edit that removes what `path` leads to."""

    def edit(source: dict[str, Any]) -> None:
        place, last = _find(source, path)
        del place[last]

    return _named(f"no {path}", edit)


def add(name: str, kind: str, **properties: Any) -> Edit:
    """An edit that adds a resource."""

    def edit(source: dict[str, Any]) -> None:
        source["Resources"][name] = {"Type": kind, "Properties": properties}

    return _named(f"{kind} {json.dumps(properties)}", edit)


def swap(path: str, old: str, new: str) -> Edit:
    """An edit of the text that `path` leads to."""

    def edit(source: dict[str, Any]) -> None:
        place, last = _find(source, path)
        assert old in place[last]
        place[last] = place[last].replace(old, new)

    return _named(f"{path}: {old} -> {new}", edit)


def _named(name: str, edit: Edit) -> Edit:
    edit.__name__ = name[:100]
    return edit


def _find(source: dict[str, Any], path: str) -> tuple[Any, Any]:
    """The container of what `path` leads to, and the key in it."""
    first, *way = path.split("/")
    place: Any = source[first] if first in source else source["Resources"][first]["Properties"]
    for step in way[:-1]:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    return place, int(way[-1]) if isinstance(place, list) else way[-1]
