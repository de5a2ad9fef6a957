"""Deletes reports that are older than 30 days, every night."""

from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from jobs.settings import client, required

BUCKET = required("REPORTS_BUCKET")
AGE = timedelta(days=30)

logger = Logger()
_s3 = client("s3")


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Return how many reports were deleted."""
    oldest, deleted = datetime.now(UTC) - AGE, 0
    for page in _s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="reports/"):
        for found in page.get("Contents", []):
            if found["LastModified"] < oldest:
                _s3.delete_object(Bucket=BUCKET, Key=found["Key"])
                deleted += 1
    logger.info("reports swept", extra={"deleted": deleted})
    return {"deleted": deleted}
