"""The process of a sandbox: AWS's own runtime (awslambdaric) around the user's handler.

Imitates the runtime's side of the Runtime API: next, response, error, init error. awslambdaric's
HTTP client exists for Linux only, so the calls go over a socket here, each a line of JSON. `next`
carries a list of the threads that the last invocation left over.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

LOCAL_CALLS in the environment names a file that gets a line for each call to AWS.
"""

import errno
import json
import os
import re
import socket
import sys
import threading
from importlib import import_module
from typing import Any

from awslambdaric import bootstrap
from awslambdaric.lambda_runtime_client import InvocationRequest, LambdaRuntimeClient

_PR_SET_CHILD_SUBREAPER = 36


class _Client(LambdaRuntimeClient):  # type: ignore[misc]
    """awslambdaric's client, with a socket instead of HTTP."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__("")
        self._reader = channel.makefile("r", encoding="utf-8")
        self._channel = channel
        self._known: set[Any] = set()

    def wait_next_invocation(self) -> Any:
        self._send("next", threads=self._left_over())
        line = self._reader.readline()
        if not line:
            # The stack has ended. sys.exit would wait for threads that the function left over.
            os._exit(0)
        request = json.loads(line)
        return InvocationRequest(
            invoke_id=request["id"],
            x_amzn_trace_id=request["trace"],
            invoked_function_arn=request["arn"],
            deadline_time_in_ms=request["deadline"],
            client_context=None,
            cognito_identity=None,
            tenant_id=None,
            content_type="application/json",
            event_body=request["event"],
            invocation_id=None,
        )

    def post_invocation_result(self, invoke_id: str, result_data: Any, *_: Any, **__: Any) -> None:
        data = result_data if isinstance(result_data, bytes) else result_data.encode("utf-8")
        self._send("response", id=invoke_id, body=data.decode("utf-8", "replace"))

    def post_invocation_error(self, invoke_id: str, error: str, *_: Any) -> None:
        self._send("error", id=invoke_id, body=error)

    def post_init_error(self, error_response_data: Any, *_: Any) -> None:
        self._send("init error", body=json.dumps(error_response_data))

    def _send(self, call: str, **fields: Any) -> None:
        self._channel.sendall(json.dumps({"call": call, **fields}).encode() + b"\n")

    def _left_over(self) -> list[str]:
        """Name the threads that are new since the last call, and the line each is at."""
        frames = sys._current_frames()
        # Compare objects: the system gives the number of an ended thread to another one. A thread
        # that `threading` does not know has only its number.
        threads = {t.ident: t for t in threading.enumerate()}
        now = {threads.get(n, n): frame for n, frame in frames.items()}
        new = [t for t in now if t not in self._known]
        self._known = set(now)
        return [f"thread {getattr(t, 'name', t)!r} at {_place(now[t])}" for t in new]


def _log_record(self: Any, message: str, frame_type: Any = None) -> None:
    """Write one log record and end its line, as Lambda's own sink does; a traceback does not."""
    sys.stdout.write(message if message.endswith("\n") else f"{message}\n")


def _place(innermost: Any) -> str:
    """Return the innermost line of the user's code in a stack, else the innermost line."""
    root, frame = os.environ["LAMBDA_TASK_ROOT"] + "/", innermost
    while frame and not frame.f_code.co_filename.startswith(root):
        frame = frame.f_back
    if not frame:
        return f"{os.path.basename(innermost.f_code.co_filename)}:{innermost.f_lineno}"
    return f"{frame.f_code.co_filename.removeprefix(root)}:{frame.f_lineno}"


def _note_calls(path: str) -> None:
    """Append a line of JSON to a file for each call to AWS, with the method that makes it."""
    from botocore.client import BaseClient  # late: not every function imports it

    make = BaseClient._make_api_call
    root = os.environ["LAMBDA_TASK_ROOT"] + "/"

    def note(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        frame, place = sys._getframe(), ""
        while frame.f_back and not place:
            frame = frame.f_back
            module, name = frame.f_code.co_filename, frame.f_code.co_qualname
            if module.startswith(root) and not re.search(r"\._|<", name):  # a public method
                place = f"{module.removeprefix(root)}: {name}"
        line = {
            "function": os.environ["AWS_LAMBDA_FUNCTION_NAME"],
            "service": client.meta.service_model.signing_name,
            "operation": operation,
            "parameters": {k: v for k, v in parameters.items() if isinstance(v, str)},
            "place": place,
        }
        with open(path, "ab", buffering=0) as file:  # one write, as other sandboxes write too
            file.write(json.dumps(line).encode() + b"\n")
        return make(client, operation, parameters)

    setattr(BaseClient, "_make_api_call", note)  # noqa: B010 - a method, to mypy


def _deny_shared_memory() -> None:
    """Refuse semaphores and shared memory as Lambda does, which has no /dev/shm.

    So `ProcessPoolExecutor`, `multiprocessing.Pool` and `Queue` fail; `Process` and `Pipe` work.
    https://aws.amazon.com/blogs/compute/parallel-processing-in-python-with-aws-lambda/
    """
    semaphores: Any = import_module("_multiprocessing")
    shared: Any = import_module("_posixshmem")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    semaphores.SemLock = type("SemLock", (semaphores.SemLock,), {"__new__": refuse})
    shared.shm_open = refuse


def main() -> None:
    """Serve the function that the environment names, until killed."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    if sys.platform == "linux":  # daemonised children stay descendants of this process
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _deny_shared_memory()
    sys.path.insert(0, os.environ["LAMBDA_TASK_ROOT"])
    if calls := os.environ.get("LOCAL_CALLS"):
        _note_calls(calls)
    setattr(bootstrap.StandardLogSink, "log", _log_record)  # noqa: B010 - a method, to mypy
    bootstrap.run(os.environ["_HANDLER"], _Client(channel))


if __name__ == "__main__":
    main()
