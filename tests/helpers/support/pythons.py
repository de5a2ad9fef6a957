"""An interpreter of the runtime's version, with pip: what `sam build` needs on PATH."""

import hashlib
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from . import containers, machine
from .machine import CACHE, SetupError, run, say


@cache
def find(version: str) -> Path:
    """The folder to put first on PATH so that `sam build` finds a `python{version}` with pip.

    One that is there: the interpreter that runs us, or one on PATH, of pyenv or of uv. Else one
    that uv installs; at last the one out of the stand-in image, where that can be built (see
    `containers.stand_in`). Both go into .cache/. Raises SetupError, with what was tried.
    """
    tried: list[str] = []

    def usable(candidates: Iterator[Path]) -> Path | None:
        for python in candidates:
            refusal = _refusal(python, version)
            if refusal is None:
                return python.parent
            tried.append(f"{python}: {refusal}")
        return None

    found = usable(_installed(version)) or usable(_by_uv(version))
    if found is None:
        try:
            return _from_image(version)
        except SetupError as error:
            tried.append(f"out of a container image: {error}".splitlines()[0])
        raise SetupError(
            f"no Python {version} with pip for `sam build`: install one"
            f" (`uv python install {version}`, `pyenv install {version}`, or your system's"
            f" package); tried {'; '.join(tried)}"
        )
    return found


def runtime_packages(version: str) -> Path:
    """The folder with what the runtime brings beside Python: boto3, compiled by pip.

    It is installed into .cache/ at first use. Raises SetupError when it cannot be.
    """
    key = hashlib.sha256(repr((version, containers.RUNTIME_PACKAGES)).encode()).hexdigest()[:12]
    folder = CACHE / f"runtime-{key}"
    python = find(version) / f"python{version}"
    with machine.lock("runtime"):
        if not folder.exists():
            CACHE.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                fresh = Path(scratch) / "runtime"
                pip = (python, "-m", "pip", "install", "--quiet")
                run(*pip, "--target", fresh, *containers.RUNTIME_PACKAGES)
                fresh.rename(folder)
    return folder


def _installed(version: str) -> Iterator[Path]:
    """Interpreters that are there, by their names: the one that runs us, PATH, pyenv, uv, ours."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        yield Path(sys.executable)
    name = f"python{version}"
    for on_path in os.get_exec_path():
        yield from Path(on_path).absolute().glob(name)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    for folder, pattern in (
        (pyenv, f"versions/{version}*/bin/{name}"),
        (uv, f"cpython-{version}*/bin/{name}"),
        (CACHE, f"cpython-{version}*/bin/{name}"),
        (CACHE, f"*/usr/bin/{name}"),
    ):
        yield from folder.glob(pattern)


def _by_uv(version: str) -> Iterator[Path]:
    """The interpreter that uv downloads, where there is uv and its source is in reach."""
    uv = shutil.which("uv")
    if uv is None:
        return
    env = {**os.environ, "UV_HTTP_RETRIES": "0"}
    options = ("--no-config", "--no-bin", "--no-progress", "--install-dir", CACHE)
    with machine.lock("python"):
        run(uv, "python", "install", *options, version, env=env, check=False, timeout=300)
    yield from CACHE.glob(f"cpython-{version}*/bin/python{version}")


def _refusal(python: Path, version: str) -> str | None:
    """Why `sam build` could not use this interpreter, or None when it could.

    It is run to find out: a pyenv shim of a version that is not active is there and does nothing.
    """
    probe = "import sys; print('%d.%d' % sys.version_info[:2]); import pip"
    try:
        done = run(python, "-c", probe, check=False, timeout=60)
    except SetupError as error:
        return str(error)
    if done.stdout.strip() != version:
        return (done.stderr.strip() or f"it is Python {done.stdout.strip()}").splitlines()[0]
    return None if done.returncode == 0 else "it has no pip"


def _from_image(version: str) -> Path:
    """The folder of an interpreter taken out of the stand-in image and made to run on this host."""
    if sys.platform != "linux":
        raise SetupError("it runs on Linux only")
    image = containers.stand_in(f"python{version}", containers.native_architecture())
    folder = CACHE / image.name.replace("/", "-").replace(":", "-")
    with machine.lock("python"):
        if not folder.exists():
            say(f"taking Python {version} for `sam build` out of {image.name} …")
            _extract(image, version, folder)
    return folder / "usr/bin"


def _extract(image: containers.RuntimeImage, version: str, folder: Path) -> None:
    """Copy interpreter and libraries out of the image, and put a launcher in their `bin`.

    The launcher names the image's own dynamic loader and C library, which are newer than the
    host's may be, and its own path as the program's: there Python looks for its standard library,
    and `sys.executable` starts the launcher again.
    """
    CACHE.mkdir(exist_ok=True)
    docker = containers.engine()
    container = docker.run("create", image.name, "unused").stdout.strip()
    try:
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            tree = Path(scratch) / "tree"
            tree.mkdir()
            tarball = f"{tree}.tar"
            docker.run("export", "--output", tarball, container)
            run("tar", "-C", tree, "-xf", tarball, "usr/lib", f"usr/bin/python{version}")
            launcher = tree / f"usr/bin/python{version}"
            launcher.rename(tree / "usr/lib/interpreter")
            libraries = folder / f"usr/lib/{platform.machine()}-linux-gnu"
            loader = next((tree / libraries.relative_to(folder)).glob("ld-linux-*.so.*")).name
            command = shlex.join([str(libraries / loader), "--library-path", str(libraries)])
            real = shlex.quote(str(folder / "usr/lib/interpreter"))
            launcher.write_text(f'#!/bin/sh\nexec {command} --argv0 "$0" {real} "$@"\n')
            launcher.chmod(0o755)
            tree.rename(folder)
    finally:
        docker.run("rm", container)
