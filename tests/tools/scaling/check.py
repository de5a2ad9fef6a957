"""Hold the model against the laptop stack.

    python -m tests.tools.scaling.check [JOBS] [WORKERS] [SECONDS]

What a job costs beside its work is the emulator's own doing: it is measured first, with jobs that
do nothing, and given to the model. Exits 1 when model and stack differ by more than a quarter.
"""

import json
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import Request, urlopen

from tests.helpers.baked import bake, copy_kit
from tests.tools.scaling.model import simulate

TOLERANCE = 1.25


def run(stack: Any, jobs: int, seconds: float) -> list[float]:
    """Let jobs gather and then run; return when each ended, counted from the moment they could."""
    body = json.dumps({"site": "docs.example", "pages": 1, "seconds_per_page": seconds}).encode()
    post = Request(f"{stack.url}/jobs", body, {"Content-Type": "application/json"})
    with stack.paused("WorkerFunction"):
        ids = {json.load(urlopen(post))["job_id"] for _ in range(jobs)}
    begin = time.time()
    ended: list[dict[str, Any]] = []
    while len(ended) < jobs:
        time.sleep(0.5)
        ended = [j for j in stack.jobs() if j["job_id"] in ids and j["status"] == "completed"]
    return sorted(datetime.fromisoformat(job["finished_at"]).timestamp() - begin for job in ended)


def main(jobs: int = 60, workers: int = 4, seconds: float = 1.0) -> int:
    """Print what the stack needed and what the model says."""
    with tempfile.TemporaryDirectory(prefix="sam-202-scaling-") as folder:
        kit = copy_kit(Path(folder, "kit"))
        project = bake(kit, Path(folder, "out"), {"worker": "queue"}).path
        sys.path.insert(0, str(project))
        from local.stack import Stack

        with Stack(project, {"WorkerConcurrency": str(workers)}, concurrency=workers) as stack:
            run(stack, workers, 0)  # warms the sandboxes
            aside = run(stack, jobs, 0)[-1] * workers / jobs
            ends = run(stack, jobs, seconds)
    model = simulate([0.0] * jobs, lambda: seconds + aside, workers)
    print(f"{jobs} jobs of {seconds:g} s, {workers} workers; {aside:.3f} s a job beside its work")
    ratios = []
    for what, measured, told in (
        ("median job ended after", median(ends), model.percentile(50)),
        ("all jobs ended after", ends[-1], model.percentile(100)),
    ):
        ratios.append(measured / told)
        print(f"{what:<24}{measured:>7.2f} s   model {told:>7.2f} s   {ratios[-1]:.2f} x")
    return int(not all(1 / TOLERANCE <= ratio <= TOLERANCE for ratio in ratios))


if __name__ == "__main__":
    sys.exit(
        main(*(kind(text) for kind, text in zip((int, int, float), sys.argv[1:], strict=False)))
    )
