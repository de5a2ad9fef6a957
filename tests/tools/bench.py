"""`make bench`: the budgets, measured; exits 1 when one is exceeded.

A budget of time is a ratio within this run, so that it holds on a slower machine too; the absolute
figure stands beside it. Times are medians of several rounds taken in turn, so that a noisy
neighbour disturbs both sides alike.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.baked import QUESTIONS, BakedProject, bake, calls_of_a_job, copy_kit
from tests.helpers.rules.sources import environment
from tests.helpers.support import pythons
from tests.helpers.support.sam import SAM

ROUNDS = 9
CLIENTS = {"queue": ("dynamodb", "sqs"), "durable": ("dynamodb", "lambda")}
"""What api.py needs of boto3: a bare handler has these too."""
WRITES = {"queue": 3, "durable": None}
COLD_INIT = {"queue": 1.20, "durable": 1.40}
SOURCES_MB = {"queue": 2.0, "durable": None}
ARTIFACT_MB = {"queue": 2.5, "durable": None}
"""With bytecode, which is about as large as the sources that it comes from."""
GENERATION = 2.2
"""Where 0.5 s were the budget, it took 0.3 s, 1.3 times cookiecutter's start."""
RUNTIME = "3.13"


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
    """Return the median CPU seconds of each action, the actions taken in turn."""
    rounds = [[seconds(action) for action in actions] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def seconds(action: Callable[[], object]) -> float:
    """Return the CPU seconds of the processes that `action` runs: waiting for others is not it."""
    start = os.times()
    action()
    end = os.times()
    return end.children_user + end.children_system - start.children_user - start.children_system


def generation(kit: Path, scratch: Path) -> Iterator[Figure]:
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
    beyond = generated - started
    yield Figure("generating a project, beyond cookiecutter's start", beyond, None, "s")
    yield Figure("  the same : cookiecutter's start", beyond / started, GENERATION, "x")


def measure(project: BakedProject, scratch: Path) -> Iterator[Figure]:
    """Measure one generated project."""
    worker = project.answers["worker"]
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        yield from cold_init(project, Path(folder))
    calls = calls_of_a_job(project)
    asked = {
        name: calls["post"].get(name, 0) + calls["run"].get(name, 0)
        for name in {*calls["post"], *calls["run"]}
    }
    writes = sum(asked.get(f"{name} JobsTable", 0) for name in ("PutItem", "UpdateItem"))
    yield Figure("DynamoDB writes of the job", writes, WRITES[worker])
    yield Figure("SQS sends per job", asked.get("SendMessage", 0), 1)
    places = [str(project.path), str(project.path / "src")]
    command = [sys.executable, str(Path(__file__).with_name("bench_project.py"))]
    if worker == "queue":  # its calls can be made again; a durable execution's cannot
        calls = calls_of_a_job(project, sample=True)
    floor = json.dumps([call for call in calls["requests"] if call[0] != "lambda"])
    env = {**os.environ, **environment(project), "FLOOR": floor}
    env |= {"PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": ""}
    stack = subprocess.Popen(command, cwd=project.path, env=env, stdout=subprocess.PIPE, text=True)
    with stack:  # figure by figure, so that a later failure does not hide the earlier ones
        yield from (Figure(**json.loads(line)) for line in stack.stdout or ())
    if stack.returncode:
        raise subprocess.CalledProcessError(stack.returncode, command)


def cold_init(project: BakedProject, scratch: Path) -> Iterator[Figure]:
    """Measure the import of api.py as a new sandbox does it: built, with and without bytecode.

    Fresh processes of the runtime's Python, CPU time, in turn with a bare handler that has the same
    two boto3 clients. As on Lambda, the code comes first on the path, then the runtime's boto3,
    which is compiled; and what is compiled in a process stays in it, as /var/task is read-only.
    """
    SAM.find().build(project.path, runtime=f"python{RUNTIME}")
    build = project.path / ".aws-sam" / "build"
    plain = scratch / "plain"
    shutil.copytree(build / "ApiFunction", plain)
    python = pythons.find(RUNTIME) / f"python{RUNTIME}"
    project.run("local.bytecode", "--python", str(python))
    compiled = build / "ApiFunction"
    worker = project.answers["worker"]
    clients = f"import boto3\nfor name in {CLIENTS[worker]}: boto3.client(name)"
    runtime = pythons.runtime_packages(RUNTIME)

    def cpu(code: str, *folders: Path) -> float:
        clocked = f"import time; start = time.process_time()\n{code}\n"
        done = subprocess.run(
            [python, "-c", f"{clocked}print(time.process_time() - start)"],
            env=environment(project) | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
            cwd=scratch,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return float(done.stdout)

    rounds = [
        [
            cpu(clients, runtime),
            cpu("import api", plain, runtime),
            cpu("import api", compiled, runtime),
        ]
        for _ in range(ROUNDS)
    ]
    as_built = statistics.median(sources / bare for bare, sources, _ in rounds)
    shipped = statistics.median(bytecode / bare for bare, _, bytecode in rounds)
    yield Figure("cold init : bare handler, sam build alone", as_built, None, "x")
    yield Figure("cold init : bare handler, make build", shipped, COLD_INIT[worker], "x")
    yield Figure("artifact of sam build alone, zipped", zipped(plain), SOURCES_MB[worker], "MB")
    yield Figure("artifact of make build, zipped", zipped(compiled), ARTIFACT_MB[worker], "MB")


def zipped(folder: Path) -> float:
    """Return the size in MB of a folder that is packed as `sam deploy` packs it."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, path.relative_to(folder))
        return file.tell() / 1e6


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
        for figure in generation(kit, scratch):
            show(figure)
        for worker in QUESTIONS["worker"]:
            print(f"\nworker: {worker}")
            project = bake(kit, scratch / worker, {"worker": worker}, hooks=False)
            for figure in measure(project, scratch):
                show(figure)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
