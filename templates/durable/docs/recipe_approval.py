"""Recipe: wait for an approval of somebody else, remind once, and treat no answer as a refusal.

Payload: `{"request": "refund 4711", "approver": "AROAEXAMPLEID", "hours": 24}`

`approver` is the caller's id, as src/web/caller.py returns it. With `auth: jwt`, a claim can stand
for it: `claims={"groups": "approvers"}`. The approver reads `question` with
`GET /jobs/{job_id}/callback`, and answers with `POST` there.
"""

from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext
from aws_durable_execution_sdk_python.config import Duration
from aws_durable_execution_sdk_python.types import WaitForCallbackContext

from answers import AnswerConfig
from jobs.context import JobContext


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Ask, then remind. `by` is who answered: the API writes it, not the caller."""
    config = AnswerConfig(
        timeout=Duration.from_hours(payload["hours"]),
        callers=(payload["approver"],),
        question={"approve": payload["request"]},
    )
    for name in ("approval", "approval-reminder"):
        try:
            answer = context.wait_for_callback(
                partial(ask, payload["request"]), name=name, config=config
            )
        except CallbackTimeoutError:
            continue
        return {"approved": answer.get("approved") is True, "by": answer["by"]}
    return {"approved": False, "by": "nobody in time"}


def ask(request: str, callback_id: str, _: WaitForCallbackContext) -> None:
    """Write to the approver here. This runs as a step, so a crash can repeat it."""
