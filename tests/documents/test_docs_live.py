"""What the documents tell people to type does what they say, and prints what they show."""

import itertools
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import jmespath
import pytest
from botocore import xform_name

from local.stack import Stack
from tests import KIT
from tests.conftest import Oven
from tests.helpers.markdown import Document, commands
from tests.laptop.projects import until
from tests.laptop.test_lost_work import PROJECT as LOST_WORK
from tests.laptop.test_lost_work import call
from tests.tools.demo import wait_for_url


class Running:
    """A project on the laptop stack, and commands of its documents carried out on it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def request(self, path: str, body: str | None = None, **headers: str) -> dict[str, Any]:
        """The JSON in the answer to a request."""
        data = None if body is None else body.encode()
        with urlopen(Request(self.stack.url + path, data, headers), timeout=30) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def send(self, **payload: Any) -> str:
        """Have a job accepted; return its id."""
        headers = {"Content-Type": "application/json"}
        return str(self.request("/jobs", json.dumps(payload), **headers)["job_id"])

    def until(self, job_id: str, *history: str) -> None:
        """Wait until this is the history of a job."""

        def told() -> list[str]:
            return [entry["status"] for entry in self.request(f"/jobs/{job_id}")["history"]]

        until(lambda: told() == list(history))

    def aws(self, words: list[str], **values: str) -> Any:
        """Carry out an `aws` command on the emulated AWS, with placeholders replaced."""
        service, operation, *options = words[1:]
        client = self.stack.aws.client(service)
        model = client.meta.service_model.operation_model(
            client.meta.method_to_api_mapping[operation.replace("-", "_")]
        )
        names = {f"--{xform_name(name, '-')}": name for name in model.input_shape.members}
        given = dict(zip(options[::2], options[1::2], strict=True))
        arguments = {}
        for option, text in given.items():
            if option in names:
                for placeholder, value in values.items():
                    text = text.replace(placeholder, value)
                if text.startswith("phys:"):
                    text = self.stack.aws.template.resolve({"Ref": text.removeprefix("phys:")})
                plain = model.input_shape.members[names[option]].type_name == "string"
                arguments[names[option]] = text if plain else json.loads(text)
        answer = getattr(client, operation.replace("-", "_"))(**arguments)
        return jmespath.search(given["--query"], answer) if "--query" in given else answer


@pytest.fixture(scope="module")
def running(baked: Oven) -> Iterator[Running]:
    """The generated project, at work."""
    with Stack(baked().path, {"MaxAttempts": "2", "RetryBaseSeconds": "0"}) as stack:
        yield Running(stack)


def section(document: Document, heading: str) -> list[list[str]]:
    """The commands below a heading of the second level."""
    text = re.split(rf"^## {heading}$", document.text, flags=re.M)[1]
    text = re.split(r"^## ", text, flags=re.M)[0]
    return [
        command
        for block in re.findall(r"```sh\n(.+?)```", text, re.S)
        for command in commands(block)
    ]


@pytest.fixture(scope="module")
def runbook(baked: Oven) -> Document:
    """The runbook of a generated project."""
    return Document(baked().path / "docs/runbook.md")


def test_the_quick_start_is_quick(running: Running, baked: Oven) -> None:
    readme = Document(baked().path / "README.md")
    post, get = [words for words in section(readme, "Try it") if words[0] == "curl"]
    headers = dict(word.split(": ") for before, word in itertools.pairwise(post) if before == "-H")
    body = post[post.index("-d") + 1]
    job = running.request("/" + post[2].split("/", 3)[3], body, **headers)
    path = "/" + get[2].split("/", 3)[3].replace("JOB_ID", job["job_id"])
    assert running.request(path)["job_id"] == job["job_id"]
    running.until(job["job_id"], "queued", "running", "completed")


def test_the_failures_to_watch_are_as_told(running: Running) -> None:
    once, twice = ["queued", "running"], ["queued", "running", "queued", "running"]

    running.until(running.send(site="a", failure="transient"), *twice, "completed")
    running.until(running.send(site="a", failure="permanent"), *once, "failed")
    # Given up after its second attempt was released.
    running.until(running.send(site="a", failure="poison"), *twice, "queued", "failed")


def test_the_runbook_retries_a_job(running: Running, runbook: Document) -> None:
    get, send, scan, *_, send_all, _ = section(runbook, "Retrying jobs")
    job_id = running.send(site="a", failure="permanent")
    first = ["queued", "running", "failed"]
    running.until(job_id, *first)

    length = running.aws(get, JOB_ID=job_id)
    failed = running.aws(scan, **{"2026-01-31T09:00": "2000-01-01"})
    assert [job_id, length] in failed
    running.aws(send, JOB_ID=job_id, LENGTH=str(length))

    running.until(job_id, *first, *first)
    running.aws(send, JOB_ID=job_id, LENGTH=str(length))  # a repetition changes nothing
    one, all_of_them = (
        set(re.findall(r'"(\w+)":', c[c.index("--message-body") + 1])) for c in (send, send_all)
    )
    assert one == all_of_them


def test_the_runbook_stops_a_job(running: Running, runbook: Document) -> None:
    (stop,) = section(runbook, "Stopping a job that does harm")
    with running.stack.paused("WorkerFunction"):
        job_id = running.send(site="a", failure="poison")
        running.aws(stop, JOB_ID=job_id)

    running.until(job_id, "queued", "cancelled")


def test_the_queries_ask_for_what_is_logged(running: Running, runbook: Document) -> None:
    job_id = running.send(site="a", failure="poison")
    running.until(job_id, *["queued", "running"] * 2, "queued", "failed")
    queue = running.stack.aws.queue_url("DeadLetterQueue")
    running.stack.aws.client("sqs").send_message(QueueUrl=queue, MessageBody="no job")
    until(lambda: "message stays" in "\n".join(running.stack.log))
    records = [json.loads(line.partition("  ")[2]) for line in running.stack.log if "  {" in line]
    fields = {key for record in records for key in record}
    fields |= {f"error.{key}" for record in records for key in record.get("error", {})}
    (api,) = running.stack.template.resources("AWS::Serverless::HttpApi")
    fields |= json.loads(api[2]["AccessLogSettings"]["Format"]).keys()
    queries = [block.text for block in runbook.blocks if block.language == ""]

    fields |= {"@logStream", "@message"}  # of CloudWatch Logs Insights
    assert len(queries) >= 6
    for query in queries:
        asked = set(re.findall(r"@?[\w.]+", query.splitlines()[0].partition("@timestamp, ")[2]))
        asked |= set(re.findall(r"\| filter ([\w.]+) ", query))
        assert asked <= fields, query
        for message in re.findall(r'message = "(.+?)"', query):
            assert message in {record.get("message") for record in records}
        for message in re.findall(r" message like /(.+?)/", query):
            assert any(message in str(record.get("message")) for record in records), message


# ---------------------------------------------------------------- outputs


VARIES = (
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",  # ids
    r"\S+/sam-202-demo-\w+",  # a scratch folder
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+\.\d+",  # times
    r"(?<=127\.0\.0\.1:)\d+",  # ports
    r"\d+(?= ms)",
)
"""What differs from run to run."""


def shape(text: str) -> list[str]:
    """A transcript without what differs from run to run."""
    text = re.sub("|".join(VARIES), "…", text)
    return [line.strip() for line in text.splitlines() if line]


def asked_once(text: str) -> list[str]:
    """The shape of a demo with its last poll alone: how many it takes is up to the machine."""
    lines = shape(text)
    polls = [number for number, line in enumerate(lines) if " GET /jobs/" in line]
    return [*lines[: polls[0]], *lines[polls[-1] :]]


def steps(text: str) -> list[list[str]]:
    """The same, cut after each answer. What functions say in between may overtake each other."""
    found: list[list[str]] = [[]]
    for line in shape(text):
        found[-1].append(line)
        if line.startswith("{"):
            found.append([])
    return [sorted(step) for step in found]


def transcripts(document: Document) -> list[str]:
    """The blocks without a language."""
    return [block.text for block in document.blocks if block.language == ""]


def test_the_demo_prints_what_the_readme_shows() -> None:
    command = [sys.executable, "-m", "tests.tools.demo"]
    done = subprocess.run(command, cwd=KIT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (shown,) = transcripts(Document(KIT / "README.md"))
    printed = done.stdout[done.stdout.index(" s  generated") :]

    assert asked_once(shown[shown.index(" s  generated") :]) == asked_once(printed)


@pytest.mark.proof
def test_the_picture_in_the_readme_comes_from_a_real_run(tmp_path: Path) -> None:
    """`python -m tests.tools.screenshot` still finds its jobs on the page, and fits the README."""
    command = [sys.executable, "-m", "tests.tools.screenshot", str(tmp_path / "page.png")]
    done = subprocess.run(command, cwd=KIT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    taken = (tmp_path / "page.png").read_bytes()
    shown = (KIT / "docs" / "laptop-page.png").read_bytes()

    assert taken[:8] == shown[:8] == b"\x89PNG\r\n\x1a\n"
    assert taken[16:20] == shown[16:20]  # the width in pixels: big-endian, first in IHDR
    assert len(taken) < 250_000


@contextmanager
def command_line(folder: Path, *options: str) -> Iterator[tuple[str, Path]]:
    """`python -m local` on the project of docs/lost-work.md: its URL, and what it prints."""
    project = shutil.copytree(LOST_WORK, folder / "lost_work")
    template_folder = KIT / "{{cookiecutter.project}}"
    shutil.copytree(template_folder / "local", project / "local")
    screen = folder / "screen"
    command = [sys.executable, "-m", "local", "--port", "0", *options]
    with screen.open("w") as file, subprocess.Popen(command, cwd=project, stdout=file) as process:
        try:
            yield wait_for_url(project, process), screen
        finally:
            process.terminate()


@pytest.mark.parametrize("options", [[], ["--reclaim"]], ids=["frozen", "reclaimed"])
def test_lost_work_shows_what_the_laptop_stack_prints(options: list[str], tmp_path: Path) -> None:
    first, second, discarded = transcripts(Document(KIT / "docs/lost-work.md"))
    rounds: list[list[str]] = []
    with command_line(tmp_path, *options) as (url, screen):
        job_id, seen, completed = call(f"{url}/jobs", {})["job_id"], 0, False
        # A request may be over before the work that it thaws; the next one lets that go on.
        while not completed and len(rounds) < (2 if options else 20):
            if rounds:
                call(f"{url}/jobs", {})
            time.sleep(1)  # twice as long as the work takes
            job = call(f"{url}/jobs/{job_id}")
            lines = [line for line in screen.read_text().splitlines() if "Function  " in line]
            rounds.append([*lines[seen:], json.dumps(job)])
            seen, completed = len(lines), job["status"] == "completed"

    printed = "\n".join([*rounds[0], *rounds[-1]])
    assert steps(printed) == steps(discarded if options else first + second)
