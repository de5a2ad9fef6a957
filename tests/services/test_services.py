"""What a service costs its author in files, and that the project's own tests hold with it."""

import re

import httpx
import pytest
from local.stack import Stack

from tests.conftest import Oven
from tests.helpers.baked import BakedProject
from tests.helpers.support.sam import SAM
from tests.laptop.projects import until
from tests.services.apply import apply, files

pytestmark = pytest.mark.proof

SERVICES = {"csv_reports": ("queue", 9), "how_to": ("queue", 6), "approval": ("durable", 6)}
"""By folder: the worker, and how many files the service may touch."""
HOW_TO = ("tests/unit/test_how_to.py", "tests/unit/test_openapi.py")
BOB = {"X-Local-Caller": "bob"}


@pytest.fixture(scope="module")
def services(baked: Oven) -> dict[str, BakedProject]:
    """The projects, with the services in them."""
    made = {name: baked.fresh(worker=worker) for name, (worker, _) in SERVICES.items()}
    for name, project in made.items():
        apply(name, project.path)
    return made


@pytest.mark.parametrize("service", SERVICES)
def test_it_touches_few_files(service: str) -> None:
    assert len(files(service)) <= SERVICES[service][1]


@pytest.mark.parametrize("service", SERVICES)
def test_its_checks_and_tests_pass(service: str, services: dict[str, BakedProject]) -> None:
    project = services[service]
    project.run("ruff", "check")
    project.run("ruff", "format", "--check")
    project.run("mypy")

    # The how-to's code is to be copied, so what it leaves alone is tested with the others.
    project.run("pytest", *(HOW_TO if service == "how_to" else ()))


@pytest.mark.parametrize("service", SERVICES)
def test_sam_takes_it(service: str, services: dict[str, BakedProject]) -> None:
    sam = SAM.find()
    sam.validate(services[service].path)
    sam.build(services[service].path)


def test_the_code_of_the_how_to_is_theirs(services: dict[str, BakedProject]) -> None:
    """Each block stands in a file that the tests above have run."""
    sources = [
        text.decode()
        for project in services.values()
        for name, text in project.files().items()
        if name.endswith((".py", ".yaml", "how-to.md"))
    ]
    page = services["how_to"].read("docs/how-to.md")
    blocks = re.findall(r"^```(?:python|yaml)\n(.+?)^```", page, re.M | re.S)

    assert len(blocks) > 10
    elsewhere = [text for text in sources if text != page]
    assert [block for block in blocks if not any(block in text for text in elsewhere)] == []


def test_a_report_is_made_fetched_and_kept_by_the_sweep(services: dict[str, BakedProject]) -> None:
    with Stack(services["csv_reports"].path) as stack, httpx.Client(base_url=stack.url) as http:
        orders = b"customer,amount\nada,30\nada,12\n"
        bucket = stack.aws.ref("ReportsBucket")
        stack.aws.client("s3").put_object(Bucket=bucket, Key="orders/2026-01.csv", Body=orders)
        location = http.post("/jobs", json={"month": "2026-01"}).headers["location"]
        until(lambda: http.get(location).json()["status"] == "completed")

        report = http.get(f"{location}/report")
        assert (report.headers["content-type"], report.text) == (
            "text/csv",
            "customer,total\r\nada,42\r\n",
        )
        swept = stack.invoke("SweepFunction", {})
        assert swept.result == {"deleted": 0}
        assert http.get(f"{location}/report").status_code == 200


def test_a_purchase_is_approved_by_its_approver_alone(services: dict[str, BakedProject]) -> None:
    with Stack(services["approval"].path) as stack, httpx.Client(base_url=stack.url) as http:
        purchase = {"item": "desk", "euros": 300, "approver": "bob"}
        callback = http.post("/jobs", json=purchase).headers["location"] + "/callback"
        until(lambda: http.get(callback, headers=BOB).status_code == httpx.codes.OK)

        question = http.get(callback, headers=BOB).json()
        assert question["question"] == {"item": "desk", "euros": 300}
        yes = {"approved": True, "by": "ada"}
        assert http.post(callback, json=yes).status_code == httpx.codes.NOT_FOUND
        assert http.post(callback, json=yes, headers=BOB).status_code == httpx.codes.OK

        job = callback.removesuffix("/callback")
        until(lambda: http.get(job).json()["status"] == "completed")
        assert http.get(job).json()["result"] == {"approved": True, "by": "bob"}
