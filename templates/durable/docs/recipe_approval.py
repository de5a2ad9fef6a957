"""Recipe: an approval that is asked for twice before the answer is no.

Its payload: `{"request": "refund 4711", "hours": 24}`
"""

from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext
from aws_durable_execution_sdk_python.config import Duration, WaitForCallbackConfig
from aws_durable_execution_sdk_python.types import WaitForCallbackContext

from jobs.context import JobContext


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Ask, remind, give up. `POST /jobs/{job_id}/callback` brings the answer."""
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
    """Here you would write to whoever decides. It is a step: it may be repeated after a crash."""
