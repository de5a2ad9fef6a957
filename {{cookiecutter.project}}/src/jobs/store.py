"""The store of jobs: one DynamoDB item a job, and conditional writes only.

Each change of status names the transition that allows it, and a write of an attempt carries the
attempt's number: once another attempt has begun, DynamoDB refuses what the old one still sends.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from jobs import job as life
from jobs.canonical import canonical, fingerprint
from jobs.job import (
    SCHEMA,
    Job,
    PermanentError,
    Status,
    Transition,
    milliseconds,
    now,
    rfc3339,
)
from jobs.reference import Reference
from jobs.settings import client, settings

MAX_RESULT_BYTES = 100_000
MAX_MESSAGE = 2_000

_NO_LEASE = "(attribute_not_exists(#lease_until) OR #lease_until < :ms)"
_UNTOUCHED = "#status = :queued AND #attempts = :none"
_UNTOUCHED_VALUES = {":queued": Status.QUEUED.value, ":none": 0}

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


class Refused(Exception):
    """A conditional write was refused. `job` is what is stored instead, or None."""

    def __init__(self, job: Job | None) -> None:
        super().__init__(f"the job is {job.status}" if job else "there is no such job")
        self.job = job


class JobStore:
    """The jobs of one table. Every method is one request to DynamoDB.

    Each raises `NewerSchema` for a job that newer code has written.
    """

    def __init__(self) -> None:
        self._table = settings.jobs_table
        self._dynamodb = client("dynamodb")

    def get(self, job_id: str) -> Job | None:
        """Return the job as it is now, or None when it is unknown or has expired."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=_attributes({"job_id": job_id}), ConsistentRead=True
        )
        if "Item" not in answer:
            return None
        job = Job.from_item(_plain(answer["Item"]))
        return job if job.expires_at > now().timestamp() else None

    def create(self, job_id: str, owner: str, payload: dict[str, Any]) -> Job:
        """Store a new job, queued.

        Raises:
            Refused: the id is taken, by the job that it holds.
        """
        moment, text, write = now(), canonical(payload), uuid4().hex
        item = {
            "job_id": job_id,
            "owner": owner,
            "payload": text,
            "fingerprint": fingerprint(text),
            "status": Status.QUEUED.value,
            "created_at": rfc3339(moment),
            "updated_at": rfc3339(moment),
            "expires_at": _expiry(moment),
            "attempts": 0,
            "history": [_entry(Status.QUEUED, moment)],
            "schema": SCHEMA,
            "write": write,
        }
        # DynamoDB may take days to remove an expired item.
        self._write(
            self._dynamodb.put_item,
            {"Item": _attributes(item)},
            "attribute_not_exists(#job_id) OR #expires_at <= :now",
            {":now": int(moment.timestamp())},
            write,
        )
        return Job.from_item(item)

    def adopt(self, job_id: str) -> Job:
        """Note that one more request relies on a queued job, so that it cannot be withdrawn.

        Raises:
            Refused: an attempt has begun, or the job is gone.
        """
        return self._update(job_id, {"adopted": True}, [], _UNTOUCHED, _UNTOUCHED_VALUES)

    def withdraw(self, job: Job) -> None:
        """Remove a job that could not be handed over and that nobody was told of.

        Raises:
            Refused: an attempt has begun, another request adopted the job or made it anew, or it
                is gone.
        """
        self._write(
            self._dynamodb.delete_item,
            {"Key": _attributes({"job_id": job.job_id})},
            f"{_UNTOUCHED} AND attribute_not_exists(#adopted) AND #created_at = :made",
            {**_UNTOUCHED_VALUES, ":made": job.created_at},
        )

    def claim(self, reference: Reference, seconds: float, most: int) -> Job:
        """Start an attempt that holds the job for `seconds`, one of `most` attempts.

        Raises:
            Refused: the job is unknown, terminal, cancelled or leased, has had its attempts, or is
                another message's.
        """
        moment, retry_of = now(), reference.retry_of
        which = "attribute_not_exists(#retry_of)" if retry_of is None else "#retry_of = :retry_of"
        return self._move(
            life.CLAIM,
            reference.job_id,
            moment,
            set_={
                "lease_until": milliseconds(moment + timedelta(seconds=seconds)),
                "ticket": reference.ticket,
            },
            also=", #attempts = #attempts + :one"
            ", #recent_attempts = if_not_exists(#recent_attempts, :none) + :one"
            ", #started_at = if_not_exists(#started_at, :updated_at)",
            where=f" AND attribute_not_exists(#cancel_requested) AND {_NO_LEASE} AND {which}"
            " AND (attribute_not_exists(#ticket) OR #ticket = :ticket)"
            " AND (attribute_not_exists(#recent_attempts) OR #recent_attempts < :most)",
            values={
                ":ms": milliseconds(moment),
                ":one": 1,
                ":none": 0,
                ":most": most,
                **({} if retry_of is None else {":retry_of": retry_of}),
            },
        )

    def report(self, job: Job, progress: Mapping[str, Any]) -> Job:
        """Record the progress of an attempt; the answer also tells whether to stop.

        Raises:
            Refused: the attempt no longer holds the job.
        """
        return self._update(
            job.job_id,
            {"progress": dict(progress), "updated_at": rfc3339(now())},
            [],
            "#status = :running AND #attempts = :attempt",
            {":running": Status.RUNNING.value, ":attempt": job.attempts},
        )

    def complete(self, job: Job, result: Mapping[str, Any]) -> Job:
        """Record the result of an attempt.

        Raises:
            PermanentError: the result is not a JSON object, or larger than a job can hold.
            Refused: the attempt no longer holds the job.
        """
        return self._end_attempt(
            life.COMPLETE, job, {"result": _result(result)}, remove=["error", "cancel_requested"]
        )

    def fail(self, job: Job, error: BaseException) -> Job:
        """Record that no other attempt can help.

        Raises:
            Refused: the attempt no longer holds the job.
        """
        return self._end_attempt(life.FAIL, job, {"error": describe(error)})

    def release(self, job: Job, error: BaseException) -> Job:
        """Record that the attempt failed, and leave the job to the next one.

        Raises:
            Refused: the attempt no longer holds the job.
        """
        return self._end_attempt(life.RELEASE, job, {"error": describe(error)})

    def stop(self, job: Job) -> Job:
        """Make the cancellation of a job under way take effect.

        Raises:
            Refused: another attempt has begun, or the job has finished.
        """
        return self._end_attempt(life.STOP, job, {}, remove=["error"])

    def cancel(self, job: Job) -> Job:
        """Cancel a job that no attempt holds.

        Raises:
            Refused: it has changed since `job` was read, is under way, has finished, or is gone.
        """
        where, values = as_read(job)
        return self._move(
            life.CANCEL, job.job_id, now(), remove=["error"], where=where, values=values
        )

    def ask_to_stop(self, job: Job) -> Job:
        """Ask the attempt that holds the job to stop.

        Raises:
            Refused: the job has changed since `job` was read, or is not under way.
        """
        condition, values = _among(life.STOP.sources)
        where, read = as_read(job)
        changes = {"cancel_requested": True, "updated_at": rfc3339(now())}
        return self._update(job.job_id, changes, [], condition + where, values | read)

    def give_up(self, job: Job, error: Mapping[str, str]) -> Job:
        """Settle a job that the engine delivers no more: failed, or cancelled if so asked.

        Raises:
            Refused: an attempt holds it, it has changed since `job` was read, or it has finished.
        """
        moment = now()
        where, values = as_read(job)
        return self._move(
            life.DROP if job.cancel_requested else life.GIVE_UP,
            job.job_id,
            moment,
            set_={} if job.cancel_requested else {"error": dict(error)},
            remove=["error"] if job.cancel_requested else [],
            where=f" AND {_NO_LEASE}{where}",
            values={**values, ":ms": milliseconds(moment)},
        )

    def retry(self, job_id: str, retry_of: int) -> Job:
        """Put a failed or cancelled job back in the queue, if its history still has that length.

        Raises:
            Refused: it has another status, or has changed since the retry was asked for.
        """
        return self._move(
            life.RETRY,
            job_id,
            now(),
            set_={"retry_of": retry_of},
            remove=[
                *("error", "result", "progress", "finished_at", "cancel_requested"),
                *("recent_attempts", "ticket"),
            ],
            where=" AND size(#history) = :seen",
            values={":seen": retry_of},
        )

    def _end_attempt(
        self,
        how: Transition,
        job: Job,
        set_: Mapping[str, Any],
        remove: Iterable[str] = (),
        where: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> Job:
        progress = {"progress": job.progress} if job.progress else {}
        return self._move(
            how,
            job.job_id,
            now(),
            set_={**progress, **set_},
            remove=remove,
            where=" AND #attempts = :attempt" + where,
            values={":attempt": job.attempts, **(values or {})},
        )

    def _move(
        self,
        how: Transition,
        job_id: str,
        moment: datetime,
        *,
        set_: Mapping[str, Any] | None = None,
        remove: Iterable[str] = (),
        also: str = "",
        where: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> Job:
        """Change the status as `how` allows, with its entry in the history, in one write."""
        changes = {
            "status": how.target.value,
            "updated_at": rfc3339(moment),
            "expires_at": _expiry(moment),
            **(set_ or {}),
        }
        if how.target.terminal:
            changes["finished_at"] = rfc3339(moment)
        condition, sources = _among(how.sources)
        return self._update(
            job_id,
            changes,
            [*remove, *(() if "lease_until" in changes else ("lease_until",))],
            condition + where,
            {**sources, **(values or {}), ":entry": [_entry(how.target, moment)]},
            also=", #history = list_append(#history, :entry)" + also,
        )

    def _update(
        self,
        job_id: str,
        changes: Mapping[str, Any],
        removals: Iterable[str],
        condition: str,
        values: Mapping[str, Any],
        also: str = "",
    ) -> Job:
        changes = {**changes, "write": uuid4().hex}
        expression = "SET " + ", ".join(f"#{name} = :{name}" for name in changes) + also
        if names := ", ".join(f"#{name}" for name in removals):
            expression += f" REMOVE {names}"
        item = self._write(
            self._dynamodb.update_item,
            {
                "Key": _attributes({"job_id": job_id}),
                "UpdateExpression": expression,
                "ReturnValues": "ALL_NEW",
            },
            f"#schema <= :schema AND {condition}",
            {**{f":{name}": value for name, value in changes.items()}, **values, ":schema": SCHEMA},
            changes["write"],
        )
        return Job.from_item(item)

    def _write(
        self,
        operation: Callable[..., Any],
        arguments: Mapping[str, Any],
        condition: str,
        values: Mapping[str, Any],
        write: str = "",
    ) -> dict[str, Any]:
        """Carry out one conditional write and return the item, if the answer tells it.

        `write` names the write in the item: the AWS client repeats a request whose answer is lost,
        and the repetition is refused for what the first one has done.

        All attributes are `#name`: some are reserved words.
        """
        names = re.findall(r"#(\w+)", condition + arguments.get("UpdateExpression", ""))
        try:
            answer = operation(
                TableName=self._table,
                ConditionExpression=condition,
                ExpressionAttributeNames={f"#{name}": name for name in names},
                ExpressionAttributeValues=_attributes(values),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **arguments,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item = _plain(error.response.get("Item", {}))
            if write and item.get("write") == write:
                return item
            raise Refused(Job.from_item(item) if item else None) from None
        return _plain(answer.get("Attributes", {}))


def describe(error: BaseException) -> dict[str, str]:
    """Return an error as a job holds it, without its stack trace."""
    message = str(error)[:MAX_MESSAGE].encode("utf-8", "replace").decode("utf-8")
    return {"type": type(error).__name__, "message": message}


def _result(result: Mapping[str, Any]) -> str:
    if not isinstance(result, Mapping):
        raise PermanentError(f"run() returned {type(result).__name__}; it returns a JSON object")
    try:
        text = canonical(result)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise PermanentError(f"the result is not JSON: {error}") from error
    if size > MAX_RESULT_BYTES:
        raise PermanentError(
            f"the result has {size} bytes and {MAX_RESULT_BYTES} are allowed:"
            " store it elsewhere and return where"
        )
    return text


def _among(statuses: Iterable[Status]) -> tuple[str, dict[str, str]]:
    """Return the condition that the status is one of `statuses`, and its values."""
    values = {f":is_{status.value}": status.value for status in statuses}
    return f"#status IN ({', '.join(values)})", values


def as_read(job: Job) -> tuple[str, dict[str, int]]:
    """Return the condition that no status has followed the job's, and its values."""
    return " AND size(#history) = :seen", {":seen": len(job.history)}


def _entry(status: Status, moment: datetime) -> dict[str, str]:
    return {"status": status.value, "at": rfc3339(moment)}


def _expiry(moment: datetime) -> int:
    return int(moment.timestamp()) + settings.retention_seconds


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _serialize(value) for name, value in values.items()}


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _deserialize(value) for name, value in item.items()}
