"""The HTTP front behaves as an API Gateway HTTP API does."""

import base64
import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.stack import Stack
from tests.laptop.projects import function, write_project
from tests.laptop.projects import http as route

API = """
    import json, os, time

    def echo(event, context):
        return {"statusCode": 200, "body": json.dumps(event)}

    def answer(event, context):
        return json.loads(event["body"])

    def fail(event, context):
        how = event["queryStringParameters"]["how"]
        if how == "raise":
            raise LookupError("secret")
        if how == "exit":
            os._exit(1)
        if how == "huge":
            return "x" * 7_000_000
        time.sleep(5)
"""
CORS = {
    "AllowOrigins": ["https://app.example"],
    "AllowMethods": ["GET", "POST"],
    "AllowHeaders": ["content-type", "idempotency-key"],
    "ExposeHeaders": ["location"],
    "MaxAge": 600,
}
AUTH = {
    "EnableIamAuthorizer": True,
    "DefaultAuthorizer": "AWS_IAM",
    "Authorizers": {
        "Token": {"JwtConfiguration": {"issuer": "https://i", "audience": ["a"]}},
        "Custom": {"FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:X"},
    },
}


def api(name: str, *events: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return function(f"api.{name}", *events, Timeout=2, **properties)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    resources = {
        "Api": {
            "Type": "AWS::Serverless::HttpApi",
            "Properties": {"CorsConfiguration": CORS, "Auth": AUTH},
        },
        "Echo": api(
            "echo",
            route("GET /things/{id}"),
            route("POST /things"),
            route("ANY /any"),
            route("GET /things/special"),
            route("GET /files/{path+}"),
            route("GET /open", Auth={"Authorizer": "NONE"}),
            route("GET /token", Auth={"Authorizer": "Token"}),
            route("GET /custom", Auth={"Authorizer": "Custom"}, RouteSettings={}),
        ),
        "Answer": api("answer", route("POST /answer")),
        "Fail": api("fail", route("GET /fail"), route("GET /late", TimeoutInMillis=200)),
    }
    folder = tmp_path_factory.mktemp("http") / "project"
    write_project(folder, resources, {"api": API})
    with Stack(folder) as running:
        yield running


@pytest.fixture
def client(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url) as made:
        yield made


def raw(stack: Stack, head: str, body: bytes = b"") -> bytes:
    """Send bytes as they are and return the answer."""
    with socket.create_connection(("127.0.0.1", int(stack.url.rpartition(":")[2]))) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def test_the_event_has_the_documented_shape(client: httpx.Client) -> None:
    event = client.get("/things/7", headers={"User-Agent": "tests"}).json()
    assert event.keys() == {
        "version",
        "routeKey",
        "rawPath",
        "rawQueryString",
        "headers",
        "requestContext",
        "pathParameters",
        "isBase64Encoded",
    }
    assert (event["version"], event["routeKey"]) == ("2.0", "GET /things/{id}")
    assert (event["rawPath"], event["rawQueryString"]) == ("/things/7", "")
    assert event["pathParameters"] == {"id": "7"}
    assert event["isBase64Encoded"] is False
    context = event["requestContext"]
    assert context["http"] == {
        "method": "GET",
        "path": "/things/7",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "tests",
    }
    assert context.keys() >= {
        "accountId",
        "apiId",
        "domainName",
        "domainPrefix",
        "requestId",
        "stage",
        "time",
        "timeEpoch",
    }
    assert (context["routeKey"], context["stage"]) == ("GET /things/{id}", "$default")


def test_headers_are_lower_cased_and_joined(stack: Stack) -> None:
    answer = raw(
        stack,
        "GET /any HTTP/1.1\nHost: x\nConnection: close\nX-Two: a\nx-two: b\nX-Local-Caller: al",
    )
    headers = json.loads(answer.partition(b"\r\n\r\n")[2])["headers"]
    assert headers["x-two"] == "a,b"
    assert all(name == name.lower() for name in headers)
    assert "x-local-caller" not in headers


def test_cookies_come_apart_and_leave_the_headers(client: httpx.Client) -> None:
    event = client.get("/any", headers={"Cookie": "a=1; b=2"}).json()
    assert event["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in event["headers"]


def test_query_values_are_joined(client: httpx.Client) -> None:
    event = client.get("/any?a=1&a=2&b=x%20y&c=").json()
    assert event["rawQueryString"] == "a=1&a=2&b=x%20y&c="
    assert event["queryStringParameters"] == {"a": "1,2", "b": "x y", "c": ""}


def test_the_path_is_decoded(client: httpx.Client) -> None:
    event = client.get("/things/a%2Fb%20c").json()
    assert event["pathParameters"] == {"id": "a/b c"}
    assert event["rawPath"] == "/things/a/b c"


@pytest.mark.parametrize(
    ("content_type", "body", "encoded"),
    [
        ("application/json", b'{"a": "\xc3\xa9"}', False),
        ("application/problem+json; charset=utf-8", b"{}", False),
        ("text/csv", b"a,b", False),
        ("application/octet-stream", b"\x00\xff", True),
        ("application/x-www-form-urlencoded", b"a=1", True),
        ("application/json", b"\xff", True),
    ],
)
def test_bodies(client: httpx.Client, content_type: str, body: bytes, encoded: bool) -> None:
    event = client.post("/things", content=body, headers={"Content-Type": content_type}).json()
    assert event["isBase64Encoded"] is encoded
    found = event["body"]
    assert (base64.b64decode(found) if encoded else found.encode()) == body


def test_a_chunked_body_arrives_whole(client: httpx.Client) -> None:
    pieces = iter([b'{"a":', b" 1}"])
    headers = {"Content-Type": "application/json"}
    assert client.post("/things", content=pieces, headers=headers).json()["body"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("Content-Length: some", b""),
        ("Content-Length: -1", b""),
        ("Content-Length: 3", b"{}"),
        ("Transfer-Encoding: chunked", b"some\r\n"),
    ],
)
def test_a_body_without_its_length_is_refused(stack: Stack, header: str, body: bytes) -> None:
    answer = raw(stack, f"POST /things HTTP/1.1\n{header}", body)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/things/special", "GET /things/special"),
        ("/things/other", "GET /things/{id}"),
        ("/files/a/b/c", "GET /files/{path+}"),
    ],
)
def test_the_most_specific_route_wins(client: httpx.Client, path: str, key: str) -> None:
    assert client.get(path).json()["routeKey"] == key


