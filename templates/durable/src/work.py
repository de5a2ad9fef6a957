"""YOUR CODE: what a job does. This sample follows up on a free trial.

It is a durable function. After each wait and each crash it runs again from the top, and `context`
gives back what finished steps returned. So:

- What has an effect, asks the world or differs between two runs (the time, a random number, a
  file, another service) stands in a step. Between steps there is only plain computing.
- Steps keep their names and their order. A release that changes them is for new jobs; jobs under
  way stay on the version that they began on.
- What a step returns is JSON, and small (256 KB): return where a large thing is, not the thing.
- A step whose sandbox dies has failed, and is tried again, even if it died after its effect:
  `job.once` guards what must not happen twice.
- Never catch everything (`except:`, `except BaseException`): waiting works by an exception.

docs/recipes.md has more.
"""

import json
from typing import Any

from aws_durable_execution_sdk_python import CallbackTimeoutError, DurableContext, StepContext
from aws_durable_execution_sdk_python.config import Duration

from answers import AnswerConfig
from jobs import PermanentError
from jobs.context import JobContext
from jobs.settings import client, required

FOLLOW_UP_TOPIC = required("FOLLOW_UP_TOPIC")

_sns = client("sns")


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Do the job and return its result, a JSON object.

    Any exception fails the job, once its step has been tried as often as `MaxAttempts` says;
    `PermanentError` fails it at once.
    """
    trial = context.step(lambda step: start_trial(payload, step), name="start-trial")
    job.progress(1, 3, "trial started")

    if delay := payload.get("delay_seconds", 1200):
        context.wait(Duration.from_seconds(delay), name="trial")
    job.progress(2, 3, "trial over")

    if payload.get("approval") and not approved(payload, context):
        return {**trial, "follow_up": "withheld"}

    message_id = context.step(
        lambda _: job.once("follow-up", lambda: publish(trial["customer"])), name="follow-up"
    )
    job.progress(3, 3, "follow-up published")
    return {**trial, "follow_up": message_id}


def start_trial(payload: dict[str, Any], step: StepContext) -> dict[str, Any]:
    """Stand for opening an account: a step that can fail."""
    failure = payload.get("failure", "none")
    if failure == "permanent":
        raise PermanentError(f"{payload['customer']} has had a trial before")
    if failure == "poison" or (failure == "transient" and step.attempt == 1):
        raise ConnectionError("the accounts do not answer")
    return {"customer": payload["customer"]}


def approved(payload: dict[str, Any], context: DurableContext) -> bool:
    """Wait until somebody says whether to follow up; nobody in time means no."""
    config = AnswerConfig(
        timeout=Duration.from_seconds(payload.get("approval_seconds", 86_400)),
        callers=(payload["approver"],) if "approver" in payload else (),  # else the owner
        question={"follow up on": payload["customer"]},
    )
    try:
        answer = context.wait_for_callback(
            lambda callback_id, _: None,  # here you would tell them that the job waits
            name="approval",
            config=config,
        )
    except CallbackTimeoutError:
        return False
    return answer.get("approved") is True


def publish(customer: str) -> str:
    """Publish the follow-up; whoever subscribes to the topic sends it on."""
    answer = _sns.publish(
        TopicArn=FOLLOW_UP_TOPIC,
        Subject="A free trial has ended",
        Message=json.dumps({"customer": customer}),
    )
    return str(answer["MessageId"])
