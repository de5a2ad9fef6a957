"""A container engine, and an image that runs functions as Lambda does.

AWS's runtime images live in a public registry that closed networks do not reach. There a stand-in
is built from Debian, whose python3 is the runtime's version, and from awslambdaric, the runtime
interface client that AWS's own images contain. The engine caches it.
"""

import hashlib
import ipaddress
import os
import platform
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from . import machine
from .machine import SetupError, run, say

HOST = "host.docker.internal"
"""The host's name inside a container."""

DAEMON_LOG = Path("/var/log/dockerd-sam-202.log")
"""What a dockerd that was started here writes."""

PID_FILES = (Path("/var/run/docker.pid"), Path("/var/run/docker/containerd/containerd.pid"))
"""Where a dockerd and the containerd that it starts write their process ids."""

PULL_PATIENCE = 10.0
"""Seconds until a registry that has not answered counts as out of reach."""

SUITES = {"python3.13": "trixie", "python3.14": "forky"}
"""The Debian release whose python3 is the runtime's."""

RUNTIME_PACKAGES = ("awslambdaric==4.2.2", "boto3==1.44.8")
"""What AWS's images hold in /var/runtime: the interface client, and boto3 for functions."""

_DEBIAN_PACKAGES = "python3,python3-pip,ca-certificates"
_DEBIAN_ARCH = {"x86_64": "amd64", "arm64": "arm64"}

# The current directory, /var/task, comes first because of `-m`, as the task comes first on AWS.
_BOOTSTRAP = """\
#!/bin/sh
export PYTHONPATH="/opt/python/lib/{python}/site-packages:/opt/python:/var/runtime"
exec {python} -m awslambdaric "$_HANDLER"
"""

# As in AWS's images: the emulator in front of the bootstrap unless a Runtime API is there.
_ENTRYPOINT = """\
#!/bin/sh
export _HANDLER="$1"
if [ -z "$AWS_LAMBDA_RUNTIME_API" ]; then
  exec /usr/local/bin/aws-lambda-rie /var/runtime/bootstrap
fi
exec /var/runtime/bootstrap
"""

_IMAGE_SETTINGS = (
    "ENV LAMBDA_TASK_ROOT=/var/task",
    "ENV LAMBDA_RUNTIME_DIR=/var/runtime",
    "ENV LANG=C.UTF-8",
    "ENV TZ=:UTC",
    "WORKDIR /var/task",
    'ENTRYPOINT ["/lambda-entrypoint.sh"]',
)


