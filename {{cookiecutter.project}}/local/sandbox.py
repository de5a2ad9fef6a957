"""Sandboxes: a function runs in a process of its own, one event at a time.

Imitates the life of Lambda's execution environment: init once, invoke, freeze until the next event
(SIGSTOP), thaw, reuse, end at the timeout or after a crash.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .processes import Guard, descendants, kill_tree, patience, signal_tree
from .template import Function

_INIT_SECONDS = 10.0
_PAYLOAD_LIMIT = 6 * 1024 * 1024 + 100  # bytes, of a synchronous request or response
_SETTLE_SECONDS = 2.0


class InitError(Exception):
    """A function does not start; the message is one line, `error` an invocation's error."""

    def __init__(self, function: Function, error: dict[str, Any]) -> None:
        own = rf'File "{re.escape(str(function.code))}/([^"]+)",? [Ll]ine (\d+)'
        frames = re.findall(own, "\n".join(error["stackTrace"]))
        where = f" ({':'.join(frames[-1])})" if frames else ""
        kind, message = error["errorType"], " ".join(error["errorMessage"].split())
        super().__init__(f"{function.name} does not start: {kind}: {message}{where}")
        self.error = error


@dataclass
class Invocation:
    """One event for a function, and the outcome (`payload` is the JSON it returned)."""

    function: str
    source: str
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: float = field(default_factory=time.time)
    cold: bool = False
    duration_ms: float = 0.0
    payload: str | None = None
    error: dict[str, Any] | None = None
    leaks: list[str] = field(default_factory=list)

    @property
    def result(self) -> Any:
        """What the function returned, parsed. Raises ValueError when it is not JSON."""
        return None if self.payload is None else json.loads(self.payload)