def test_any_takes_every_method(client: httpx.Client) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        assert client.request(method, "/any").json()["requestContext"]["http"]["method"] == method
    assert client.head("/any").content == b""


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/things/", "/things/1/2", "/things/1/", "/thingsx"]
)
def test_no_route_is_404(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"message": "Not Found"})


def test_another_method_is_404(client: httpx.Client) -> None:
    assert client.delete("/things/1").status_code == 404


@pytest.mark.parametrize(
    ("result", "status", "body", "content_type"),
    [
        ({"message": "hi"}, 200, '{"message": "hi"}', "application/json"),
        ("hello", 200, "hello", "application/json"),
        ([1, 2], 200, "[1, 2]", "application/json"),
        (None, 200, "null", "application/json"),
        ({"statusCode": 201}, 201, "", "text/plain;charset=UTF-8"),
        ({"statusCode": "202", "body": "é"}, 202, "é", "text/plain;charset=UTF-8"),
        (
            {"statusCode": 200, "body": "aGk=", "isBase64Encoded": True},
            200,
            "hi",
            "text/plain;charset=UTF-8",
        ),
        (
            {
                "statusCode": 200,
                "body": "{}",
                "headers": {"Content-Type": "application/problem+json"},
            },
            200,
            "{}",
            "application/problem+json",
        ),
        ({"statusCode": "many"}, 500, '{"message": "Internal Server Error"}', "application/json"),
        (
            {"statusCode": 200, "body": {"a": 1}},
            500,
            '{"message": "Internal Server Error"}',
            "application/json",
        ),
        (
            {"statusCode": 200, "body": "!", "isBase64Encoded": True},
            500,
            '{"message": "Internal Server Error"}',
            "application/json",
        ),
        (
            {"statusCode": 200, "headers": 7},
            500,
            '{"message": "Internal Server Error"}',
            "application/json",
        ),
    ],
)
def test_results_become_answers(
    client: httpx.Client, result: Any, status: int, body: str, content_type: str
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/answer", content=json.dumps(result), headers=headers)
    assert (answer.status_code, answer.text) == (status, body)
    assert answer.headers["content-type"] == content_type


def test_headers_and_cookies_of_a_result(client: httpx.Client) -> None:
    result = {
        "statusCode": 202,
        "headers": {"Location": "/jobs/1", "Retry-After": 2, "Content-Length": 999},
        "cookies": ["a=1; Path=/", "b=2"],
        "body": "",
    }
    answer = client.post("/answer", json=result)
    assert (answer.headers["location"], answer.headers["retry-after"]) == ("/jobs/1", "2")
    assert answer.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2"]
    assert answer.headers["content-length"] == "0"


@pytest.mark.parametrize("how", ["raise", "exit", "huge", "sleep"])
def test_a_failing_function_is_500_without_details(client: httpx.Client, how: str) -> None:
    answer = client.get("/fail", params={"how": how})
    assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


def test_a_late_function_is_503(client: httpx.Client) -> None:
    answer = client.get("/late?how=sleep")
    assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})


