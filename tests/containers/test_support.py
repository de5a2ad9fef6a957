"""The suite's own footing: a probe through all of it, and what it says when a part is missing."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.helpers.support import containers, machine, pythons, sam
from tests.helpers.support.machine import SetupError
from tests.helpers.support.sam import SAM, SamError

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

TEMPLATE = """\
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Resources:
  ProbeFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: src/
      Handler: probe.handler
      Runtime: {runtime}
      Timeout: 30
      Environment:
        Variables:
          QUEUE_URL: ""
          AWS_ENDPOINT_URL: ""
"""

HANDLER = """\
import os
import sys

import boto3
from markupsafe import _speedups

count = 0


def handler(event, context):
    global count
    count += 1
    if "fail" in event:
        raise ValueError(event["fail"])
    boto3.client("sqs").send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=event["say"])
    print("sent", event["say"])
    return {
        "python": "python%d.%d" % sys.version_info[:2],
        "extension": _speedups.__file__,
        "boto3": boto3.__file__,
        "region": os.environ["AWS_REGION"],
        "count": count,
    }
"""


@dataclass(frozen=True)
class Probe:
    """A built project of one function, and the queue that it writes to."""

    project: Path
    image: containers.RuntimeImage
    env_vars: dict[str, str]
    endpoint: str
    queue_url: str

    def received(self) -> list[str]:
        """Takes all messages off the queue."""
        sqs = boto3.client(
            "sqs",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        bodies = []
        while found := sqs.receive_message(QueueUrl=self.queue_url).get("Messages"):
            for message in found:
                bodies.append(message["Body"])
                sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return bodies


def write_project(project: Path, runtime: str = "python3.13") -> Path:
    """The probe's source."""
    (project / "src").mkdir(parents=True)
    (project / "template.yaml").write_text(TEMPLATE.format(runtime=runtime))
    (project / "src/probe.py").write_text(HANDLER)
    # A package with an extension module: it imports under the Python that it was built for alone.
    (project / "src/requirements.txt").write_text("markupsafe==3.0.3\n")
    return project


@pytest.fixture(scope="module")
def emulator() -> Iterator[tuple[str, int]]:
    """An emulated AWS that containers reach; its address and port."""
    server = ThreadedMotoServer(ip_address=containers.bridge_address(), port=0)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture(scope="module", params=["python3.13", "python3.14"])
def probe(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    emulator: tuple[str, int],
) -> Probe:
    runtime: str = request.param
    project = write_project(tmp_path_factory.mktemp("probe") / "project", runtime)
    SAM.find().build(project, runtime)
    host, port = emulator
    endpoint = f"http://{host}:{port}"
    sqs = boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    url = sqs.create_queue(QueueName=runtime.replace(".", "-"))["QueueUrl"]
    seen_from_container = f"http://{containers.HOST}:{port}"
    return Probe(
        project,
        containers.runtime_image(runtime),
        {
            "QUEUE_URL": url.replace(endpoint, seen_from_container),
            "AWS_ENDPOINT_URL": seen_from_container,
        },
        endpoint,
        url,
    )


