"""Recipe: continue after a failure without repeating finished steps, for hours if needed.

Payload: `{"order": "4711"}`
"""

from typing import Any

from aws_durable_execution_sdk_python import DurableContext
from aws_durable_execution_sdk_python.config import Duration, StepConfig
from aws_durable_execution_sdk_python.retries import RetryStrategyConfig, create_retry_strategy

from jobs import PermanentError
from jobs.context import JobContext

FOR_HOURS = StepConfig(
    retry_strategy=create_retry_strategy(
        RetryStrategyConfig(
            max_attempts=12,
            initial_delay=Duration.from_seconds(10),
            max_delay=Duration.from_minutes(30),
        )
    )
)
"""For a service that can be down for hours. Between the attempts, no sandbox runs."""


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Run each step until it succeeds. Earlier steps do not run again."""
    order = payload["order"]
    paid = context.step(lambda _: job.once("charge", lambda: charge(order)), name="charge")
    sent = context.step(lambda _: ship(order), name="ship", config=FOR_HOURS)
    return {"paid": paid, "sent": sent}


def charge(order: str) -> str:
    """Charge the customer here. `PermanentError` ends the job without another attempt."""
    if not order:
        raise PermanentError("there is no such order")
    return f"payment of {order}"


def ship(order: str) -> str:
    """Call the shipping service here."""
    return f"parcel of {order}"
