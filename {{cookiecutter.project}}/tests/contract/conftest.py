"""Where the contract is tested, and who calls.

    pytest tests/contract                           on the laptop stack, started for the run
    API_URL=https://... pytest tests/contract       on a deployed API

What a deployed API needs besides, by its `auth`:

    iam     credentials of AWS where boto3 looks for them, and in API_OTHER_PROFILE the name of
            another principal's profile
    jwt     API_TOKEN, and API_OTHER_TOKEN with another subject

Where samples.prepare has something to fill, STACK_NAME names the deployed stack.
"""

import os
import re
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from local.stack import Stack
from tests import samples
from tests.contract.client import Caller
from tests.contract.openapi import Contract

API_URL = os.environ.get("API_URL", "").rstrip("/")
CONTRACT = Contract.load(urlsplit(API_URL).path)
PROJECT = Path(__file__).parents[2]

PARAMETERS = {"RetryBaseSeconds": "0", "MaxAttempts": "3"}
"""Of the laptop stack: what fails is tried again at once, and soon given up."""

NOT_RUN: dict[str, str] = {}
"""The requirements that this API cannot be held to, and why."""


class SignedByAws(httpx.Auth):
    """Signs requests for API Gateway with Signature Version 4."""

    requires_request_body = True

    def __init__(self, session: Session) -> None:
        found = re.search(r"\.execute-api\.([a-z0-9-]+)\.", API_URL)
        region = found[1] if found else session.get_config_variable("region")
        credentials = session.get_credentials()
        if not (region and credentials):
            pytest.exit("Set AWS credentials, and AWS_DEFAULT_REGION for a domain of your own.", 2)
        self._signer = SigV4Auth(credentials, "execute-api", region)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign one request."""
        signed = AWSRequest(
            request.method, str(request.url), {"Host": request.url.host}, request.content
        )
        self._signer.add_auth(signed)
        request.headers.update(dict(signed.headers))
        yield request


class Header(httpx.Auth):
    """Tells in a header who is calling."""

    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header to one request."""
        request.headers[self._name] = self._value
        yield request


class MakeCaller(Protocol):
    """Makes a caller of the API under test."""

    def __call__(self, auth: httpx.Auth | None) -> Caller:
        """Return one who calls as `auth` says, or without a name."""


def _bob() -> httpx.Auth | str:
    """Return how the second caller is known to the API, or why there is none."""
    if CONTRACT.auth is None:
        return "with auth: none all callers are one"
    if not API_URL:
        return Header("X-Local-Caller", "bob")
    if CONTRACT.auth == "bearer":
        token = os.environ.get("API_OTHER_TOKEN")
        return Header("Authorization", f"Bearer {token}") if token else "set API_OTHER_TOKEN"
    profile = os.environ.get("API_OTHER_PROFILE")
    return SignedByAws(Session(profile=profile)) if profile else "set API_OTHER_PROFILE"


def _alice() -> httpx.Auth | None:
    """Return how the first caller is known to the API."""
    if not API_URL:
        return Header("X-Local-Caller", "alice")
    if CONTRACT.auth == "bearer":
        token = os.environ.get("API_TOKEN")
        if not token:
            pytest.exit("Set API_TOKEN to a token that the API accepts.", 2)
        return Header("Authorization", f"Bearer {token}")
    return SignedByAws(Session()) if CONTRACT.auth == "sigv4" else None


def _deployed(logical_id: str) -> str:
    """Return what `!Ref` is in the deployed stack."""
    if not (stack := os.environ.get("STACK_NAME")):
        pytest.exit("Set STACK_NAME: samples.prepare fills resources of the deployed stack.", 2)
    resource = boto3.client("cloudformation").describe_stack_resource(
        StackName=stack, LogicalResourceId=logical_id
    )
    return str(resource["StackResourceDetail"]["PhysicalResourceId"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this API cannot be asked for, and remember the reason."""
    reasons = {}
    if isinstance(bob := _bob(), str):
        reasons["bob"] = bob
    if API_URL and "API_OTHER_CALLER" not in os.environ:
        reasons["bob_id"] = "set API_OTHER_CALLER to the other caller's id"
    if CONTRACT.auth is None:
        reasons["stranger"] = "with auth: none there are no strangers"
    if API_URL:
        reasons["unfiltered"] = "API Gateway may refuse or repair it before the function sees it"
    for item in list(items):
        needed = getattr(item, "fixturenames", ())
        if lacking := next((name for name in reasons if name in needed), None):
            NOT_RUN[item.name.partition("[")[0]] = reasons[lacking]
            items.remove(item)
            config.hook.pytest_deselected(items=[item])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out."""
    for name, reason in NOT_RUN.items():
        terminalreporter.write_line(f"not run: {name}: {reason}")


@pytest.fixture(scope="session")
def make_caller() -> Iterator[MakeCaller]:
    """The API under test."""
    if API_URL:
        samples.prepare(boto3.client, _deployed)
        yield partial(Caller, API_URL, CONTRACT, impatience=5, patience=900)
    else:
        with Stack(PROJECT, parameters=PARAMETERS, port=0) as stack:
            samples.prepare(stack.aws.client, stack.aws.ref)
            yield partial(Caller, stack.url, CONTRACT, impatience=0.05, patience=60)
        assert not stack.leaks, f"work was left over after a response: {stack.leaks}"


@pytest.fixture(scope="session")
def alice(make_caller: MakeCaller) -> Caller:
    """A caller."""
    return make_caller(auth=_alice())


@pytest.fixture(scope="session")
def bob(make_caller: MakeCaller) -> Caller:
    """Another caller."""
    auth = _bob()
    assert isinstance(auth, httpx.Auth)
    return make_caller(auth=auth)


@pytest.fixture(scope="session")
def bob_id() -> str:
    """The id by which the API knows the other caller: see src/web/caller.py."""
    return os.environ.get("API_OTHER_CALLER", "bob")


@pytest.fixture(scope="session")
def stranger(make_caller: MakeCaller) -> Caller:
    """Somebody who does not say who it is."""
    return make_caller(auth=None if API_URL else Header("X-Local-Caller", ""))


@pytest.fixture
def unfiltered(alice: Caller) -> Caller:
    """A caller whose every byte reaches the function."""
    return alice
