"""`make prove` with fewer jobs: the promises are kept as generated, and a bug is found."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import pytest

from tests import KIT
from tests.conftest import Oven
from tests.helpers.baked import BakedProject

JOBS = 60
SEEDS = {"queue": 240, "durable": 2781}
"""Without a fault case that takes much longer than a minute; durable: with each crash case."""

BUG = """

def announce(job):
    pass


sound_handler = handler


def handler(event, context):
    import os

    import boto3

    boto3.client("dynamodb").update_item(
        TableName=os.environ["JOBS_TABLE"],
        Key={"job_id": {"S": "none"}},
        UpdateExpression="SET note = :note",
        ExpressionAttributeValues={":note": {"S": "x"}},
    )
    return sound_handler(event, context)
"""
"""For src/worker.py: it announces nothing, and makes a write that points.py does not name."""

RESOURCES = """
  ReportsBucket:
    Type: AWS::S3::Bucket

  ReportsTable:
    Type: AWS::Serverless::SimpleTable

  ReportsDeadLetters:
    Type: AWS::SQS::Queue

  ReportsQueue:
    Type: AWS::SQS::Queue
    Properties:
      RedrivePolicy:
        deadLetterTargetArn: !GetAtt ReportsDeadLetters.Arn
        maxReceiveCount: 3

  ReportsFunction:
    Type: AWS::Serverless::Function
    Properties:
      Handler: reports.handler
      Policies:
        - S3ReadPolicy:
            BucketName: !Ref ReportsBucket
      Events:
        Report:
          Type: HttpApi
          Properties:
            Path: /reports/{name}
            Method: GET
        Nightly:
          Type: Schedule
          Properties:
            Schedule: rate(1 day)
"""
"""What a user adds: a function with a route and a schedule, a bucket, a table, queues."""

REPORTS = """
def handler(event, context):
    return {"statusCode": 200}
"""

UPLOAD = """

kit_handler = handler


def handler(event, context):
    import boto3

    boto3.client("s3").put_object(Bucket="reportsbucket", Key="last", Body=b"\\xff")
    return kit_handler(event, context)
"""
"""For src/api.py: each request writes to the user's bucket."""


def prove(
    project: Path | None, *arguments: object, timeout: float = 900
) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    named = [] if project is None else [str(project)]
    return subprocess.run(
        [sys.executable, "-m", "tests.tools.prove", *named, *map(str, arguments)],
        cwd=KIT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def add_resources(project: BakedProject) -> None:
    """Add what a user adds."""
    (project.path / "src" / "reports.py").write_text(REPORTS, encoding="utf-8")
    template = project.read("template.yaml")
    assert "\nResources:\n" in template
    template = template.replace("\nResources:\n", f"\nResources:{RESOURCES}\n")
    (project.path / "template.yaml").write_text(template, encoding="utf-8")
    with (project.path / "src" / "api.py").open("a", encoding="utf-8") as api:
        api.write(UPLOAD)


@pytest.fixture(scope="module")
def campaigns(baked: Oven) -> "dict[str, subprocess.CompletedProcess[str]]":
    """A campaign for each engine, side by side, since they mostly wait.

    The queue's runs on a project to which its user has added something.
    """
    projects = {worker: baked.fresh(worker=worker) for worker in SEEDS}
    add_resources(projects["queue"])
    before = {worker: project.files() for worker, project in projects.items()}
    paths = [project.path for project in projects.values()]
    arguments = (repeat("--jobs"), repeat(JOBS), repeat("--seed"), SEEDS.values())
    with ThreadPoolExecutor() as pool:
        done = dict(zip(SEEDS, pool.map(prove, paths, *arguments), strict=True))
    assert {worker: project.files() for worker, project in projects.items()} == before
    return done


@pytest.mark.proof
@pytest.mark.parametrize("worker", SEEDS)
def test_the_promises_are_kept(
    worker: str, campaigns: "dict[str, subprocess.CompletedProcess[str]]"
) -> None:
    done = campaigns[worker]
    assert done.returncode == 0, done.stdout + done.stderr
    injected, survived = re.findall(r"^faults (?:injected|survived) +(\d+)$", done.stdout, re.M)
    assert injected == survived
    assert int(injected) > JOBS
    assert re.search(rf"^ +\d+ s: \d+ of {JOBS} jobs accepted, \d+ ended", done.stderr, re.M)


@pytest.mark.proof
@pytest.mark.parametrize(("worker", "calls"), [("queue", r"[1-9]\d*"), ("durable", "0")])
def test_what_a_user_added_is_left_alone(
    worker: str, calls: str, campaigns: "dict[str, subprocess.CompletedProcess[str]]"
) -> None:
    """Functions, routes, schedules, buckets, tables and queues run as they are."""
    table = campaigns[worker].stdout
    assert re.search(f"^AWS calls to other resources, left alone +{calls}$", table, re.M)


@pytest.mark.proof
def test_a_bug_is_found(baked: Oven) -> None:
    """The exit code says so; the report says which promise, of which job, and shows its events."""
    project = baked.fresh(worker="queue").path
    with (project / "src" / "worker.py").open("a", encoding="utf-8") as worker:
        worker.write(BUG)

    done = prove(project, "--jobs", 4, "--seed", SEEDS["queue"])

    assert done.returncode == 1, done.stderr
    assert "BROKEN: every end is announced once" in done.stdout
    assert "points.py does not name: UpdateItem JobsTable note" in done.stdout
    assert "What happened to job" in done.stdout


def test_a_folder_that_is_no_project_is_refused(tmp_path: Path) -> None:
    """In one line that says what to do."""
    assert refusal(tmp_path) == (
        f"{tmp_path} is not a project of this kit: it has no template.yaml."
        " Give the folder that cookiecutter generated, or none for a fresh project."
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  WorkerFunction:", "  OtherFunction:", "has no WorkerFunction, so"),
        ("Type: SQS", "Type: SNS", "WorkerFunction has neither DurableConfig nor an SQS event"),
        ("\nResources:", "\nOthers:", "no Resources; this is not a SAM template"),
        ("\nResources:", "\n\tResources:", "template.yaml:"),
    ],
)
def test_a_template_that_tells_no_engine_is_refused(
    old: str, new: str, says: str, baked: Oven
) -> None:
    project = baked.fresh(worker="queue")
    template = project.read("template.yaml")
    assert old in template
    (project.path / "template.yaml").write_text(template.replace(old, new), encoding="utf-8")

    assert says in refusal(project.path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--jobs", "0"), "argument --jobs: 0 is not a number of jobs. Use 1 or more."),
        (("-p", "Tier"), "argument -p/--parameter: Tier has no value. Write NAME=VALUE."),
        (("-p", "Tier=1"), "no parameter Tier; there are: "),
        (("-p", "WorkerTimeout=7"), "parameter WorkerTimeout=7: must be one of"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[str, ...], says: str, baked: Oven) -> None:
    assert says in refusal(baked().path, *arguments)


def refusal(project: Path, *arguments: str) -> str:
    """Run the command, see it refuse, and return its one line."""
    done = prove(project, *arguments, timeout=60)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1].partition(": error: ")[2]