def test_the_integration_waits_30_seconds_at_most(stack: Stack) -> None:
    waits = {r.key: r.timeout for r in stack.routes}
    assert (waits["GET /fail"], waits["GET /late"]) == (30.0, 0.2)


def test_what_lambda_would_not_take_is_413(client: httpx.Client) -> None:
    for content in ("x" * 6_300_000, b"\xff" * 4_800_000):  # the second one grows in base64
        answer = client.post("/things", content=content)
        assert (answer.status_code, answer.json()["message"]) == (413, "Request Entity Too Large")
    assert client.post("/things", content=b"\xff" * 4_600_000).status_code != 413


def test_a_body_above_10_mb_is_413(stack: Stack, client: httpx.Client) -> None:
    connection = http.client.HTTPConnection(stack.url.removeprefix("http://"))
    connection.putrequest("POST", "/things")
    connection.putheader("Content-Length", str(10 * 1024 * 1024 + 1))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)) == (413, {"message": "Request Entity Too Large"})
    chunks = (b"x" * 65536 for _ in range(200))
    with contextlib.suppress(httpx.WriteError):  # it may close while the rest is being sent
        assert client.post("/things", content=chunks).status_code == 413


def test_a_connection_is_kept(stack: Stack) -> None:
    connection = http.client.HTTPConnection(stack.url.removeprefix("http://"))
    connection.connect()
    first = connection.sock
    for path in ("/any", "/nothing", "/any"):
        connection.request("GET", path)
        connection.getresponse().read()
    assert connection.sock is first


def test_the_caller_is_chosen_by_a_header(client: httpx.Client) -> None:
    def context(path: str, **headers: str) -> Any:
        return client.get(path, headers=headers).json()["requestContext"].get("authorizer")

    iam = context("/any", **{"X-Local-Caller": "alice"})["iam"]
    assert iam["userArn"] == "arn:aws:iam::000000000000:user/alice"
    assert iam.keys() == {
        "accessKey",
        "accountId",
        "callerId",
        "cognitoIdentity",
        "principalOrgId",
        "userArn",
        "userId",
    }
    assert context("/any")["iam"]["userArn"].endswith("user/local")
    jwt = context("/token", **{"X-Local-Caller": "bob"})["jwt"]
    assert (jwt["claims"]["sub"], jwt["scopes"]) == ("bob", None)
    assert context("/open") is None


def test_missing_credentials_are_refused(client: httpx.Client) -> None:
    nobody = {"X-Local-Caller": ""}
    forbidden = client.get("/any", headers=nobody)
    unauthorized = client.get("/token", headers=nobody)
    assert (forbidden.status_code, forbidden.json()) == (403, {"message": "Forbidden"})
    assert (unauthorized.status_code, unauthorized.json()) == (401, {"message": "Unauthorized"})
    assert client.get("/open", headers=nobody).status_code == 200


def test_a_lambda_authorizer_is_named_as_unsupported(stack: Stack) -> None:
    assert "Echo.Event7 (Lambda authorizer Custom)" in stack.unsupported


def test_settings_of_a_route_are_named_as_unsupported(stack: Stack) -> None:
    assert "Echo.Event7.RouteSettings" in stack.unsupported


def test_preflight_is_answered_without_a_route(client: httpx.Client) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = client.options("/things", headers=asked)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["access-control-allow-methods"] == "GET,POST"
    assert answer.headers["access-control-allow-headers"] == "content-type,idempotency-key"
    assert answer.headers["access-control-max-age"] == "600"
    other = client.options("/things", headers={**asked, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers


def test_cors_headers_are_the_configured_ones(client: httpx.Client) -> None:
    result = {"statusCode": 200, "headers": {"Access-Control-Allow-Origin": "*"}, "body": ""}
    answer = client.post("/answer", json=result, headers={"Origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["access-control-expose-headers"] == "location"
    plain = client.post("/answer", json=result)
    assert "access-control-allow-origin" not in plain.headers