@pytest.mark.container
class TestProbe:
    def test_a_function_runs_under_its_runtime_and_reaches_the_emulator(self, probe: Probe) -> None:
        done = SAM.find().local_invoke(
            probe.project,
            "ProbeFunction",
            {"say": "こんにちは"},
            env_vars=probe.env_vars,
            image=probe.image,
        )
        assert done.exit_code == 0, done
        assert done.payload["python"] == probe.image.runtime, done
        assert done.payload["extension"].startswith("/var/task/"), done
        assert done.payload["boto3"].startswith("/var/"), done
        assert done.payload["region"] == "us-east-1", done
        assert "sent こんにちは" in done.stderr, done
        assert probe.received() == ["こんにちは"]

    def test_an_event_file(self, probe: Probe, tmp_path: Path) -> None:
        event = tmp_path / "event.json"
        event.write_text(json.dumps({"say": "from a file"}))
        done = SAM.find().local_invoke(
            probe.project, "ProbeFunction", event, env_vars=probe.env_vars, image=probe.image
        )
        assert done.exit_code == 0, done
        assert probe.received() == ["from a file"]

    def test_a_function_that_raises(self, probe: Probe) -> None:
        done = SAM.find().local_invoke(
            probe.project, "ProbeFunction", {"fail": "on purpose"}, image=probe.image
        )
        assert done.payload["errorType"] == "ValueError", done
        assert done.payload["errorMessage"] == "on purpose", done
        assert "Traceback" in str(done)

    def test_a_function_that_the_template_lacks(self, probe: Probe) -> None:
        done = SAM.find().local_invoke(probe.project, "NoSuchFunction", {}, image=probe.image)
        assert done.exit_code != 0
        assert done.payload is None
        assert "NoSuchFunction not found" in str(done)

    def test_a_warm_container(self, probe: Probe) -> None:
        with SAM.find().start_lambda(
            probe.project, env_vars=probe.env_vars, image=probe.image
        ) as started:
            first, second = (
                started.invoke("ProbeFunction", {"say": word}) for word in ("one", "two")
            )
            failed = started.invoke("ProbeFunction", {"fail": "on purpose"})
            unknown = started.invoke("NoSuchFunction", {})
        assert (first.exit_code, second.exit_code) == (0, 0), second
        assert (first.payload["count"], second.payload["count"]) == (1, 2), second
        assert sorted(probe.received()) == ["one", "two"]
        assert "sent two" in second.stderr
        assert "sent one" not in second.stderr
        assert failed.payload["errorMessage"] == "on purpose", failed
        assert unknown.exit_code == 1, unknown


