"""The notification that a job has reached a terminal status."""

import json

from jobs.job import Job
from jobs.once import once
from jobs.settings import client, settings

MAX_BYTES = 256_000
"""SNS takes 262,144 bytes, attributes included."""

_sns = client("sns")


def announce(job: Job) -> None:
    """Publish a terminal job to the topic, once each time that it finishes.

    Safe to call again: whoever finds a terminal job calls it, so that a crash between the status
    and the notification loses neither.
    """
    if settings.job_events_topic:
        once(job.job_id, f"announce/{job.finished_at}", lambda: _publish(job))


def _publish(job: Job) -> str:
    """Publish ASCII: SQS refuses some characters, and may be among the subscribers.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
    """
    told = {name: value for name, value in job.public().items() if name != "history"}
    message = json.dumps(told)
    if len(message) > MAX_BYTES:
        message = json.dumps(told | {"result": None})  # the subscriber gets the job instead
    answer = _sns.publish(
        TopicArn=settings.job_events_topic,
        Subject=f"Job {job.status.value}: {job.job_id}",
        Message=message,
        MessageAttributes={"status": {"DataType": "String", "StringValue": job.status.value}},
    )
    return str(answer["MessageId"])
