"""The worker's entry point: ends an execution at once if worker.py cannot be imported.

Otherwise Lambda would invoke again until the execution times out. So only the standard library is
imported here.
https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-sdk-retries.html
"""

import json
import os
import time
import traceback
from contextlib import suppress
from typing import Any

with suppress(BaseException):  # tried here too, because Lambda gives an init more CPU
    import worker  # noqa: F401


def handler(event: dict[str, Any], context: Any) -> Any:
    """Run the worker, or fail the execution with the reason why it cannot be imported.

    Each invocation tries again: an import that asks another service may succeed later.
    """
    try:
        from worker import handler as run
    except BaseException as error:
        return _failed(event, error)
    return run(event, context)


def _failed(event: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """Log the reason, count it as the metric `WorkerCrashed`, and return a failed execution."""
    service, metric = os.environ["POWERTOOLS_SERVICE_NAME"], "WorkerCrashed"
    trace = traceback.format_exc()
    line = {
        "level": "ERROR",
        "message": "worker.py cannot be imported",
        "exception": trace,
        "execution": event.get("DurableExecutionArn"),
        "service": service,
        metric: 1,
        "_aws": {
            "Timestamp": int(time.time() * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": os.environ["POWERTOOLS_METRICS_NAMESPACE"],
                    "Dimensions": [["service"]],
                    "Metrics": [{"Name": metric, "Unit": "Count"}],
                }
            ],
        },
    }
    print(json.dumps(line))
    reason = trace.strip().rpartition("\n")[2]
    return {
        "Status": "FAILED",
        "Error": {"ErrorType": "WorkerNotImported", "ErrorMessage": reason[:1000]},
    }