class Sandbox:
    """One process that serves one function. Not thread-safe: one thread at a time owns it."""

    def __init__(
        self, function: Function, environment: dict[str, str], guard: Guard, folder: str,
        log: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        self.function = function
        self.state = "starting"
        self.invocations = 0
        self.version = fingerprint(function.code)
        self._tmp = tempfile.mkdtemp(dir=folder)
        self._channel, theirs = socket.socketpair()
        self._reader = self._channel.makefile("r", encoding="utf-8")
        self._guard = guard
        self._processes: set[int] = set()
        bootstrap = Path(__file__).with_name("bootstrap.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", bootstrap, str(theirs.fileno())],
            cwd=function.code,
            env={**_environment(function, self._tmp), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        self.pid = self._process.pid
        guard.add(self.pid)
        theirs.close()
        for work in (lambda: self._pump(log), self._bury):
            threading.Thread(target=work, daemon=True).start()

    def init(self) -> None:
        """Wait for the end of init. Raises `InitError`."""
        problem, message = f"init took longer than {_INIT_SECONDS:g} seconds", None
        try:
            self._channel.settimeout(patience(_INIT_SECONDS))
            message = self._read()
            problem = "" if message else self._exit()
        except TimeoutError:
            pass
        if message and message["call"] == "next":
            self._processes = set(descendants(self.pid))
            signal_tree(self.pid, signal.SIGSTOP)
            return
        self.kill()
        error = {"errorType": "Runtime.ExitError", "errorMessage": problem, "stackTrace": []}
        raise InitError(self.function, json.loads(message["body"]) if message else error)

    def invoke(self, invocation: Invocation, event: str) -> bool:
        """Run one event and fill in `invocation`. Returns whether the sandbox can go on."""
        timeout, started = self.function.timeout, time.monotonic()
        self.invocations += 1
        request = {
            "id": invocation.request_id,
            "arn": self.function.arn,
            "deadline": int((time.time() + timeout) * 1000),
            "trace": f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Sampled=0",
            "event": event,
        }
        kind, problem, message = "Runtime.ExitError", "", None
        try:
            signal_tree(self.pid, signal.SIGCONT)
            self._channel.settimeout(timeout)
            self._channel.sendall(json.dumps(request).encode() + b"\n")
            message = self._read()
        except TimeoutError:
            kind, problem = "Sandbox.Timedout", f"Task timed out after {timeout:.2f} seconds"
        except OSError:
            pass
        invocation.duration_ms = (time.monotonic() - started) * 1000
        if message is None:
            problem = f"RequestId: {invocation.request_id} Error: {problem or self._exit()}"
        elif message["call"] == "error":
            invocation.error = json.loads(message["body"])
        elif len(message["body"].encode()) > _PAYLOAD_LIMIT:
            kind = "Function.ResponseSizeTooLarge"
            problem = f"Response payload size exceeded {_PAYLOAD_LIMIT} bytes"
        else:
            invocation.payload = message["body"]
        if problem:
            invocation.error = {"errorType": kind, "errorMessage": problem}
        return message is not None

    def settle(self, invocation: Invocation) -> bool:
        """Wait until the sandbox asks for its next event, freeze it, and list unfinished work.

        Returns whether it can be used again.
        """
        message = None
        with contextlib.suppress(OSError):
            self._channel.settimeout(patience(_SETTLE_SECONDS))
            message = self._read()
        if message is None:
            return False
        signal_tree(self.pid, signal.SIGSTOP)
        running = descendants(self.pid)
        left = [f"process {running[p]!r}" for p in running.keys() - self._processes]
        self._processes = set(running)
        invocation.leaks = [*message["threads"], *left]
        return True

    def kill(self) -> None:
        """End the sandbox and everything that it started, and remove its /tmp."""
        if self._process.poll() is None:
            kill_tree(self.pid)
            self._process.wait()
        self._guard.remove(self.pid)
        self._channel.close()
        shutil.rmtree(self._tmp, ignore_errors=True)

    def _read(self) -> dict[str, Any] | None:
        line = self._reader.readline()
        return dict(json.loads(line)) if line.endswith("\n") else None

    def _exit(self) -> str:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "Runtime closed its connection"
        how = f"signal: {signal.strsignal(-code)}" if code < 0 else f"exit status {code}"
        return f"Runtime exited with error: {how}".lower().replace("runtime", "Runtime", 1)

    def _pump(self, log: Callable[[str, str], None]) -> None:
        # awslambdaric separates the lines of a traceback by carriage returns.
        assert self._process.stdout
        for raw in self._process.stdout:
            for line in raw.decode(errors="replace").replace("\xa0", " ").splitlines():
                log(self.function.name, line)
        self._process.stdout.close()

    def _bury(self) -> None:
        # A forked child can hold the socket open, which hides the end of the sandbox.
        self._process.wait()
        kill_tree(self.pid)


@dataclass
class Runner:
    """All the sandboxes of one function."""

    function: Function
    environment: dict[str, str]
    limit: int  # of busy sandboxes
    reclaim: bool  # discard each sandbox after its response
    guard: Guard  # ends the sandboxes if this process is killed
    folder: str  # holds each sandbox's /tmp
    log: Callable[[str, str], None]  # receives (function, line) of output
    finished: Callable[[Invocation], None]  # receives each invocation when its sandbox has settled

    def __post_init__(self) -> None:
        self.limit = min(self.limit, self.function.reserved or self.limit)
        self.sandboxes: list[Sandbox] = []
        self.slots = threading.BoundedSemaphore(self.limit)
        self._changed = threading.Condition()
        self._closed = False

    def invoke(
        self, event: Any, source: str = "invoke", *, reserved: bool = False
    ) -> "Future[Invocation]":
        """Hand an event to a sandbox; the future has the outcome when the function answers.

        With `reserved`, the caller has acquired one of `slots`; it is released here.
        """
        future: Future[Invocation] = Future()
        invocation = Invocation(self.function.name, source)
        work = (invocation, json.dumps(event), future, reserved)
        threading.Thread(target=self._run, args=work, daemon=True).start()
        return future

    def kill_busy(self) -> int:
        """Kill the busy sandboxes, as a failing host does; return how many."""
        busy = self._in("busy")
        for sandbox in busy:
            kill_tree(sandbox.pid)
        return len(busy)

    def close(self) -> None:
        """End every sandbox."""
        with self._changed:
            self._closed = True
        for sandbox in list(self.sandboxes):
            sandbox.kill()

    def _run(
        self, invocation: Invocation, event: str, future: "Future[Invocation]", reserved: bool
    ) -> None:
        if not reserved:
            self.slots.acquire()
        sandbox, usable = None, False
        try:
            sandbox = self._take(invocation)
            usable = sandbox.invoke(invocation, event)
            sandbox.state = "settling"
            future.set_result(invocation)
            usable = usable and sandbox.settle(invocation)
        except InitError as error:
            invocation.error = error.error
            self.log(self.function.name, str(error))
        except OSError as error:  # no process, or no room for one
            invocation.error = {"errorType": "Sandbox.Failed", "errorMessage": str(error)}
        finally:
            if sandbox:
                self._put_back(sandbox, usable and not self.reclaim)
            if not future.done():
                future.set_result(invocation)
            self.slots.release()
            self.finished(invocation)

    def _take(self, invocation: Invocation) -> Sandbox:
        version = fingerprint(self.function.code)
        with self._changed:
            # To wait for a sandbox that has just answered is cheaper than a cold start.
            self._changed.wait_for(lambda: self._in("frozen") or not self._in("settling"))
            stale = [s for s in self._in("frozen") if s.version != version]
            self.sandboxes = [s for s in self.sandboxes if s not in stale]
            fresh = self._in("frozen")[-1:]  # the last one used, as Lambda tends to
            for sandbox in fresh:
                sandbox.state = "busy"
        for sandbox in stale:
            sandbox.kill()
        invocation.cold = not fresh
        return fresh[0] if fresh else self.start("busy")

    def _in(self, state: str) -> list[Sandbox]:
        return [s for s in self.sandboxes if s.state == state]

    def start(self, state: str = "frozen") -> Sandbox:
        """Start a sandbox and wait for its init. Raises `InitError`."""
        sandbox = Sandbox(self.function, self.environment, self.guard, self.folder, self.log)
        with self._changed:
            self.sandboxes.append(sandbox)
        if self._closed:
            sandbox.kill()
        try:
            sandbox.init()
        except InitError:
            with self._changed:
                self.sandboxes = [s for s in self.sandboxes if s is not sandbox]
            raise
        sandbox.state = state
        return sandbox

    def _put_back(self, sandbox: Sandbox, usable: bool) -> None:
        with self._changed:
            self.sandboxes = [s for s in self.sandboxes if s is not sandbox]
            if usable and not self._closed:
                sandbox.state = "frozen"
                self.sandboxes.append(sandbox)
            self._changed.notify_all()
        if not usable:
            sandbox.kill()


def fingerprint(folder: Path) -> int:
    """Return a number that changes with any file in a folder, except hidden ones."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f != "__pycache__" and not f.startswith(".")]
        for path in (os.path.join(root, name) for name in names):
            with contextlib.suppress(OSError):
                stat = os.stat(path)
                found.append((path, stat.st_mtime_ns, stat.st_size))
    return hash(tuple(sorted(found)))


def _environment(function: Function, tmp: str) -> dict[str, str]:
    """Return Lambda's own variables, and nothing of this machine's but PATH."""
    name = function.arn.rsplit(":", 1)[1]
    given = {}
    if calls := os.environ.get("LOCAL_CALLS"):
        given["LOCAL_CALLS"] = os.path.abspath(calls)
    if function.log_format == "JSON":
        given |= {"AWS_LAMBDA_LOG_FORMAT": "JSON", "AWS_LAMBDA_LOG_LEVEL": function.log_level}
    return {
        **given,
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "TMPDIR": tmp,
        "_HANDLER": function.handler,
        "LAMBDA_TASK_ROOT": str(function.code),
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"local/[$LATEST]{uuid.uuid4().hex}",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Otherwise, of two edits within a second the first one's bytecode would run.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
