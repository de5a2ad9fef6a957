"""The table of jobs: one item for each job, and conditional writes only.

Each change of status names the transition that allows it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from jobs.expressions import Change, Condition, one_of
from jobs.job import SCHEMA, Job
from jobs.lifecycle import Status, Transition
from jobs.settings import client, settings
from jobs.times import now, rfc3339


class ConditionFailed(Exception):
    """DynamoDB refused a conditional write. `job` is the stored job, or None."""

    def __init__(self, job: Job | None) -> None:
        super().__init__(f"the job is {job.status}" if job else "there is no such job")
        self.job = job


class JobsTable:
    """Reads and writes jobs. Every method is one request to DynamoDB.

    If an answer is lost, the AWS client repeats the request, and DynamoDB refuses the repetition
    for what the first request did. So each write leaves a token in the item and recognizes it.
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

    def _change_status(
        self, how: Transition, job_id: str, change: Change, condition: Condition
    ) -> Job:
        """Change the status as `how` allows, with its entry in the history, in one write.

        Raises:
            ConditionFailed: the job has another status, or the condition does not hold.
        """
        moment = now()
        changed = {
            "status": how.target,
            "updated_at": rfc3339(moment),
            "expires_at": expiry(moment),
            **change.set,
        }
        if how.target.terminal:
            changed["finished_at"] = rfc3339(moment)
        started = {"started_at": rfc3339(moment)} if how.target is Status.RUNNING else {}
        history = {"history": history_entry(how.target, moment)}
        return self._update(
            job_id,
            replace(change, set=changed, set_first=started, append=history),
            one_of("status", how.sources) & condition,
        )

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


def expiry(moment: datetime) -> int:
    """Return when a job expires whose status changes now, in epoch seconds."""
    return int(moment.timestamp()) + settings.retention_seconds


def history_entry(status: Status, moment: datetime) -> dict[str, str]:
    """Return the entry of the history for a new status."""
    return {"status": status.value, "at": rfc3339(moment)}


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
