"""The table of jobs: reads, and writes that DynamoDB makes only under a condition."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from jobs.job import SCHEMA, Job
from jobs.settings import client, settings


class ConditionFailed(Exception):
    """DynamoDB refused a conditional write. `job` is the stored job, or None."""

    def __init__(self, job: Job | None) -> None:
        super().__init__(f"the job is {job.status}" if job else "there is no such job")
        self.job = job


@dataclass(frozen=True)
class Condition:
    """What must hold of the stored item. `a & b` needs both, `a | b` at least one."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(f"{self.text} AND {other.text}", {**self.values, **other.values})

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(f"({self.text} OR {other.text})", {**self.values, **other.values})


def absent(name: str) -> Condition:
    """The item has no such attribute."""
    return Condition(f"attribute_not_exists(#{name})")


def equal(name: str, value: object) -> Condition:
    """The attribute has this value."""
    return Condition(f"#{name} = :equal_{name}", {f":equal_{name}": value})


def below(name: str, value: int) -> Condition:
    """The attribute is a smaller number."""
    return Condition(f"#{name} < :below_{name}", {f":below_{name}": value})


def one_of(name: str, values: Iterable[str]) -> Condition:
    """The attribute has one of these values."""
    named = {f":{name}_{value}": value for value in values}
    return Condition(f"#{name} IN ({', '.join(named)})", named)


def has_length(name: str, length: int) -> Condition:
    """The list has this many entries."""
    return Condition(f"size(#{name}) = :length_{name}", {f":length_{name}": length})


def is_shorter(name: str, length: int) -> Condition:
    """The list has fewer entries."""
    return Condition(f"size(#{name}) < :shorter_{name}", {f":shorter_{name}": length})


@dataclass(frozen=True)
class Change:
    """What an update does to an item, by attribute."""

    set: Mapping[str, Any] = field(default_factory=dict)
    set_first: Mapping[str, Any] = field(default_factory=dict)
    """Set only if the item has no such attribute."""
    append: Mapping[str, Any] = field(default_factory=dict)
    """An entry for the end of a list."""
    count: tuple[str, ...] = ()
    """Numbers to add one to."""
    remove: tuple[str, ...] = ()

    def expression(self) -> tuple[str, dict[str, Any]]:
        """Return the update expression, and its values."""
        sets = [
            *(f"#{name} = :{name}" for name in self.set),
            *(f"#{name} = if_not_exists(#{name}, :{name})" for name in self.set_first),
            *(f"#{name} = list_append(#{name}, :{name})" for name in self.append),
            *(f"#{name} = if_not_exists(#{name}, :zero) + :one" for name in self.count),
        ]
        removals = ", ".join(f"#{name}" for name in self.remove)
        values = {**self.set, **self.set_first} | {n: [entry] for n, entry in self.append.items()}
        if self.count:
            values |= {"zero": 0, "one": 1}
        text = f"SET {', '.join(sets)}" + (f" REMOVE {removals}" if removals else "")
        return text, {f":{name}": value for name, value in values.items()}


class JobsTable:
    """Reads and writes jobs. Every method is one request to DynamoDB.

    The AWS client repeats a request whose answer is lost, and DynamoDB then refuses the repetition
    for what the first one did. So each write leaves a token in the item, and recognises it.
    """

    def __init__(self) -> None:
        self._table = settings.jobs_table
        self._dynamodb = client("dynamodb")

    def _read(self, job_id: str) -> Job | None:
        """Return the stored job, expired or not."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=_attributes({"job_id": job_id}), ConsistentRead=True
        )
        return Job.from_item(_plain(answer["Item"])) if "Item" in answer else None

    def _put(self, item: Mapping[str, Any], condition: Condition) -> Job:
        """Store a whole item.

        Raises:
            ConditionFailed: the condition does not hold.
        """
        token = uuid4().hex
        put = {"Item": _attributes({**item, "write": token})}
        self._write(self._dynamodb.put_item, put, condition, {}, token)
        return Job.from_item(item)

    def _update(self, job_id: str, change: Change, condition: Condition) -> Job:
        """Change an item that this version of the code knows, and return the job.

        Raises:
            ConditionFailed: the condition does not hold.
        """
        token = uuid4().hex
        expression, values = change.expression()
        item = self._write(
            self._dynamodb.update_item,
            {
                "Key": _attributes({"job_id": job_id}),
                "UpdateExpression": expression.replace("SET ", "SET #write = :write, ", 1),
                "ReturnValues": "ALL_NEW",
            },
            Condition("#schema <= :schema", {":schema": SCHEMA}) & condition,
            {**values, ":write": token},
            token,
        )
        return Job.from_item(item)

    def _delete(self, job_id: str, condition: Condition) -> None:
        """Remove an item.

        Raises:
            ConditionFailed: the condition does not hold.
        """
        delete = {"Key": _attributes({"job_id": job_id})}
        self._write(self._dynamodb.delete_item, delete, condition, {}, "")

    def _write(
        self,
        operation: Callable[..., Any],
        arguments: Mapping[str, Any],
        condition: Condition,
        values: Mapping[str, Any],
        token: str,
    ) -> dict[str, Any]:
        """Return the written item, if the answer has it."""
        # Every attribute is written as #name, because some are reserved words.
        names = re.findall(r"#(\w+)", condition.text + arguments.get("UpdateExpression", ""))
        try:
            answer = operation(
                TableName=self._table,
                ConditionExpression=condition.text,
                ExpressionAttributeNames={f"#{name}": name for name in names},
                ExpressionAttributeValues=_attributes({**condition.values, **values}),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **arguments,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item = _plain(error.response.get("Item", {}))
            if token and item.get("write") == token:
                return item
            raise ConditionFailed(Job.from_item(item) if item else None) from None
        return _plain(answer.get("Attributes", {}))


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _attribute(value) for name, value in values.items()}


def _attribute(value: Any) -> dict[str, Any]:
    """Return a value as DynamoDB takes it. boto3's own serializer would load all of boto3."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": str(value)}
        case int():
            return {"N": str(value)}
        case list():
            return {"L": [_attribute(entry) for entry in value]}
        case dict():
            return {"M": _attributes(value)}
    raise TypeError(f"an item of the jobs table cannot hold {type(value).__name__}")


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(attribute) for name, attribute in item.items()}


def _value(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return int(value)
        case "L":
            return [_value(entry) for entry in value]
        case "M":
            return _plain(value)
    return value
