"""Tells what the table says of a job."""

from typing import Any

import boto3

table = boto3.resource("dynamodb").Table("JobsTable")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Return the item."""
    return dict(table.get_item(Key=event["pathParameters"])["Item"])
