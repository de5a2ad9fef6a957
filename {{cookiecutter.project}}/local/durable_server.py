"""The SDK's emulator of durable executions, in a process of its own, which `durable.py` starts.

Takes the arguments of `dex-local-runner`. As Lambda does, it invokes again after a crash until the
execution times out. It saves the 40 ms that each answer waits for when head and body leave in two
packets. `POST /expire/ARN` lets an execution's callbacks time out or, without any, the execution.
"""

import json
import sys
from typing import Any
from urllib.parse import unquote

from aws_durable_execution_sdk_python.lambda_service import ErrorObject
from aws_durable_execution_sdk_python_testing.cli import main
from aws_durable_execution_sdk_python_testing.executor import Executor
from aws_durable_execution_sdk_python_testing.token import CallbackToken
from aws_durable_execution_sdk_python_testing.web.server import RequestHandler

_handle: Any = RequestHandler._handle_request


def _expire(executor: Any, arn: str) -> list[str]:
    """Bring an execution's deadlines about; return what timed out."""
    callbacks = list(executor._callback_timeouts)
    waiting = [c for c in callbacks if CallbackToken.from_str(c).execution_arn == arn]
    for callback in waiting:
        executor._cleanup_callback_timeouts(callback)
        executor._on_callback_timeout(arn, callback)
    if not waiting:
        executor.on_timed_out(arn, ErrorObject.from_message("Execution timed out."))
    return ["callback"] * len(waiting) or ["execution"]


def _handle_or_expire(self: Any, method: str) -> None:
    _, route, arn = f"{self.path}//".split("/")[:3]
    if route != "expire":
        _handle(self, method)
        return
    body = json.dumps(_expire(self.executor, unquote(arn))).encode()
    self.send_response(200)
    self.send_header("content-length", str(len(body)))
    self.end_headers()
    self.wfile.write(body)


if __name__ == "__main__":
    # https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-sdk-retries.html
    Executor.MAX_CONSECUTIVE_FAILED_ATTEMPTS = sys.maxsize
    RequestHandler.wbufsize = -1
    RequestHandler.disable_nagle_algorithm = True
    setattr(RequestHandler, "_handle_request", _handle_or_expire)  # noqa: B010 - a method, to mypy
    sys.exit(main())
