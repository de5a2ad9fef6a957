"""`python -m local.bytecode`: compiles what `sam build` made, so that functions start faster.

`sam build` packs sources only, and a function cannot write to /var/task. Without bytecode in the
package, Lambda compiles every imported module at each cold start.

AWS advises against `__pycache__` in packages, because bytecode of another Python does not fit:
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-pycache
So CPython of exactly the functions' version compiles here. SAM dates all files in its archive to
1980, hence the invalidation mode `unchecked-hash`, which compares no times:
https://docs.python.org/3/reference/import.html#pyc-invalidation
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .template import Template, TemplateError

PROJECT = Path(__file__).resolve().parent.parent
TASK = "/var/task"  # the path of the code on Lambda, which tracebacks name


class BytecodeError(Exception):
    """The build cannot be compiled; the message is one line."""


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
    """Add bytecode to every function in `build`. Raises `BytecodeError`."""
    if not (build / "template.yaml").exists():
        raise BytecodeError(f"nothing is built in {build}. Run `sam build` first.")
    for function in Template.load(build / "template.yaml").functions():
        version = function.runtime.removeprefix("python")
        chosen = _checked(python, version) if python else find_python(version)
        # With several workers the bytes vary, and SAM uploads a function whose bytes differ.
        command = [chosen, "-I", "-m", "compileall", "-q", "-f", str(function.code)]
        command += ["--invalidation-mode", "unchecked-hash", "-s", str(function.code), "-p", TASK]
        done = subprocess.run(command, check=False)
        left = ", but for the modules named above" if done.returncode else ""
        print(f"{function.name}: compiled by {chosen}{left}")


def find_python(version: str) -> str:
    """Return the path of a CPython `version` ("3.13"): this one, on PATH, pyenv's or uv's."""
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
    yield _output("uv", "python", "find", version)


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
    return f"cpython-{version.replace('.', '')} final"  # alphas and betas have other bytecode


def _tag(python: str) -> str:
    """Return the kind of an interpreter's bytecode; "" for one that does not run."""
    probe = "import sys; print(sys.implementation.cache_tag, sys.version_info.releaselevel)"
    return _output(python, "-I", "-c", probe)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
