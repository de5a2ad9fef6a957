"""Runs a project's unit tests on its mutants; started in the project, with the kit's Python.

    python mutation_server.py SECONDS < mutants

answers each mutant with a line, the exit code of pytest. Most of what a test run imports is the
same for all mutants: it is imported once, and each mutant has a fork of this process. A fork that
takes four times as long as the unmutated code, and SECONDS more, is killed.
"""

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pytest

PACKAGE = Path("src", "jobs")
TESTS = Path("tests", "unit")
LIBRARIES = (
    "aws_lambda_powertools.event_handler",
    "aws_lambda_powertools.metrics",
    "aws_lambda_powertools.utilities.batch",
    "aws_lambda_powertools.utilities.idempotency",
    "boto3.dynamodb.types",
    "fastjsonschema",
    "jsonschema",
    "yaml",
)


def put(module: str, source: str) -> None:
    """Write a module's source. Python tells its bytecode from older by size and second alone."""
    (PACKAGE / f"{module}.py").write_text(source, encoding="utf-8")
    shutil.rmtree(PACKAGE / "__pycache__", ignore_errors=True)


def run(module: str, seconds: float, output: int) -> int:
    """Run the module's own tests and then all others, up to the first that fails.

    Return pytest's exit code, or minus the signal that ended it.
    """
    own = f"test_{module}.py"
    files = {path.name: str(path) for path in sorted(TESTS.glob("test_*.py"))}
    first = [files.pop(own)] if own in files else []
    # In two forks, since most mutants do not survive the first: the others need not be imported.
    for tests in filter(None, (first, list(files.values()))):
        if code := fork(tests, seconds, output):
            return code
    return 0


def fork(tests: list[str], seconds: float, output: int) -> int:
    """Run tests in a fork of this process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check_unmutated(module: str) -> float:
    """Run the tests on the code as it is, and return the seconds. Exits when they fail."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        if run(module, seconds=3600, output=output.fileno()) != 0:
            output.seek(0)
            sys.exit(f"{output.read()}\nThe tests fail although nothing is mutated: see above.")
    return time.monotonic() - start


def main() -> None:
    """Answer the mutants on stdin, module by module."""
    mutants = json.load(sys.stdin)
    for library in LIBRARIES:
        importlib.import_module(library)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for module, group in groupby(mutants, key=itemgetter("module")):
        source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        seconds = float(sys.argv[1]) + 4 * check_unmutated(module)
        for mutant in group:
            try:
                put(module, mutant["source"])
                code = run(module, seconds, nothing)
            finally:
                put(module, source)
            print(code, flush=True)


if __name__ == "__main__":
    main()