def script(path: Path, body: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with nothing on it but what a test puts into the folder that is all of PATH.

    What the finders remember of the real one is forgotten, before and after.
    """
    finders = (containers.engine, containers.runtime_image, pythons.find, sam.find)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    for name in ("DOCKER_HOST", "SAM_CLI", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    for finder in finders:
        finder.cache_clear()
    yield folder
    for finder in finders:
        finder.cache_clear()


def refusal(error: pytest.ExceptionInfo[SetupError]) -> str:
    """The first line of what a user is told."""
    return str(error.value).splitlines()[0]


class TestEngine:
    @pytest.mark.usefixtures("bare")
    def test_none_and_none_can_be_installed(self) -> None:
        with pytest.raises(SetupError) as error:
            containers.engine()
        assert "there is no docker and no finch command" in refusal(error)
        assert "install and start Docker or Finch" in refusal(error)

    def test_one_that_may_not_be_used(self, bare: Path) -> None:
        script(bare / "docker", "echo 'permission denied on docker.sock' >&2; exit 1")
        with pytest.raises(SetupError) as error:
            containers.engine()
        assert "permission denied on docker.sock" in refusal(error)

    def test_a_docker_host_that_does_not_answer_is_never_replaced(
        self, bare: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed = bare / "installed"
        script(bare / "docker", "echo 'connection refused' >&2; exit 1")
        script(bare / "apt-get", f"echo > {installed}")
        monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
        with pytest.raises(SetupError) as error:
            containers.engine()
        assert "DOCKER_HOST=tcp://192.0.2.1:2375 (connection refused)" in refusal(error)
        assert not installed.exists()

    def test_a_context_becomes_the_docker_host_that_sam_understands(self, bare: Path) -> None:
        script(bare / "docker", 'test "$1" = version || echo unix:///home/me/docker.sock')
        assert containers.engine().host == "unix:///home/me/docker.sock"

    def test_a_daemon_that_dies_at_once(
        self, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(containers, "DAEMON_LOG", tmp_path / "log")
        monkeypatch.setattr(containers, "PID_FILES", ())
        monkeypatch.setattr(containers, "say", print)  # captured: it is not about this machine
        script(bare / "dockerd", "echo 'iptables: not permitted'; exit 1")
        with pytest.raises(SetupError, match=r"does not start.*\n.*iptables: not permitted"):
            containers.start_daemon()

    def test_the_pid_file_of_a_dead_daemon_goes_and_that_of_a_live_one_stays(
        self, tmp_path: Path
    ) -> None:
        pid_file = tmp_path / "docker.pid"
        for stale in ("", "not a number", str(os.getpid())):
            pid_file.write_text(stale)
            containers.remove_if_stale(pid_file)
            assert not pid_file.exists(), stale
        daemon = script(tmp_path / "dockerd", "echo up; read line")
        pipe = subprocess.PIPE
        with subprocess.Popen([daemon], stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            pid_file.write_text(str(process.pid))
            containers.remove_if_stale(pid_file)
            assert pid_file.exists()


class TestImage:
    @pytest.mark.usefixtures("bare")
    def test_the_header_of_a_test_run_starts_nothing(self) -> None:
        assert "none yet (no container engine answers: there is no docker" in containers.describe()

    def test_a_registry_out_of_reach(self, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        docker = containers.Engine(str(bare / "docker"), None)
        script(bare / "docker", "echo 'lookup public.ecr.aws: no such host' >&2; exit 1")
        assert containers.pull(docker, "image") == "lookup public.ecr.aws: no such host"
        monkeypatch.setattr(containers, "PULL_PATIENCE", 0.01)
        script(bare / "docker", "exec /bin/sleep 600")
        assert containers.pull(docker, "image") == "the registry does not answer"

    def test_a_registry_in_reach(self, bare: Path) -> None:
        script(bare / "docker", 'echo "$1 $2"')
        assert containers.pull(containers.Engine(str(bare / "docker"), None), "image") is None

    def test_awss_image_is_preferred(self, bare: Path) -> None:
        script(bare / "docker", 'test "$1" != pull')
        image = containers.runtime_image("python3.13")
        assert image.name == "public.ecr.aws/lambda/python:3.13-x86_64"
        assert (
            image.describe() == containers.describe() == f"runtime image: {image.name} (AWS's own)"
        )

    def test_neither_image_can_be_had(self, bare: Path) -> None:
        works = "version|context) ;;"
        script(bare / "docker", f'case "$1" in {works} *) echo no such host >&2; exit 1;; esac')
        with pytest.raises(SetupError) as error:
            containers.runtime_image("python3.13")
        assert "python:3.13-x86_64 cannot be pulled (no such host)" in refusal(error)
        assert "as root on Debian or Ubuntu only" in refusal(error)

    def test_another_recipe_makes_another_image(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = containers.stand_in_name("python3.13", "x86_64")
        monkeypatch.setattr(containers, "RUNTIME_PACKAGES", ("awslambdaric==4.2.1",))
        after = containers.stand_in_name("python3.13", "x86_64")
        # In the repository's name, not the tag: SAM caches by it.
        assert before.partition(":")[0] != after.partition(":")[0]


class TestPython:
    @pytest.mark.usefixtures("bare")
    def test_none(self) -> None:
        with pytest.raises(SetupError) as error:
            pythons.find("3.99")
        assert "no Python 3.99 with pip for `sam build`" in refusal(error)
        assert "`uv python install 3.99`" in refusal(error)

    def test_a_shim_of_a_version_that_is_not_active_does_not_count(
        self, bare: Path, tmp_path: Path
    ) -> None:
        shim = script(
            bare / "python3.99", "echo 'pyenv: python3.99: command not found' >&2; exit 127"
        )
        with pytest.raises(SetupError) as error:
            pythons.find("3.99")
        assert f"{shim}: pyenv: python3.99: command not found" in refusal(error)
        real = script(tmp_path / "pyenv/versions/3.99.1/bin/python3.99", "echo 3.99")
        assert pythons.find("3.99") == real.parent

    def test_uv_installs_one(
        self, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pythons, "CACHE", tmp_path / "cache")
        made = tmp_path / "cache/cpython-3.99.0-linux/bin/python3.99"
        script(tmp_path / "source", "echo 3.99")
        install = f"--install-dir {tmp_path / 'cache'} 3.99"
        copy = f"/bin/mkdir -p {made.parent}; /bin/cp {tmp_path / 'source'} {made}"
        script(bare / "uv", f'case "$*" in "python install "*"{install}") {copy};; esac')
        assert pythons.find("3.99") == made.parent

    def test_one_without_pip_does_not_count(self, bare: Path) -> None:
        python = script(bare / "python3.99", "echo 3.99; exit 1")
        with pytest.raises(SetupError) as error:
            pythons.find("3.99")
        assert f"{python}: it has no pip" in refusal(error)

    def test_one_of_another_version_does_not_count(self, bare: Path) -> None:
        (bare / "python3.99").symlink_to(sys.executable)
        with pytest.raises(SetupError) as error:
            pythons.find("3.99")
        assert f"it is Python {PYTHON}" in refusal(error)


class TestSAM:
    @pytest.mark.parametrize(
        ("version", "told"),
        [("", "is no SAM CLI"), ("SAM CLI, version 1.99.0", "is older than 1.170.0")],
    )
    def test_the_chosen_one_is_never_replaced(
        self, bare: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
    ) -> None:
        chosen = script(bare / "old-sam", f"echo '{version}'")
        script(bare / "sam", "echo 'SAM CLI, version 1.170.0'")
        monkeypatch.setenv("SAM_CLI", str(chosen))
        with pytest.raises(SetupError) as error:
            SAM.find()
        assert f"SAM_CLI={chosen} {told}" in refusal(error)

    def test_the_chosen_one_is_not_there(self, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SAM_CLI", str(bare / "sam"))
        with pytest.raises(SetupError) as error:
            SAM.find()
        assert "unset it, or name one that works" in refusal(error)

    def test_one_on_path_that_is_new_enough(self, bare: Path) -> None:
        path = script(bare / "sam", "echo 'SAM CLI, version 1.171.0'")
        assert SAM.find().path == path

    @pytest.mark.container
    def test_one_on_path_that_is_too_old_gives_way_to_one_of_our_own(self, bare: Path) -> None:
        script(bare / "sam", "echo 'SAM CLI, version 1.99.0'")
        found = SAM.find()
        assert found.path.is_relative_to(machine.CACHE)
        assert "version 1.170.0" in found.run("--version", cwd=bare).stdout

    @pytest.mark.container
    def test_a_template_that_does_not_lint(self, tmp_path: Path) -> None:
        project = write_project(tmp_path / "project")
        template = project / "template.yaml"
        template.write_text(template.read_text().replace("Timeout: 30", "Timeout: soon"))
        with pytest.raises(SamError, match=r"(?s)^sam validate --lint .*'soon'"):
            SAM.find().validate(project)

    def test_it_sees_no_account(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ROLE_ARN"):
            monkeypatch.setenv(name, "real")
        path = script(tmp_path / "sam", "env")
        seen = SAM(path).run("whatever", cwd=tmp_path).stdout
        assert "real" not in seen
        assert "SAM_CLI_TELEMETRY=0" in seen.splitlines()
        assert f"AWS_SHARED_CREDENTIALS_FILE={os.devnull}" in seen.splitlines()

    def test_a_server_that_overhears_its_end_is_told_again(self) -> None:
        deaf = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)))
print("up", flush=True)
while True:
    signal.pause()
"""
        with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as server:
            assert server.stdout
            server.stdout.readline()
            sam.end(server, patience=0.5)
        assert server.returncode == 7


class TestMachine:
    def test_a_lock_keeps_others_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)  # gettempdir() looks but once
        attempt = """\
            import fcntl, sys
            from tests.helpers.support import machine
            fcntl.flock = lambda file, how, real=fcntl.flock: real(file, how | fcntl.LOCK_NB)
            with machine.lock("probe"):
                print("mine")
        """
        other = [sys.executable, "-c", textwrap.dedent(attempt)]
        with machine.lock("probe"):
            held = subprocess.run(other, capture_output=True, text=True, check=False)
        assert "BlockingIOError" in held.stderr
        assert subprocess.run(other, capture_output=True, text=True, check=True).stdout == "mine\n"

    def test_a_command_that_fails_says_what_it_wrote(self) -> None:
        with pytest.raises(SetupError, match=r"^sh -c .* failed with exit code 3\nout\nerr$"):
            machine.run("sh", "-c", "echo out; echo err >&2; exit 3")

    def test_a_command_that_is_not_there(self) -> None:
        with pytest.raises(SetupError, match=r"^cannot run no-such-command: "):
            machine.run("no-such-command")

    def test_a_command_that_does_not_end(self) -> None:
        with pytest.raises(SetupError, match=r"^sleep 600 did not end within 0\.1 s$"):
            machine.run("sleep", "600", timeout=0.1)
