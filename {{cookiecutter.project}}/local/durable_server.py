"""The SDK's emulator of durable executions, in a process of its own, which `durable.py` starts.

Takes the arguments of `dex-local-runner`. As Lambda does, it invokes again after a crash until the
execution times out. It saves the 40 ms that each answer waits for when head and body leave in two
packets.
"""

import sys

from aws_durable_execution_sdk_python_testing.cli import main
from aws_durable_execution_sdk_python_testing.executor import Executor
from aws_durable_execution_sdk_python_testing.web.server import RequestHandler

if __name__ == "__main__":
    # https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-sdk-retries.html
    Executor.MAX_CONSECUTIVE_FAILED_ATTEMPTS = sys.maxsize
    RequestHandler.wbufsize = -1
    RequestHandler.disable_nagle_algorithm = True
    sys.exit(main())
