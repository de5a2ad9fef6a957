"""Why Lambda has given up an execution, in words for the job's owner."""

from botocore.exceptions import ClientError

from jobs import Job
from jobs.failure import MAX_MESSAGE
from jobs.settings import client

_lambda = client("lambda")

_ENDS = {
    "FAILED": ("ExecutionFailed", "The execution failed."),
    "STOPPED": ("ExecutionStopped", "The execution was stopped."),
    "TIMED_OUT": ("ExecutionTimedOut", "The execution took longer than it may."),
}


def failure_reason(job: Job) -> dict[str, str]:
    """Return the error of a job whose execution has ended without bringing the job to its end.

    Raises:
        ClientError, BotoCoreError: Lambda does not say now.
    """
    if len(job.history) == (job.retry_of or 0) + 1:  # nothing has happened since it was queued
        return {
            "type": "NeverStarted",
            "message": "Lambda could not invoke the worker in time, or could not import it.",
        }
    if job.execution is None:
        return {"type": "ExecutionLost", "message": "The job names no execution."}
    try:
        execution = _lambda.get_durable_execution(DurableExecutionArn=job.execution)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return {"type": "ExecutionLost", "message": "Lambda does not know the execution any more."}
    kind, message = _ENDS.get(
        execution["Status"], ("ExecutionLost", f"The execution is {execution['Status']}.")
    )
    why = execution.get("Error", {})
    told = ": ".join(why[name] for name in ("ErrorType", "ErrorMessage") if why.get(name))
    return {"type": kind, "message": f"{message} {told}".strip()[:MAX_MESSAGE]}
