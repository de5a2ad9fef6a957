"""The bug: the work goes on in a thread after the response."""

import json
import threading
import time
import uuid
from typing import Any

import boto3

table = boto3.resource("dynamodb").Table("JobsTable")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer 202 and start the work."""
    job_id = str(uuid.uuid4())
    table.put_item(Item={"job_id": job_id, "status": "running"})
    threading.Thread(target=work, args=(job_id,), name="work").start()
    return {"statusCode": 202, "body": json.dumps({"job_id": job_id})}


def work(job_id: str) -> None:
    """Take a moment, then record that it is done."""
    time.sleep(0.5)
    table.put_item(Item={"job_id": job_id, "status": "completed"})
