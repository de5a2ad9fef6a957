"""What API Gateway answers by itself."""

import pytest

from tests import samples
from tests.contract.client import Caller


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/jobs"),
        ("POST", "//jobs"),
        ("PUT", "/jobs"),
        ("DELETE", "/jobs/0b9f3c1e-8f5b-5f0a-9d57-0c1f5e0f6a11"),
        ("GET", "/jobs/0b9f3c1e-8f5b-5f0a-9d57-0c1f5e0f6a11/cancel"),
        ("POST", "/jobs/0b9f3c1e-8f5b-5f0a-9d57-0c1f5e0f6a11/explode"),
    ],
)
def test_c40_what_is_not_in_the_document_is_404(alice: Caller, method: str, path: str) -> None:
    """A route or a method that docs/openapi.yaml does not have is not there."""
    response = alice.send(method, path)

    assert response.status_code == 404
    assert response.json() == {"message": "Not Found"}


def test_c41_pages_of_other_origins_are_kept_out(alice: Caller) -> None:
    """No answer allows a browser to show it to another site's page, unless CorsOrigin does."""
    origin = {"Origin": "https://elsewhere.example"}
    preflight = origin | {"Access-Control-Request-Method": "POST"}

    for response in (
        alice.send("OPTIONS", "/jobs", headers=preflight),
        alice.send("GET", "/jobs/1", headers=origin),
    ):
        assert not [name for name in response.headers if name.startswith("access-control-")]


def test_c42_a_stranger_is_kept_out(stranger: Caller) -> None:
    """401 or 403 without credentials, before anything is looked at."""
    for response in (stranger.post(samples.HAPPY), stranger.get("1"), stranger.retry("1")):
        assert response.status_code in {401, 403}
