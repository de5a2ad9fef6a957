"""`make demo`: a job's whole life, from this template to `completed`, as it really happens.

    python -m tests.tools.demo [--worker queue|durable] [--keep]

Generates a project into a scratch folder, starts its laptop stack and sends one job through.
Needs Python alone: no account, no container. Exits 1 when the job does not complete.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.helpers.baked import QUESTIONS, bake, copy_kit

PATIENCE = 60.0
STARTED = time.monotonic()


def say(what: str, detail: str = "") -> None:
    """Print one line of the timeline, with the seconds since the start."""
    print(f"{time.monotonic() - STARTED:6.2f} s  {what:<12}{detail}".rstrip(), flush=True)


def call(url: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request, print it with its answer, and return the job in the answer."""
    method = "GET" if payload is None else "POST"
    headers = {"Content-Type": "application/json", "Idempotency-Key": "demo-1"}
    request = Request(
        url,
        method=method,
        data=None if payload is None else json.dumps(payload).encode(),
        headers={} if payload is None else headers,
    )
    path = url.split("/", 3)[3]
    say("request", f"{method} /{path}")
    if payload is not None:
        say("", json.dumps(payload))
    with urlopen(request, timeout=PATIENCE) as response:
        job: dict[str, Any] = json.load(response)
        told = [
            f"{n}: {response.headers[n]}"
            for n in ("Location", "Retry-After")
            if n in response.headers
        ]
        say("answer", "  ".join([f"{response.status} {response.reason}", *told]))
    shown = {
        name: job[name] for name in ("status", "attempts", "progress", "result") if name in job
    }
    say("", json.dumps(shown))
    return job


def wait_for_url(project: Path, stack: "subprocess.Popen[bytes]") -> str:
    """Return the URL of the laptop stack once it is ready."""
    state = project / ".local" / f"stack-{stack.pid}.json"
    end = time.monotonic() + PATIENCE
    while stack.poll() is None and time.monotonic() < end:
        with suppress(FileNotFoundError):
            return str(json.loads(state.read_text("utf-8"))["url"])
        time.sleep(0.02)
    sys.exit("The laptop stack did not start; its own words are above.")


def run(project: Path, payload: dict[str, Any]) -> bool:
    """Send one job through the project's laptop stack; tell whether it completed."""
    log = (project / "laptop-stack.log").open("wb")
    stack = subprocess.Popen(
        [sys.executable, "-m", "local", "--port", "0"], cwd=project, stdout=log
    )
    try:
        url = wait_for_url(project, stack)
        say("started", f"python -m local   {url}")
        job = call(f"{url}/jobs", payload)
        deadline = time.monotonic() + PATIENCE
        while job["status"] in ("queued", "running", "waiting") and time.monotonic() < deadline:
            time.sleep(0.4)
            job = call(f"{url}/jobs/{job['job_id']}")
        for entry in job["history"]:
            say("history", f"{entry['at']}  {entry['status']:<10} attempt {entry['attempt']}")
    finally:
        stack.terminate()
        stack.wait(timeout=10)
        log.close()
    return bool(job["status"] == "completed")


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.demo", description=__doc__)
    parser.add_argument(
        "--worker", default="queue", choices=QUESTIONS["worker"], help="the variant to generate"
    )
    parser.add_argument("--keep", action="store_true", help="keep the generated project")
    options = parser.parse_args()

    scratch = Path(tempfile.mkdtemp(prefix="sam-202-demo-"))
    try:
        kit = copy_kit(scratch / "kit")
        project = bake(kit, scratch, {"worker": options.worker}, hooks=False).path
        say("generated", str(project))
        sample = json.loads((project / "events" / "create_job.json").read_text("utf-8"))
        completed = run(project, json.loads(sample["body"]))
    finally:
        if options.keep:
            say("kept", str(scratch))
        else:
            shutil.rmtree(scratch)
    say("completed" if completed else "NOT COMPLETED")
    return 0 if completed else 1


if __name__ == "__main__":
    sys.exit(main())
