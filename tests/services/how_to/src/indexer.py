"""Indexes documents, one message each."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Return the messages that must come back: those whose `index` raised."""
    return process_partial_response(
        event=event, record_handler=index, processor=processor, context=context
    )


def index(record: SQSRecord) -> None:
    """Index one document; a message can come twice."""
    logger.info("indexed", extra={"document": record.json_body["document"]})
