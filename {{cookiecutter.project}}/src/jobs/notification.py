"""The notification that a job has reached a terminal status."""

import json

from jobs.job import Job
from jobs.once import once
from jobs.settings import client, settings

_sns = client("sns")


def announce(job: Job) -> None:
    """Publish a terminal job to the topic, once each time that it finishes.

    Safe to call again: whoever finds a terminal job calls it, so that a crash between the status
    and the notification loses neither.
    """
    if settings.job_events_topic:
        once(job.job_id, f"announce/{job.finished_at}", lambda: _publish(job))


def _publish(job: Job) -> str:
    message = {name: value for name, value in job.public().items() if name != "history"}
    answer = _sns.publish(
        TopicArn=settings.job_events_topic,
        Subject=f"Job {job.status.value}: {job.job_id}",
        Message=json.dumps(message, ensure_ascii=False),  # escapes could exceed SNS's 256 KB
        MessageAttributes={"status": {"DataType": "String", "StringValue": job.status.value}},
    )
    return str(answer["MessageId"])
