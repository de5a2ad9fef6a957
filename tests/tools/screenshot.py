"""Take the picture of the laptop stack's page that README.md shows.

    python -m tests.tools.screenshot [FILE]

Generates a project, starts its laptop stack, sends five jobs, and waits until they are completed,
failed, running and queued. Then headless Chromium saves the page as a PNG, by default as
docs/laptop-page.png. Installs Chromium on Debian as root; elsewhere it must be on PATH.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests import KIT
from tests.helpers.baked import bake, copy_kit
from tests.helpers.browser import Browser
from tests.helpers.support.machine import SetupError
from tests.tools.demo import wait_for_url

PICTURE = KIT / "docs" / "laptop-page.png"
WIDTH = 1100
PATIENCE = 30.0
OPTIONS = ("--port", "0", "--parameter", "WorkerConcurrency=2")
"""Two workers, so that the last job waits while two others run."""
JOBS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"site": "docs.example", "pages": 12}, "completed"),
    ({"site": "old.example", "failure": "permanent"}, "failed"),
    ({"site": "news.example", "pages": 40, "seconds_per_page": 0.5}, "running"),
    ({"site": "wiki.example", "pages": 40, "seconds_per_page": 0.5}, "running"),
    ({"site": "shop.example", "pages": 3}, "queued"),
)
"""Each job's payload, and its status in the picture."""


def send(url: str, payload: Mapping[str, Any]) -> str:
    """Send a job to the API and return its id."""
    headers = {"Content-Type": "application/json"}
    body = json.dumps(payload).encode()
    with urlopen(Request(f"{url}/jobs", body, headers), timeout=PATIENCE) as answer:
        return str(json.load(answer)["job_id"])


def wait_for_status(browser: Browser, job_id: str, wanted: str) -> None:
    """Wait until the page shows a job in a status. Raises TimeoutError."""
    script = f"document.querySelector('[data-job={json.dumps(job_id)}]')?.dataset.status"
    end = time.monotonic() + PATIENCE
    while (shown := browser.run(script)) != wanted:
        if time.monotonic() > end:
            raise TimeoutError(f"after {PATIENCE:g} s job {job_id} is {shown}, not {wanted}")
        time.sleep(0.05)


def take(project: Path, browser: Browser, picture: Path) -> None:
    """Run the jobs on a project's laptop stack and save the page. Raises TimeoutError."""
    command = [sys.executable, "-m", "local", *OPTIONS]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL) as stack:
        try:
            url = wait_for_url(project, stack)
            browser.size(WIDTH, 200)
            browser.prefer("light")
            browser.open(f"{url}/_local")
            for payload, status in JOBS:
                wait_for_status(browser, send(url, payload), status)
            time.sleep(2.5)  # the page refreshes each second: let progress and queues follow
            browser.size(WIDTH, int(browser.run("document.body.scrollHeight")) + 1)
            browser.screenshot(picture)
        finally:
            stack.terminate()


def main() -> int:
    """Take the picture; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.screenshot")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE, help="the PNG to write")
    picture: Path = parser.parse_args().picture
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        project = bake(copy_kit(scratch / "kit"), scratch, {}, hooks=False).path
        try:
            browser = Browser(scratch / "profile")
        except SetupError as error:
            print(error, file=sys.stderr)
            return 1
        try:
            take(project, browser, picture)
        except TimeoutError as error:
            print(f"The page never showed the jobs: {error}.", file=sys.stderr)
            return 1
        finally:
            browser.close()
    print(f"{picture}: {picture.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
