"""Questions and commands to the stack that runs: resources, topics, invoke, expire."""

import json
import signal
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.laptop.commands import Project, Running, one_line
from tests.laptop.projects import function, until

ONCE = """
    def handler(event, context):
        if event.get("fail"):
            raise LookupError("no such report")
        return event
"""
EXPECTED = {"source": ["shop"], "detail-type": ["Order"], "detail": {"size": [{"prefix": "X"}]}}
SCHEDULE = {"Type": "Schedule", "Properties": {"Schedule": "rate(1 day)"}}
SCHEDULE_V2 = {"Type": "ScheduleV2", "Properties": {"ScheduleExpression": "rate(1 day)"}}
GIVEN = {"Type": "ScheduleV2", "Properties": {"ScheduleExpression": "x", "Input": '{"day": 1}'}}
RULE = {"Type": "EventBridgeRule", "Properties": {"Pattern": EXPECTED}}
RESOURCES: dict[str, Any] = {
    "NightlyFunction": function("once.handler", SCHEDULE),
    "NewerFunction": function("once.handler", SCHEDULE_V2),
    "GivenFunction": function("once.handler", GIVEN),
    "OrderFunction": function("once.handler", RULE),
    "TargetFunction": function("once.handler"),
    "Rule": {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "EventPattern": EXPECTED,
            "Targets": [{"Id": "1", "Arn": {"Fn::GetAtt": ["TargetFunction", "Arn"]}}],
        },
    },
    "Orders": {"Type": "AWS::SNS::Topic"},
    "Pictures": {"Type": "AWS::S3::Bucket"},
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    project = Project(tmp_path_factory.mktemp("inspect") / "shop")
    (project.path / "src" / "once.py").write_text(textwrap.dedent(ONCE), encoding="utf-8")
    path = project.path / "template.yaml"
    template = json.loads(path.read_text(encoding="utf-8"))
    template["Resources"] |= RESOURCES
    path.write_text(json.dumps(template), encoding="utf-8")
    started = project.start()
    yield started
    started.end(signal.SIGINT)


def test_the_screen_names_the_resources_and_the_endpoint(running: Running) -> None:
    screen = "\n".join(running.screen)
    assert "The emulated AWS holds JobsTable, JobsQueue, Dead, Orders, pictures." in screen
    url = running.queue("JobsQueue").partition("/000000000000/")[0]
    assert f" aws --region us-east-1 --endpoint-url {url} sqs list-queues" in screen


def test_resources(running: Running) -> None:
    listed = [line.split() for line in running.project.run("resources").stdout.splitlines()]
    assert ["Pictures", "AWS::S3::Bucket", "pictures"] in listed
    assert ["NightlyFunction", "AWS::Serverless::Function", "NightlyFunction"] in listed
    found = {r["id"]: r for r in json.loads(running.project.run("resources", "--json").stdout)}
    assert found["JobsQueue"]["url"] == running.queue("JobsQueue")
    assert found["Orders"]["arn"] == "arn:aws:sns:us-east-1:000000000000:Orders"


