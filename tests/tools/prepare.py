"""Install what the container tests need: `python -m tests.tools.prepare [RUNTIME ...]`."""

import sys

from tests.helpers.support import containers, pythons
from tests.helpers.support.machine import SetupError
from tests.helpers.support.sam import SAM


def main(runtimes: list[str]) -> int:
    """Find or install the container engine, images, Pythons and SAM CLI; return the exit status."""
    try:
        for runtime in runtimes:
            print(containers.runtime_image(runtime).describe())
            print(f"Python for sam build: {pythons.find(runtime.removeprefix('python'))}")
        print(f"SAM CLI: {SAM.find().path}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main(sys.argv[1:] or ["python3.13"]))
