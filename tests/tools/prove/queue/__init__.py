"""The SQS queue: jobs as messages."""
