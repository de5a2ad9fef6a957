"""The page at /_local, in headless Chromium."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from local.stack import Stack
from tests.helpers.browser import Browser
from tests.laptop.projects import function, http, queue, sqs, until, write_project

COMMON = """
    import os, time, json, boto3
    from datetime import datetime, timezone

    table = boto3.resource("dynamodb").Table(os.environ["JOBS_TABLE"])

    def enter(job_id, status, **values):
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        item = table.get_item(Key={"job_id": job_id}).get("Item") or {
            "job_id": job_id, "created_at": at, "history": [], "attempts": 0}
        item.update(values, status=status)
        item["history"].append({"status": status, "at": at, "attempt": item["attempts"]})
        table.put_item(Item=item)
"""
API = """
    import json, os, threading, time, boto3
    from common import enter

    jobs = boto3.resource("sqs").Queue(os.environ["JOBS_QUEUE_URL"])

    def handler(event, context):
        job = json.loads(event["body"])
        enter(job["job_id"], "queued")
        jobs.send_message(MessageBody=event["body"])
        if job.get("leak"):
            threading.Thread(target=time.sleep, args=[60], name="mail-the-customer").start()
        return {"statusCode": 202, "body": "{}"}
"""
WORKER = """
    import json, os, time
    from common import enter

    def handler(event, context):
        job = json.loads(event["Records"][0]["body"])
        enter(job["job_id"], "running", attempts=1, progress={"done": 1, "total": 3})
        while not os.path.exists(job["until"]):
            time.sleep(0.02)
        if job.get("fail"):
            enter(job["job_id"], "failed", error={"type": "Bad", "message": "<b>no</b> such site"})
            raise LookupError("<i>poison</i>")
        enter(job["job_id"], "completed")
"""
VARIABLES = {"JOBS_TABLE": {"Ref": "JobsTable"}, "JOBS_QUEUE_URL": {"Ref": "JobsQueue"}}
RESOURCES: dict[str, Any] = {
    "Globals.": {"Function": {"Environment": {"Variables": VARIABLES}, "Timeout": 60}},
    "ApiFunction": function("api.handler", http("POST /jobs")),
    "WorkerFunction": function("worker.handler", sqs("JobsQueue", BatchSize=1)),
    "JobsTable": {
        "Type": "AWS::Serverless::SimpleTable",
        "Properties": {"PrimaryKey": {"Name": "job_id", "Type": "String"}},
    },
    "JobsQueue": queue(
        VisibilityTimeout=60,
        RedrivePolicy={
            "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
            "maxReceiveCount": 1,
        },
    ),
    "Dead": queue(),
    "Orders": {"Type": "AWS::SNS::Topic"},
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("page") / "my-shop"
    write_project(folder, RESOURCES, {"api": API, "worker": WORKER, "common": COMMON})
    with Stack(folder) as running:
        yield running


def submit(stack: Stack, **job: Any) -> None:
    assert httpx.post(f"{stack.url}/jobs", json=job).status_code == 202


def status(browser: Browser, job_id: str) -> Any:
    return browser.run(f"document.querySelector('[data-job={json.dumps(job_id)}]')?.dataset.status")


def test_a_job_is_watched_until_it_completes_and_one_until_it_fails(
    stack: Stack, browser: Browser, tmp_path: Path
) -> None:
    browser.open(f"{stack.url}/_local")
    until(lambda: "No job yet." in browser.text())
    submit(stack, job_id="good", until=str(tmp_path / "go"))
    until(lambda: status(browser, "good") == "running")
    assert "1 of 3" in browser.text()
    until(lambda: "at work" in browser.text())
    (tmp_path / "go").touch()
    until(lambda: status(browser, "good") == "completed")  # by itself: the page was not reloaded

    submit(stack, job_id="bad", until=str(tmp_path / "go"), fail=True, leak=True)
    until(lambda: status(browser, "bad") == "failed")
    text = until(lambda: "mail-the-customer" in browser.text() and browser.text())
    assert "Bad: <b>no</b> such site" in text  # as text, not as markup
    assert "LookupError: <i>poison</i>" in text
    assert "ApiFunction: thread 'mail-the-customer' at " in text
    assert "frozen" in text
    assert browser.run("document.title") == "my-shop"
    labels = browser.run("[...document.querySelectorAll('.life')].map(e => e.ariaLabel).join('|')")
    assert "queued" in labels
    assert "then completed" in labels
    assert "then failed" in labels
    until(lambda: "0 waiting, 1 in flight" in browser.text())  # the poisoned message
    assert browser.errors == []


def test_a_time_of_another_day_has_its_date(stack: Stack, browser: Browser) -> None:
    waits = {"for": {"S": "approval"}, "until": {"S": "2031-05-17T12:00:00Z"}}
    item = {"job_id": {"S": "late"}, "status": {"S": "waiting"}, "waiting": {"M": waits}}
    stack.aws.client("dynamodb").put_item(TableName="JobsTable", Item=item)
    browser.open(f"{stack.url}/_local")
    until(lambda: "for approval until" in browser.text())
    assert "2031" in browser.text()


def test_messages_of_topics_are_shown(stack: Stack, browser: Browser) -> None:
    topic = stack.template.arn("Orders")
    stack.aws.client("sns").publish(TopicArn=topic, Message="<i>order</i> 17")
    browser.open(f"{stack.url}/_local")
    until(lambda: "<i>order</i> 17" in browser.text())  # as text, not as markup
    assert "Orders" in browser.text()


def test_nothing_comes_from_another_host(stack: Stack, browser: Browser) -> None:
    browser.requests.clear()
    browser.open(f"{stack.url}/_local")
    until(lambda: "as of" in browser.text())
    hosts = {urlsplit(url).netloc for url in browser.requests if not url.startswith("data:")}
    assert hosts == {stack.url.removeprefix("http://")}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "mobile"), [(1100, False), (360, True)])
def test_it_fits_a_phone_and_dark_mode(
    stack: Stack, browser: Browser, tmp_path: Path, scheme: str, width: int, mobile: bool
) -> None:
    browser.size(width, 900, mobile)
    browser.prefer(scheme)
    browser.open(f"{stack.url}/_local")
    until(lambda: "as of" in browser.text())
    browser.screenshot(tmp_path / "page.png")
    assert browser.run("document.documentElement.scrollWidth") <= width
    back, text = browser.run(
        "['backgroundColor', 'color'].map(k => getComputedStyle(document.body)[k]"
        ".match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0))"
    )
    assert (back < text) == (scheme == "dark")


def test_it_says_when_the_stack_is_gone(browser: Browser, tmp_path: Path) -> None:
    write_project(tmp_path / "p", {}, {})
    with Stack(tmp_path / "p") as stack:
        browser.open(f"{stack.url}/_local")
        until(lambda: "No function in the template." in browser.text())
    until(lambda: "the stack does not answer" in browser.text())
