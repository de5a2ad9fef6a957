"""`python -m local.bytecode`: compiles what `sam build` made, so that functions start faster.

`sam build` packs sources only, and a function cannot write to /var/task: without bytecode in the
package, Lambda compiles every imported module again at each cold start.

AWS recommends packages without `__pycache__`, because bytecode of another machine might not fit
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-pycache
Bytecode depends on CPython's minor version, not on the architecture or the operating system
https://docs.python.org/3/library/marshal.html so a Python of exactly that version compiles here.
SAM's archive sets the time of every file to 1980. Hence the invalidation mode `unchecked-hash`,
which compares no times https://docs.python.org/3/reference/import.html#pyc-invalidation
The sources stay: tracebacks show them, and a Python of another version falls back to them.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .template import Template, TemplateError

PROJECT = Path(__file__).resolve().parent.parent
TASK = "/var/task"
"""Where Lambda unpacks the code: the path that tracebacks name."""


class BytecodeError(Exception):
    """The build cannot be compiled; one line that says why and what to do."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 2 when the build cannot be compiled."""
    parser = argparse.ArgumentParser(
        prog="python -m local.bytecode",
        description="Compile what `sam build` made, with the Python version of the functions.",
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter (default: look for it)")
    python = parser.parse_args(argv).python
    try:
        compile_build(PROJECT / ".aws-sam" / "build", python)
    except (BytecodeError, TemplateError) as error:
        print(f"local.bytecode: {error}", file=sys.stderr)
        return 2
    return 0


def compile_build(build: Path, python: str | None = None) -> None:
    """Add bytecode to every function that `sam build` left in `build`.

    Raises:
        BytecodeError: nothing was built, or no Python of the functions' version was found.
    """
    if not (build / "template.yaml").exists():
        raise BytecodeError(f"nothing is built in {build}. Run `sam build` first.")
    for function in Template.load(build / "template.yaml").functions():
        version = function.runtime.removeprefix("python")
        chosen = _checked(python, version) if python else find_python(version)
        # One process per function, with one worker: the order in which strings are shared shows in
        # the bytes, and SAM uploads a function again whose bytes differ.
        command = [chosen, "-I", "-m", "compileall", "-q", "-f", str(function.code)]
        command += ["--invalidation-mode", "unchecked-hash", "-s", str(function.code), "-p", TASK]
        done = subprocess.run(command, check=False)
        left = ", but for the modules named above" if done.returncode else ""
        print(f"{function.name}: compiled by {chosen}{left}")


def find_python(version: str) -> str:
    """Return the path of a CPython `version` ("3.13"): this one, on PATH, pyenv's or uv's.

    Raises:
        BytecodeError: there is none.
    """
    for candidate in _candidates(version):
        if _tag(candidate) == _wanted(version):
            return candidate
    raise BytecodeError(
        f"the functions run on Python {version}, which is not on this machine. Install it, for"
        f" example by `uv python install {version}`, or deploy without bytecode:"
        " `sam build && sam deploy`."
    )


def _candidates(version: str) -> Iterator[str]:
    name = f"python{version}"
    yield sys.executable
    yield from (os.path.join(folder, name) for folder in os.get_exec_path())
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/{name}")))
    try:
        uv = _run("uv", "python", "find", version)
    except OSError:
        return
    yield uv.stdout.strip()


def _checked(python: str, version: str) -> str:
    tag = _tag(python)
    if tag != _wanted(version):
        found = f"is {tag}" if tag else "does not run"
        raise BytecodeError(
            f"{python} {found}, and the functions run on Python {version}. Lambda would ignore its"
            f" bytecode. Name a released CPython {version}, or leave --python out."
        )
    return python


def _wanted(version: str) -> str:
    """Return what `_tag` says of the right interpreter."""
    return f"cpython-{version.replace('.', '')} final"  # alphas and betas have other bytecode


def _tag(python: str) -> str:
    """Return whose bytecode an interpreter writes; "" for one that does not run."""
    probe = "import sys; print(sys.implementation.cache_tag, sys.version_info.releaselevel)"
    try:
        done = _run(python, "-I", "-c", probe)
    except OSError:
        return ""
    return done.stdout.strip()


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