@dataclass(frozen=True)
class Engine:
    """A running container engine: its command (docker or finch), and where its API listens.

    `host` is for tools that know DOCKER_HOST alone and nothing of Docker's contexts, as SAM; None
    with Finch, which SAM finds by itself.
    """

    cli: str
    host: str | None

    def run(
        self, *arguments: str, check: bool = True, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run `docker ARGUMENTS`. Raises SetupError when it fails, unless `check` is off."""
        return run(self.cli, *arguments, check=check, timeout=timeout)

    def has_image(self, name: str) -> bool:
        """Whether the engine holds the image `name`."""
        return self.run("image", "inspect", name, check=False).returncode == 0


@dataclass(frozen=True)
class RuntimeImage:
    """An image in the engine that runs functions of `runtime` on `architecture`."""

    name: str
    origin: Literal["aws", "stand-in"]
    runtime: str
    architecture: str

    def describe(self) -> str:
        """One line for the reader of a test run: which image ran the functions."""
        if self.origin == "aws":
            return f"runtime image: {self.name} (AWS's own)"
        made_of = f"Debian {SUITES[self.runtime]}, {', '.join(RUNTIME_PACKAGES)}"
        return f"runtime image: {self.name} (a stand-in for AWS's image: {made_of})"


@cache
def engine() -> Engine:
    """The container engine: the one that is there, else one installed and started here.

    Docker (or whatever DOCKER_HOST names), then Finch; on Debian and its relatives as root,
    Docker is installed and its daemon left running. Raises SetupError otherwise.
    """
    found = _answering()
    if isinstance(found, Engine):
        return found
    with machine.lock("engine"):
        found = _answering()
        return _start(found) if isinstance(found, str) else found


def _answering() -> Engine | str:
    """The engine that answers, else why none does."""
    reasons = []
    for name in ("docker", "finch"):  # in SAM's order
        cli = shutil.which(name)
        if cli is None:
            continue
        # Not `info`, which exits with 0 in some versions though no daemon answers.
        asked = run(cli, "version", check=False, timeout=60)
        if asked.returncode != 0:
            reasons += asked.stderr.strip().splitlines()[-1:] or [f"{name} version failed"]
        elif name == "finch":
            return Engine(cli, None)
        else:
            context = ("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
            host = os.environ.get("DOCKER_HOST") or run(cli, *context).stdout.strip()
            return Engine(cli, host)
    return "; ".join(reasons) or "there is no docker and no finch command"


def _start(reason: str) -> Engine:
    host = os.environ.get("DOCKER_HOST")
    if host:
        raise SetupError(
            f"no engine answers at DOCKER_HOST={host} ({reason}): start it or unset it"
        )
    if not machine.can_install():
        raise SetupError(
            f"no container engine answers ({reason}): install and start Docker or Finch"
            " (as root on Debian or Ubuntu the tests install docker.io by themselves)"
        )
    if machine.which("dockerd") is None:
        machine.apt_install("docker.io", "ca-certificates")
    if shutil.which("docker") is None:
        machine.apt_install("docker-cli")  # a package of its own since Debian 13
    if Path("/run/systemd/system").is_dir():
        run("systemctl", "start", "docker")
        found = _answering()
        if isinstance(found, str):
            raise SetupError(f"docker.service is up and does not answer: {found}")
        return found
    return start_daemon()


def start_daemon() -> Engine:
    """Start dockerd, which outlives the tests. Raises SetupError with the end of its log."""
    for pid_file in PID_FILES:
        remove_if_stale(pid_file)
    say(f"starting dockerd (it goes on running; log: {DAEMON_LOG}) …")
    with DAEMON_LOG.open("w") as output:
        daemon = subprocess.Popen(
            [machine.which("dockerd") or "dockerd"],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + 60
    while daemon.poll() is None and time.monotonic() < deadline:
        found = _answering()
        if isinstance(found, Engine):
            return found
        time.sleep(0.2)
    end = DAEMON_LOG.read_text(errors="replace").splitlines()[-5:]
    raise SetupError("\n".join([f"dockerd does not start: see {DAEMON_LOG}", *end]))


def remove_if_stale(pid_file: Path) -> None:
    """Remove the pid file of an engine that was killed: a new one refuses to start beside it."""
    daemon = {"docker": "dockerd"}.get(pid_file.stem, pid_file.stem)
    try:
        pid = int(pid_file.read_text())
        alive = Path(f"/proc/{pid}/comm").read_text().strip() == daemon
    except (OSError, ValueError):
        alive = False
    if not alive:
        pid_file.unlink(missing_ok=True)


@cache
def runtime_image(runtime: str = "python3.13", architecture: str = "x86_64") -> RuntimeImage:
    """The image to run functions in: AWS's when it is there or can be pulled, else a stand-in.

    The stand-in takes about a minute to build, once: the engine keeps it under a name that
    carries the hash of its recipe. Raises SetupError when neither can be had.
    """
    docker = engine()
    aws = _aws_image(runtime, architecture)
    if docker.has_image(aws.name):
        return aws
    refusal = pull(docker, aws.name)
    if refusal is None:
        return aws
    try:
        return stand_in(runtime, architecture)
    except SetupError as error:
        raise SetupError(
            f"{aws.name} cannot be pulled ({refusal}), and there is no stand-in for it: {error}"
        ) from error


def describe(runtime: str = "python3.13", architecture: str = "x86_64") -> str:
    """One line on the image that `runtime_image` will use; starts, pulls and builds nothing."""
    docker = _answering()
    if isinstance(docker, str):
        return f"runtime image: none yet (no container engine answers: {docker})"
    for image in (_aws_image(runtime, architecture), _stand_in(runtime, architecture)):
        if docker.has_image(image.name):
            return image.describe()
    return "runtime image: none yet (pulled from AWS, or else built, when first needed)"


def bridge_address() -> str:
    """The host's address that containers reach as `host.docker.internal`, to bind an emulator to.

    Docker's bridge, which nothing outside the host reaches; 0.0.0.0 where the bridge is not on
    this host (Docker Desktop, rootless and remote engines). Pass containers
    `--add-host host.docker.internal:host-gateway`.
    """
    subnet = "{{(index .IPAM.Config 0).Subnet}} {{(index .IPAM.Config 0).Gateway}}"
    found = engine().run("network", "inspect", "bridge", "--format", subnet, check=False)
    words = found.stdout.split()
    try:
        # Some engines name no gateway: then it is the first address of the subnet.
        gateway = words[1] if len(words) > 1 else str(ipaddress.ip_network(words[0])[1])
        with socket.socket() as probe:
            probe.bind((gateway, 0))
    except (IndexError, ValueError, OSError):
        return "0.0.0.0"
    return gateway


def _aws_image(runtime: str, architecture: str) -> RuntimeImage:
    version = runtime.removeprefix("python")
    name = f"public.ecr.aws/lambda/python:{version}-{architecture}"
    return RuntimeImage(name, "aws", runtime, architecture)


def pull(docker: Engine, name: str) -> str | None:
    """Pull an image. None when it is here, else why not, in one line.

    A registry gets PULL_PATIENCE to begin, and then ten minutes.
    """
    puller = subprocess.Popen(
        [docker.cli, "pull", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert puller.stdout is not None
    try:
        if sys.platform != "win32" and not select.select([puller.stdout], [], [], PULL_PATIENCE)[0]:
            return "the registry does not answer"
        output, _ = puller.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        return "it took more than ten minutes"
    finally:
        puller.kill()
        puller.wait()
    if puller.returncode == 0:
        return None
    return (output.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]


def _stand_in(runtime: str, architecture: str) -> RuntimeImage:
    name = stand_in_name(runtime, architecture)
    return RuntimeImage(name, "stand-in", runtime, architecture)


def stand_in_name(runtime: str, architecture: str) -> str:
    """The name of the stand-in image. Raises SetupError when there is no recipe for `runtime`.

    It carries the recipe's hash, and not in the tag: what SAM adds to an image it keeps under the
    name alone, and would go on using with another recipe's image.
    """
    if runtime not in SUITES:
        raise SetupError(f"no stand-in for {runtime}: there is one for {', '.join(SUITES)}")
    recipe = (
        SUITES[runtime],
        _DEBIAN_PACKAGES,
        *RUNTIME_PACKAGES,
        _BOOTSTRAP,
        _ENTRYPOINT,
        *_IMAGE_SETTINGS,
    )
    digest = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:12]
    return f"sam-202/{runtime}-{digest}:{architecture}"


def stand_in(runtime: str, architecture: str = "x86_64") -> RuntimeImage:
    """The stand-in for AWS's image of `runtime`, built when the engine does not have it yet.

    Raises SetupError where it cannot be built: it takes root on Debian or a relative, and a
    machine of the same architecture.
    """
    image = _stand_in(runtime, architecture)
    docker = engine()
    if docker.has_image(image.name):
        return image
    with machine.lock("image"):
        if not docker.has_image(image.name):
            _build(docker, image)
    return image


def native_architecture() -> str:
    """This machine's architecture by Lambda's name: x86_64 or arm64."""
    return {"aarch64": "arm64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())


def _build(docker: Engine, image: RuntimeImage) -> None:
    native = native_architecture()
    if image.architecture != native:
        raise SetupError(f"a stand-in for {image.architecture} cannot be built on {native}")
    if not machine.can_install():
        raise SetupError("it is built as root on Debian or Ubuntu only")
    if machine.which("debootstrap") is None:
        machine.apt_install("debootstrap", "debian-archive-keyring")
    started = time.monotonic()
    # Not in /tmp, where device files, which debootstrap makes, may not be allowed.
    with tempfile.TemporaryDirectory(
        prefix="sam-202-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder) / "root"
        _debootstrap(image, root)
        _add_runtime(image, root)
        say(f"importing {image.name} …")
        changes = [f"--change={setting}" for setting in _IMAGE_SETTINGS]
        tarball = str(root.with_name("root.tar"))
        run("tar", "-C", root, "--numeric-owner", "-cf", tarball, ".")
        docker.run("import", *changes, tarball, image.name)
    say(f"built {image.name} in {time.monotonic() - started:.0f} s")


def _debootstrap(image: RuntimeImage, root: Path) -> None:
    suite = SUITES[image.runtime]
    mirror = _debian_mirror()
    say(f"building a stand-in for AWS's {image.runtime} image: Debian {suite} from {mirror} …")
    run(
        machine.which("debootstrap") or "debootstrap",
        f"--arch={_DEBIAN_ARCH[image.architecture]}",
        "--variant=minbase",
        f"--include={_DEBIAN_PACKAGES}",
        suite,
        root,
        mirror,
        # The script for every newer release, named because debootstrap may be older than it.
        "/usr/share/debootstrap/scripts/sid",
    )
    if not (root / "usr/bin" / image.runtime).exists():
        raise SetupError(f"Debian {suite} has no {image.runtime} any more: correct SUITES")


def _debian_mirror() -> str:
    """The mirror that this machine's own package sources name, else Debian's."""
    fields = "$(REPO_URI) $(LABEL) $(COMPONENT)"
    found = run("apt-get", "indextargets", "--format", fields, "Identifier: Packages", check=False)
    for line in found.stdout.splitlines():
        uri, _, rest = line.partition(" ")
        if rest == "Debian main" and uri.startswith(("http://", "https://")):
            return uri
    return "http://deb.debian.org/debian"


def _add_runtime(image: RuntimeImage, root: Path) -> None:
    python = image.runtime
    say(f"adding {', '.join(RUNTIME_PACKAGES)} …")
    wheels = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
    machine_name = platform.machine()
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"),
        *("--target", root / "var/runtime", "--only-binary", ":all:"),
        *("--implementation", "cp", "--python-version", python.removeprefix("python")),
        *(f"--platform={wheel}_{machine_name}" for wheel in wheels),
        *RUNTIME_PACKAGES,
    )
    for path, text in (
        (root / "var/runtime/bootstrap", _BOOTSTRAP.format(python=python)),
        (root / "lambda-entrypoint.sh", _ENTRYPOINT),
    ):
        path.write_text(text)
        path.chmod(0o755)
    (root / "var/task").mkdir()
    for index in (root / "var/lib/apt/lists", root / "var/cache/apt"):
        shutil.rmtree(index)
