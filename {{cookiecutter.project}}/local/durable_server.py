"""The SDK's emulator of durable executions, in a process of its own, which `durable.py` starts.

Takes the arguments of `dex-local-runner`, and is faster by the 40 ms that each of its answers
waits for when head and body leave in two packets.
"""

import sys

from aws_durable_execution_sdk_python_testing.cli import main
from aws_durable_execution_sdk_python_testing.web.server import RequestHandler

if __name__ == "__main__":
    RequestHandler.wbufsize = -1
    RequestHandler.disable_nagle_algorithm = True
    sys.exit(main())
