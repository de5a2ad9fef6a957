"""Who may do what in a template that SAM has translated, every ARN written out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.helpers.cloudformation import Stack, statements
from tests.helpers.permissions.evaluator import ACCOUNT
from tests.helpers.rules.rule import API, FUNCTION, QUEUE, ROLE, TABLE, TOPIC, TOPIC_POLICY
from tests.helpers.support.sam import REGION

LOG_GROUP, MANAGED = "AWS::Logs::LogGroup", "AWS::IAM::ManagedPolicy"

_ARNS = {
    "AWS::CloudWatch::Alarm": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:",
    FUNCTION: f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:",
    LOG_GROUP: f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:",
    MANAGED: f"arn:aws:iam::{ACCOUNT}:policy/",
    QUEUE: f"arn:aws:sqs:{REGION}:{ACCOUNT}:",
    ROLE: f"arn:aws:iam::{ACCOUNT}:role/",
    TABLE: f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/",
    TOPIC: f"arn:aws:sns:{REGION}:{ACCOUNT}:",
}
_REF_IS_THE_ARN = (MANAGED, TOPIC)
_REF_IS_THE_NAME = (API, FUNCTION, LOG_GROUP, QUEUE, ROLE, TABLE)  # a queue's is its URL, in fact
_PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}


@dataclass(frozen=True)
class Grant:
    """One action on one resource that a role is allowed; `where` names the policy."""

    function: str
    where: str
    action: str
    resource: str
    statement: dict[str, Any]


class Policies:
    """Roles, resource policies and permissions of a stack. Resources go by their logical ids."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._kinds = {name: kind for name, kind, _ in stack.everything()}
        roles = {name: self.concrete(f["Role"]) for name, f in stack.resources(FUNCTION).items()}
        self.roles: dict[str, str] = roles

    def arn(self, name: str) -> str:
        """A resource's ARN."""
        return _ARNS[self._kinds[name]] + name

    def concrete(self, value: Any) -> Any:
        """`value` with its references written out. Raises ValueError for one unknown here."""
        if isinstance(value, list):
            return [self.concrete(item) for item in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"Ref": str(name)}:
                return self._ref(name)
            case {"Fn::GetAtt": [str(name), "Arn"]}:
                # A log group's ends so: it is for its streams.
                return self.arn(name) + (":*" if self._kinds[name] == LOG_GROUP else "")
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case {"Fn::Sub": [str(text), dict(values)]}:
                return self._substituted(text, self.concrete(values))
        if unknown := [key for key in value if key.startswith("Fn::")]:
            raise ValueError(f"{unknown[0]} is not known here: {value}")
        return {key: self.concrete(item) for key, item in value.items()}

    def identity(self, function: str) -> dict[str, dict[str, Any]]:
        """The policies of a function's role, by name: its own, managed ones, attached ones."""
        role = self.roles[function].rpartition("/")[2]
        properties = self.concrete(self.stack.resources(ROLE)[role])
        found = {f"{role}.{p['PolicyName']}": p["PolicyDocument"] for p in _own(properties)}
        for name, managed in self.stack.resources(MANAGED).items():
            if self.arn(name) in properties.get("ManagedPolicyArns", []):
                found[name] = self.concrete(managed["PolicyDocument"])
        for name, attached in self.stack.resources("AWS::IAM::Policy").items():
            if role in self.concrete(attached["Roles"]):
                found[name] = self.concrete(attached["PolicyDocument"])
        elsewhere = set(properties.get("ManagedPolicyArns", [])) - {
            self.arn(name) for name in self.stack.resources(MANAGED)
        }
        if elsewhere:  # AWS's own change without notice, and grant more than is needed
            raise ValueError(f"{role} has policies that are not in the template: {elsewhere}")
        return found

    def grants(self, function: str) -> Iterator[Grant]:
        """What a function's role is allowed, pair by pair."""
        for where, document in self.identity(function).items():
            for s in statements(document):
                if s["Effect"] == "Allow":
                    for action, resource in ((a, r) for a in s["Action"] for r in s["Resource"]):
                        single = {**s, "Action": action, "Resource": resource}
                        yield Grant(function, where, action, resource, single)

    def of_resource(self, arn: str) -> list[dict[str, Any]]:
        """The statements of the policy that a queue, a topic or a function has itself."""
        found = []
        for kind, attached in (("AWS::SQS::QueuePolicy", "Queues"), (TOPIC_POLICY, "Topics")):
            for policy in self.stack.resources(kind).values():
                to = self.concrete(policy[attached])
                if {arn, arn.rpartition(":")[2]} & set(to):
                    found += self.concrete(policy["PolicyDocument"]["Statement"])
        for permission in self.stack.resources("AWS::Lambda::Permission").values():
            p = self.concrete(permission)
            if arn == self.arn(p["FunctionName"]):
                found.append(
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": p["Principal"]},
                        "Action": p["Action"],
                        "Resource": arn,
                        "Condition": {"ArnLike": {"aws:SourceArn": p["SourceArn"]}},
                    }
                )
        return found

    def _ref(self, name: str) -> str:
        if name in _PSEUDO:
            return _PSEUDO[name]
        kind = self._kinds.get(name, "")
        if kind in _REF_IS_THE_ARN:
            return self.arn(name)
        if kind in _REF_IS_THE_NAME:
            return name
        raise ValueError(f"a reference to {name} is not known here")

    def _substituted(self, text: str, values: dict[str, str]) -> str:
        def one(found: re.Match[str]) -> str:
            name = found[1]
            if name in values:
                return values[name]
            if "." in name:
                return str(self.concrete({"Fn::GetAtt": name.split(".", 1)}))
            return self._ref(name)

        return re.sub(r"\$\{([^}]+)\}", one, text)


def _own(role: dict[str, Any]) -> list[dict[str, Any]]:
    policies: list[dict[str, Any]] = role.get("Policies", [])
    return policies