def test_a_reader_may_stop_early(running: Running) -> None:
    """As `head` does."""
    command = running.project.command("resources")
    with subprocess.Popen(
        command, cwd=running.project.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


def test_messages_of_topics_are_listed(running: Running) -> None:
    topic = "arn:aws:sns:us-east-1:000000000000:Orders"
    running.aws("sns").publish(TopicArn=topic, Subject="new", Message="order 17")
    assert running.project.run("topics").stdout == "Orders  new  order 17\n1 message\n"
    shown = httpx.get(f"{running.url}/_local/state").json()["topics"]
    assert shown == [{"topic": "Orders", "subject": "new", "message": "order 17"}]


def invoke(running: Running, name: str) -> Any:
    return json.loads(running.project.run("invoke", name).stdout)


def test_a_schedule_gives_an_event(running: Running) -> None:
    event = invoke(running, "NightlyFunction")
    assert (event["detail-type"], event["source"]) == ("Scheduled Event", "aws.events")
    assert event["detail"] == {}
    (rule,) = event["resources"]
    assert rule.startswith("arn:aws:events:us-east-1:000000000000:rule/")
    newer = invoke(running, "NewerFunction")
    assert (newer["source"], newer["detail"]) == ("aws.scheduler", "{}")
    assert invoke(running, "GivenFunction") == {"day": 1}


@pytest.mark.parametrize("name", ["OrderFunction", "TargetFunction"])
def test_a_rule_gives_an_event_that_it_matches(running: Running, name: str) -> None:
    event = invoke(running, name)
    assert (event["detail-type"], event["source"]) == ("Order", "shop")
    assert event["detail"] == {"size": "X"}


def test_an_event_is_read_from_a_file(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_text('{"fail": true}', encoding="utf-8")
    failed = running.project.run("invoke", "TargetFunction", "-e", str(file))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "local: TargetFunction failed: LookupError: no such report\n"
    file.write_text("[]", encoding="utf-8")
    assert running.project.run("invoke", "OrderFunction", "-e", str(file)).returncode == 1
    file.write_text("{", encoding="utf-8")
    refused = one_line(running.project.run("invoke", "OrderFunction", "-e", str(file)))
    assert f"{file} is not JSON: " in refused


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["invoke", "Nobody"], "no function Nobody; there are: ApiFunction, WorkerFunction, "),
        (["invoke", "ApiFunction"], "ApiFunction has no schedule and no rule. Give an event: -e"),
        (["invoke", "ApiFunction", "-e", "none.json"], "none.json: No such file or directory"),
        (["expire", "x"], "no durable function: only its jobs have deadlines"),
    ],
)
def test_what_cannot_be_done_is_one_line(running: Running, arguments: list[str], line: str) -> None:
    assert line in one_line(running.project.run(*arguments))


def test_other_web_pages_cannot_give_commands(running: Running) -> None:
    """They send a form or text without asking; JSON needs a permission that nobody gives."""
    url = f"{running.url}/_local/invoke/GivenFunction"
    assert httpx.post(url, content="[]").status_code == 403
    assert httpx.post(url, json=[]).json() == {"result": {"day": 1}}
    assert httpx.post(f"{running.url}/_local/jobs", json=[]).status_code == 404


def test_the_notes_of_calls_begin_anew(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "calls.jsonl"
    notes.write_text("of another run\n", encoding="utf-8")
    monkeypatch.setenv("LOCAL_CALLS", str(notes))
    run({"F": function("app.handler")}, {"app": "def handler(event, context): pass"})
    assert notes.read_text(encoding="utf-8") == ""


DURABLE = """
    from aws_durable_execution_sdk_python import durable_execution
    from aws_durable_execution_sdk_python.config import Duration, WaitForCallbackConfig

    @durable_execution
    def handler(event, context):
        if not event["callback"]:
            context.wait(Duration.from_seconds(86_400), name="pause")
        config = WaitForCallbackConfig(timeout=Duration.from_seconds(3 * 86_400))
        try:
            return context.wait_for_callback(lambda *_: None, name="approval", config=config)
        except Exception as error:
            return f"nobody answered: {error}"
"""


@pytest.mark.parametrize(
    ("callback", "expired", "status"),
    [(True, "callback", "SUCCEEDED"), (False, "execution", "TIMED_OUT")],
)
def test_deadlines_are_brought_about(
    run: Callable[..., Any], callback: bool, expired: str, status: str
) -> None:
    config = {"ExecutionTimeout": 31_000_000, "RetentionPeriodInDays": 1}
    properties = {"DurableConfig": config, "AutoPublishAlias": "live"}
    stack = run({"F": function("app.handler", **properties)}, {"app": DURABLE})
    answer = stack.invoke_once("F", {"callback": callback})
    assert "DurableExecutionArn" in answer["result"]
    (execution,) = stack.durable.executions.values()

    def waiting() -> bool:
        operations = stack.durable.state()[0]["operations"]
        return {"Callback", "Wait"} & {o["type"] for o in operations} != set()

    until(waiting)
    until(lambda: all(s.state == "frozen" for s in stack.runners["F"].sandboxes))
    assert stack.expire(execution.name) == {"expired": [expired]}
    until(lambda: execution.status == status)
