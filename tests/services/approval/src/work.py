"""YOUR CODE: what a job does. A purchase needs its approver's yes within three days."""

import json
from typing import Any

from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext
from aws_durable_execution_sdk_python.config import Duration
from aws_durable_execution_sdk_python.types import WaitForCallbackContext

from answers import AnswerConfig
from jobs.context import JobContext
from jobs.settings import client, required

TOPIC = required("APPROVALS_TOPIC")

_sns = client("sns")


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Ask the approver, remind after a day, and take silence for a no."""
    for name, days in (("approval", 1), ("approval-reminder", 2)):

        def ask(_: str, __: WaitForCallbackContext, subject: str = name) -> None:
            message = {"job_id": job.id, "item": payload["item"], "approver": payload["approver"]}
            _sns.publish(TopicArn=TOPIC, Subject=subject, Message=json.dumps(message))

        config = AnswerConfig(
            timeout=Duration.from_days(days)
            if "seconds" not in payload
            else Duration.from_seconds(payload["seconds"]),
            callers=(payload["approver"],),
            question={"item": payload["item"], "euros": payload["euros"]},
        )
        try:
            answer = context.wait_for_callback(ask, name=name, config=config)
        except CallbackTimeoutError:
            continue
        return {"approved": answer.get("approved") is True, "by": answer["by"]}
    return {"approved": False, "by": "nobody in time"}
