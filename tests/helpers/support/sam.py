"""SAM CLI: finds or installs it, builds projects, and invokes their functions in containers."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import containers, machine, pythons, tools
from .containers import RuntimeImage
from .machine import SetupError, run, say

MINIMUM = (1, 170, 0)
"""The oldest SAM CLI that the suite was run with."""

REGION = "us-east-1"


class SamError(AssertionError):
    """A SAM command failed; the message holds the command and all that it wrote."""


@dataclass(frozen=True)
class Invocation:
    """What one invocation gave: the function's answer on stdout, and the logs on stderr."""

    function: str
    exit_code: int
    stdout: str
    stderr: str

    @property
    def payload(self) -> Any:
        """The function's answer, parsed; None when there is none.

        A function that raised answers {"errorMessage": …, "errorType": …, "stackTrace": […]}.
        """
        lines = self.stdout.strip().splitlines()
        if not lines:
            return None
        try:
            return json.loads(lines[-1])
        except ValueError:
            return None

    def __str__(self) -> str:
        return (
            f"{self.function}: exit code {self.exit_code}\n"
            f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
        )

    __repr__ = __str__  # pytest shows an assertion's operands by their repr


@dataclass(frozen=True)
class SAM:
    """The SAM CLI at `path`."""

    path: Path

    @classmethod
    def find(cls) -> "SAM":
        """$SAM_CLI, else `sam` on PATH when recent enough, else one installed into .cache/.

        Raises SetupError when $SAM_CLI does not work or is too old, or nothing can be installed.
        """
        return find()

    def run(
        self,
        *arguments: str | Path,
        cwd: Path,
        runtime: str | None = None,
        local: bool = False,
        stdin: str | None = None,
        timeout: float = 600,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run `sam ARGUMENTS` in `cwd`, with no telemetry and no way to a real account.

        With `runtime` ("python3.13"), an interpreter of that version comes first on PATH; with
        `local`, there is a container engine. Raises SamError when SAM fails, unless `check` is off.
        """
        done = run(
            self.path,
            *arguments,
            cwd=cwd,
            env=_environment(runtime, local=local),
            stdin=stdin,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            command = " ".join(["sam", *map(str, arguments)])
            raise SamError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def build(
        self, project: Path, runtime: str = "python3.13", *, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """`sam build` into the project's .aws-sam/. Raises SamError."""
        return self.run("build", *options, cwd=project, runtime=runtime)

    def validate(self, project: Path) -> subprocess.CompletedProcess[str]:
        """`sam validate --lint`. Raises SamError."""
        return self.run("validate", "--lint", "--region", REGION, cwd=project)

    def local_invoke(
        self,
        project: Path,
        function: str,
        event: object = None,
        *,
        env_vars: Mapping[str, str] | None = None,
        image: RuntimeImage | None = None,
        options: Sequence[str] = (),
    ) -> Invocation:
        """`sam local invoke FUNCTION` of a built project, in a new container.

        `event` is JSON-like data or the path of an event file. `env_vars` override variables that
        the template declares, in every function; None leaves it to the project's samconfig.toml.
        Never raises for a function's failure: that is in the result.
        """
        image = image or containers.runtime_image()
        if isinstance(event, Path):
            source, stdin = ["--event", str(event.resolve())], None
        elif event is None:
            source, stdin = ["--no-event"], None
        else:
            source, stdin = ["--event", "-"], json.dumps(event)
        with _local_options(image, env_vars) as shared, _first_use(image):
            done = self.run(
                *("local", "invoke", function, *source, *shared, *options),
                cwd=project,
                local=True,
                stdin=stdin,
                check=False,
            )
        return Invocation(function, done.returncode, done.stdout, done.stderr)

    @contextmanager
    def start_lambda(
        self,
        project: Path,
        *,
        env_vars: Mapping[str, str] | None = None,
        image: RuntimeImage | None = None,
        options: Sequence[str] = (),
    ) -> "Iterator[LocalLambda]":
        """`sam local start-lambda` of a built project: Lambda's Invoke API, with warm containers.

        An invocation takes some 25 ms instead of 3 s, in the container of the one before it; what
        a new container does is tested with `local_invoke`. Raises SamError when it does not start.
        """
        image = image or containers.runtime_image()
        with self._serve("start-lambda", project, env_vars, image, options) as (port, log):
            yield LocalLambda(image, port, log)

    @contextmanager
    def start_api(
        self,
        project: Path,
        *,
        env_vars: Mapping[str, str] | None = None,
        image: RuntimeImage | None = None,
        options: Sequence[str] = (),
    ) -> Iterator[str]:
        """`sam local start-api` of a built project, with warm containers: yields the API's URL.

        Raises SamError when it does not start.
        """
        image = image or containers.runtime_image()
        with (
            _first_use(image),
            self._serve("start-api", project, env_vars, image, options) as (port, _),
        ):
            yield f"http://127.0.0.1:{port}"

    @contextmanager
    def _serve(
        self,
        what: str,
        project: Path,
        env_vars: Mapping[str, str] | None,
        image: RuntimeImage,
        options: Sequence[str],
    ) -> Iterator[tuple[int, Path]]:
        """Runs one of SAM's servers: yields its port and the file that it logs to."""
        with tempfile.TemporaryDirectory() as folder, _local_options(image, env_vars) as shared:
            port = _free_port()
            # LAZY: with EAGER, SAM 1.170 makes containers that it neither uses nor removes.
            warm = ("--warm-containers", "LAZY", "--no-watch")
            log = Path(folder) / "log"
            with log.open("w") as output:
                server = subprocess.Popen(
                    [str(self.path), "local", what, "--port", str(port), *warm, *shared, *options],
                    cwd=project,
                    env=_environment(None, local=True),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            try:
                _wait_until_up(server, port, log)
                yield port, log
            finally:
                end(server)


def end(server: "subprocess.Popen[Any]", patience: float = 20) -> None:
    """End one of SAM's servers, which then removes its containers.

    SAM 1.170 overhears a SIGTERM now and then, so it is told again after `patience` seconds.
    """
    for _ in range(3):
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=patience)
            return
    server.kill()
    server.wait()


@dataclass(frozen=True)
class LocalLambda:
    """A running `sam local start-lambda` (see SAM.start_lambda)."""

    image: RuntimeImage
    port: int
    log: Path

    @property
    def url(self) -> str:
        """The endpoint, for a boto3 `lambda` client."""
        return f"http://127.0.0.1:{self.port}"

    def invoke(self, function: str, event: object = None) -> Invocation:
        """Invoke a function and wait for its answer; `exit_code` is 1 when SAM itself failed.

        `stderr` is what the server logged meanwhile.
        """
        before = self.log.stat().st_size
        request = urllib.request.Request(
            f"{self.url}/2015-03-31/functions/{function}/invocations",
            data=json.dumps(event).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with _first_use(self.image), urllib.request.urlopen(request, timeout=900) as answer:
                exit_code, body = 0, answer.read()
        except urllib.error.HTTPError as error:
            exit_code, body = 1, error.read()
        # The container's log comes by another way, and ends with a report unless it was killed.
        deadline = time.monotonic() + 1
        while True:
            logged = self.log.read_bytes()[before:].decode(errors="replace")
            if exit_code or "REPORT RequestId" in logged or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        return Invocation(function, exit_code, body.decode(), logged)


@cache
def find() -> SAM:
    """SAM.find, remembered."""
    chosen = os.environ.get("SAM_CLI")
    wanted = ".".join(map(str, MINIMUM))
    if chosen:
        path = shutil.which(chosen)
        version = _version(Path(path)) if path else None
        if path is None or version is None:
            raise SetupError(f"SAM_CLI={chosen} is no SAM CLI: unset it, or name one that works")
        if version < MINIMUM:
            raise SetupError(f"SAM_CLI={chosen} is older than {wanted}: update it, or unset it")
        return SAM(Path(path).absolute())
    on_path = shutil.which("sam")
    if on_path:
        version = _version(Path(on_path))
        if version is not None and version >= MINIMUM:
            return SAM(Path(on_path).absolute())
        say(f"{on_path} is not SAM CLI {wanted} or newer: using one of our own")
    return SAM(tools.scripts("sam") / "sam")


def _version(path: Path) -> tuple[int, ...] | None:
    """The version of the SAM CLI at `path`; None when it is none or does not run."""
    try:
        done = run(path, "--version", env=_environment(None), check=False, timeout=60)
    except SetupError:
        return None
    found = re.search(r"SAM CLI, version (\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else None


def _environment(runtime: str | None, *, local: bool = False) -> dict[str, str]:
    """What SAM sees: no telemetry, no credentials, and first on PATH the runtime's Python.

    Every AWS_ variable goes, because SAM hands those that the template declares on to the
    function. With dummy keys instead of none, SAM would ask STS for the account, and without a
    network spend 9 s an invocation on it.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env.update(
        SAM_CLI_TELEMETRY="0",
        SAM_CLI_CONTAINER_CONNECTION_TIMEOUT="120",  # 20 s by default, too few for a busy machine
        AWS_DEFAULT_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    )
    if runtime is not None:
        python = pythons.find(runtime.removeprefix("python"))
        env["PATH"] = os.pathsep.join((str(python), env.get("PATH", "")))
    if local:
        host = containers.engine().host
        if host is not None:
            env["DOCKER_HOST"] = host  # SAM knows nothing of Docker's contexts
    return env


@contextmanager
def _local_options(
    image: RuntimeImage, env_vars: Mapping[str, str] | None
) -> Iterator[tuple[str, ...]]:
    """The options that `sam local invoke` and `start-lambda` share."""
    options = [
        *("--skip-pull-image", "--region", REGION),
        *("--add-host", f"{containers.HOST}:host-gateway"),
    ]
    if image.origin == "stand-in":
        options += ["--invoke-image", image.name]
    with tempfile.TemporaryDirectory() as folder:
        if env_vars is not None:
            path = Path(folder) / "env.json"
            path.write_text(json.dumps({"Parameters": dict(env_vars)}), encoding="utf-8")
            options += ["--env-vars", str(path)]
        yield tuple(options)


_used: set[str] = set()


@contextmanager
def _first_use(image: RuntimeImage) -> Iterator[None]:
    """Let one process at a time use an image for the first time.

    SAM then adds its emulator to the image, and two that do it at once remove each other's.
    """
    if image.name in _used:
        yield
        return
    with machine.lock("emulator"):
        yield
    _used.add(image.name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_up(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SamError(f"the server of sam local did not start\n{log.read_text(errors='replace')}")
