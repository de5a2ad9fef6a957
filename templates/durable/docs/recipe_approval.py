"""Recipe: wait for an approval, remind once, and treat no answer as a refusal.

Payload: `{"request": "refund 4711", "hours": 24}`
"""

from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext
from aws_durable_execution_sdk_python.config import Duration, WaitForCallbackConfig
from aws_durable_execution_sdk_python.types import WaitForCallbackContext

from jobs.context import JobContext


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Ask, then remind. `POST /jobs/{job_id}/callback` delivers the answer."""
    config = WaitForCallbackConfig(timeout=Duration.from_hours(payload["hours"]))
    for name in ("approval", "approval-reminder"):
        try:
            answer = context.wait_for_callback(
                partial(ask, payload["request"]), name=name, config=config
            )
        except CallbackTimeoutError:
            continue
        return {"approved": answer.get("approved") is True, "by": answer.get("by", "unknown")}
    return {"approved": False, "by": "nobody in time"}


def ask(request: str, callback_id: str, _: WaitForCallbackContext) -> None:
    """Write to the approver here. This runs as a step, so a crash can repeat it."""
