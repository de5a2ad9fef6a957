"""YOUR CODE: what a job does. It adds the orders of a month up by customer, as a CSV report."""

import csv
import io
import json
from collections import Counter
from typing import Any

from jobs import JobCancelled, PermanentError
from jobs.context import JobContext
from jobs.settings import client, required

BUCKET = required("REPORTS_BUCKET")
TOPIC = required("REPORTS_TOPIC")

_s3 = client("s3")
_sns = client("sns")


def run(payload: dict[str, Any], job: JobContext) -> dict[str, Any]:
    """Write the report of a month, tell the accountants once, and return where it is."""
    month = payload["month"]
    try:
        orders = _s3.get_object(Bucket=BUCKET, Key=f"orders/{month}.csv")["Body"].read().decode()
    except _s3.exceptions.NoSuchKey:
        raise PermanentError(f"there are no orders of {month}") from None

    totals: Counter[str] = Counter()
    rows = list(csv.DictReader(io.StringIO(orders)))
    for number, row in enumerate(rows, 1):
        if job.cancelled:
            raise JobCancelled
        totals[row["customer"]] += int(row["amount"])
        job.progress(number, len(rows), f"order {number}")

    report = io.StringIO()
    csv.writer(report).writerows([("customer", "total"), *sorted(totals.items())])
    key = f"reports/{job.id}.csv"
    _s3.put_object(Bucket=BUCKET, Key=key, Body=report.getvalue().encode())
    job.once("tell", lambda: tell(month))
    return {"key": key, "customers": len(totals)}


def tell(month: str) -> None:
    """Tell the accountants that a report is there."""
    _sns.publish(TopicArn=TOPIC, Message=json.dumps({"month": month}))
