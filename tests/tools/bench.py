"""`make bench`: the budgets, measured; exits 1 when one is exceeded.

Times are ratios within this run where the machine's speed would show, and medians of several
rounds taken in turn, so that a noisy neighbour disturbs both sides alike.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.baked import QUESTIONS, BakedProject, bake, calls_of_a_job, copy_kit
from tests.helpers.support.sam import SAM

ROUNDS = 9
CLIENTS = {"queue": ("dynamodb", "sqs"), "durable": ("dynamodb", "lambda")}
"""What api.py needs of boto3: a bare handler has these too."""
WRITES = {"queue": 3, "durable": None}
ARTIFACT_MB = {"queue": 3.0, "durable": None}


@dataclass(frozen=True)
class Figure:
    """One measured figure; `budget` is the most it may be, None for no budget."""

    what: str
    value: float
    budget: float | None
    unit: str = ""

    @property
    def exceeded(self) -> bool:
        """Whether the figure breaks its budget."""
        return self.budget is not None and self.value > self.budget

    def __str__(self) -> str:
        limit = "" if self.budget is None else f"budget {self.budget:g}"
        mark = "  EXCEEDED" if self.exceeded else ""
        return f"{self.what:<56}{self.value:>9.2f} {self.unit:<6}{limit}{mark}".rstrip()


def alternate(*actions: Callable[[], object]) -> list[float]:
    """Return the median duration of each action in seconds, the actions taken in turn."""
    rounds = [[seconds(action) for action in actions] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def seconds(action: Callable[[], object]) -> float:
    """Return how long `action` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def generation(kit: Path, scratch: Path) -> Figure:
    """Measure how long cookiecutter takes, beyond the start of Python with its imports."""

    def generate() -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as output:
            subprocess.run(
                [sys.executable, "-m", "cookiecutter", "--no-input", "-o", output, str(kit)],
                stdout=subprocess.DEVNULL,
                check=True,
            )

    def start() -> None:
        subprocess.run([sys.executable, "-c", "import cookiecutter.cli"], check=True)

    started, generated = alternate(start, generate)
    return Figure("generating a project, beyond Python's start", generated - started, 1.0, "s")


def measure(project: BakedProject) -> Iterator[Figure]:
    """Measure one generated project."""
    worker = project.answers["worker"]
    yield imports(project, CLIENTS[worker])
    yield artifact(project, ARTIFACT_MB[worker])
    calls = calls_of_a_job(project)
    asked = {
        name: calls["post"].get(name, 0) + calls["run"].get(name, 0)
        for name in {*calls["post"], *calls["run"]}
    }
    writes = sum(asked.get(f"{name} JobsTable", 0) for name in ("PutItem", "UpdateItem"))
    yield Figure("DynamoDB writes of the job", writes, WRITES[worker])
    yield Figure("SQS sends per job", asked.get("SendMessage", 0), 1)
    places = [str(project.path), str(project.path / "src")]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("bench_project.py"))],
        cwd=project.path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    yield from (Figure(**json.loads(line)) for line in done.stdout.splitlines())


def imports(project: BakedProject, clients: tuple[str, ...]) -> Figure:
    """Compare the import of api.py with a handler that has its two clients alone."""
    environment = os.environ | {
        "AWS_DEFAULT_REGION": "us-east-1",
        "JOBS_TABLE": "t",
        "IDEMPOTENCY_TABLE": "t",
        "JOBS_QUEUE_URL": "q",
        "WORKER_FUNCTION": "f:live",
        "EXECUTION_TIMEOUT": "60",
        "JOB_RETENTION_DAYS": "30",
        "POWERTOOLS_SERVICE_NAME": "bench",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def python(code: str) -> None:
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=project.path / "src", env=environment, check=True)

    bare_handler = f"import boto3\nfor name in {clients}: boto3.client(name)\n"
    nothing, bare, ours = alternate(
        lambda: python(""), lambda: python(bare_handler), lambda: python("import api")
    )
    ratio = (ours - nothing) / (bare - nothing)
    return Figure("import of api.py : bare handler, same clients", ratio, 1.30, "x")


def artifact(project: BakedProject, budget: float | None) -> Figure:
    """Measure what `sam build` packs for a function, zipped."""
    SAM.find().build(project.path, runtime="python3.13")
    built = project.path / ".aws-sam" / "build" / "ApiFunction"
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(built.rglob("*")):
                archive.write(path, path.relative_to(built))
        return Figure("built artifact, zipped", file.tell() / 1e6, budget, "MB")


def main() -> int:
    """Measure everything, print it, and tell whether all budgets are kept."""
    exceeded = False

    def show(figure: Figure) -> None:
        nonlocal exceeded
        exceeded |= figure.exceeded
        print(figure, flush=True)

    with tempfile.TemporaryDirectory(prefix="sam-202-bench-") as name:
        scratch = Path(name)
        kit = copy_kit(scratch / "kit")
        show(generation(kit, scratch))
        for worker in QUESTIONS["worker"]:
            print(f"\nworker: {worker}")
            for figure in measure(bake(kit, scratch / worker, {"worker": worker}, hooks=False)):
                show(figure)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
