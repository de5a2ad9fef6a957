"""The HTTP front: an API Gateway HTTP API with Lambda proxy integrations.

Imitates routes, payload format 2.0 both ways, the context of JWT and IAM authorizers, CORS, and
API Gateway's own answers. It checks no signature or token: the header X-Local-Caller names the
caller ("local" without it; an empty one stands for missing credentials).
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html
"""

import base64
import json
import re
import time
import uuid
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .sandbox import Invocation, Runner
from .server import Answer, Headers, Respond, Server
from .template import ACCOUNT, Template, is_true

CALLER_HEADER = "x-local-caller"
_EVENT_LIMIT = 6 * 1024 * 1024  # bytes, of a synchronous invocation
_TIMEOUT = 30.0  # seconds that an integration may take
_TEXT_TYPES = re.compile(r"text/.*|application/(.*\+)?(json|xml)|application/javascript")
_OWN_HEADERS = ("connection", "content-length", "date", "server", "transfer-encoding")
_EVENT_PROPERTIES = {"ApiId", "Auth", "Method", "Path", "TimeoutInMillis"}
_REFUSALS = {"iam": (403, "Forbidden"), "jwt": (401, "Unauthorized")}


@dataclass(frozen=True)
class Route:
    """One route of the API: its key ("GET /jobs/{job_id}") and its function."""

    key: str
    function: str
    authorizer: str | None  # "iam", "jwt" or None
    timeout: float = _TIMEOUT

    def match(self, method: str, path: str) -> dict[str, str] | None:
        """Return the path parameters when the route matches a request, else None."""
        own, _, pattern = self.key.partition(" ")
        if own not in ("$default", "ANY", method):
            return None
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
        pattern = re.sub(r"\\\{(\w+)\\\+\\\}", r"(?P<\1>.+)", pattern)
        found = re.fullmatch(pattern or ".*", path)
        return found and {k: unquote(v) for k, v in found.groupdict().items()}

    @property
    def rank(self) -> tuple[Any, ...]:
        """API Gateway's preference: full match, greedy, ANY, $default."""
        default, any_method = self.key == "$default", self.key.startswith("ANY")
        return default, "+}" in self.key, self.key.count("{"), any_method, -len(self.key)


def routes(template: Template) -> tuple[list[Route], list[str]]:
    """Return the API's routes, best match first, and what is not supported of them."""
    api_name, api = next(iter(template.http_apis().items()))
    found, unsupported = [], []
    for function in template.functions():
        for event_name, event in function.events.items():
            p = event.get("Properties") or {}
            if event["Type"] != "HttpApi" or p.get("ApiId", api_name) != api_name:
                continue
            name = (p.get("Auth") or {}).get("Authorizer", api["DefaultAuthorizer"])
            authorizer = {None: None, "NONE": None, "AWS_IAM": "iam"}.get(name, "jwt")
            if authorizer == "jwt" and name not in api["JwtAuthorizers"]:
                unsupported.append(f"{function.name}.{event_name} (Lambda authorizer {name})")
                authorizer = None
            method, path = str(p.get("Method", "ANY")).upper(), p.get("Path", "$default")
            key = path if path == "$default" else f"{method} {path}"
            where = f"{function.name}.{event_name}"
            known = _EVENT_PROPERTIES
            if str(p.get("PayloadFormatVersion")) == "2.0":
                known = known | {"PayloadFormatVersion"}
            unsupported += [f"{where}.{name}" for name in p if name not in known]
            limit = template.whole(p.get("TimeoutInMillis", 30_000), f"{where}.TimeoutInMillis")
            found.append(Route(key, function.name, authorizer, limit / 1000))
    return sorted(found, key=lambda route: route.rank), unsupported


def event(route: Route, method: str, target: str, headers: Message, body: bytes) -> dict[str, Any]:
    """Return a request as a payload of format 2.0. `target` is that of the request line."""
    url, now = urlsplit(target), time.time()
    path = unquote(url.path)
    names = {name.lower() for name in headers} - {"cookie", CALLER_HEADER}
    joined = {name: ",".join(headers.get_all(name, [])) for name in sorted(names)}
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": path,
        "rawQueryString": url.query,
        "headers": joined,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": joined.get("host", ""),
            "domainPrefix": "local",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": joined.get("user-agent", ""),
            },
            "requestId": uuid.uuid4().hex[:16],
            "routeKey": route.key,
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if route.authorizer:
        caller = _caller(route.authorizer, headers.get(CALLER_HEADER, "local"))
        made["requestContext"]["authorizer"] = {route.authorizer: caller}
    if cookies := "; ".join(headers.get_all("cookie", [])):
        made["cookies"] = [c.strip() for c in cookies.split(";")]
    query: dict[str, str] = {}
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    if query:
        made["queryStringParameters"] = query
    if parameters := route.match(method, url.path):
        made["pathParameters"] = parameters
    if body:
        kind = joined.get("content-type", "text/plain").partition(";")[0].strip().lower()
        try:
            made["body"] = body.decode() if _TEXT_TYPES.fullmatch(kind) else None
        except UnicodeDecodeError:
            made["body"] = None
        if made["body"] is None:
            made |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    return made


def _caller(authorizer: str, name: str) -> dict[str, Any]:
    if authorizer == "jwt":
        return {"claims": {"sub": name, "iss": "local"}, "scopes": None}
    arn = f"arn:aws:iam::{ACCOUNT}:user/{name}"
    known = {"accessKey": "local", "accountId": ACCOUNT, "callerId": name, "userId": name}
    return {**known, "userArn": arn, "cognitoIdentity": None, "principalOrgId": None}


def answer(invocation: Invocation) -> Answer:
    """Return a function's result as API Gateway answers it; 500 for an unreadable one."""
    try:
        if invocation.error:
            raise ValueError
        result = invocation.result
        if not isinstance(result, dict) or "statusCode" not in result:
            plain = result if isinstance(result, str) else invocation.payload or ""
            return 200, [("content-type", "application/json")], plain.encode()
        status, body = int(result["statusCode"]), result.get("body")
        if not 200 <= status <= 599:
            raise ValueError
        content = ("" if body is None else body).encode()
        if result.get("isBase64Encoded"):
            content = base64.b64decode(content, validate=True)
        given = {name.lower(): value for name, value in (result.get("headers") or {}).items()}
        given.setdefault("content-type", "text/plain;charset=UTF-8")
        headers = [(name, str(value)) for name, value in given.items() if name not in _OWN_HEADERS]
        headers += [("set-cookie", cookie) for cookie in result.get("cookies") or []]
    except (ValueError, TypeError, AttributeError):
        return own_answer(500, "Internal Server Error")
    return status, headers, content


def own_answer(status: int, message: str) -> Answer:
    """Return an answer of API Gateway itself."""
    return status, [("content-type", "application/json")], json.dumps({"message": message}).encode()


_TOO_LARGE = own_answer(413, "Request Entity Too Large")


def cors_headers(rules: dict[str, Any], origin: str | None, *names: str) -> Headers:
    """Return the headers of a CorsConfiguration for an origin; none for one it does not allow."""
    origins = rules.get("AllowOrigins") or []
    if not origin or not {"*", origin} & set(origins):
        return []
    found = {"allow-origin": "*" if "*" in origins else origin}
    if is_true(rules.get("AllowCredentials")):
        found["allow-credentials"] = "true"
    for name in (n for n in names if rules.get(n)):
        value = rules[name]
        header = re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()
        found[header] = ",".join(value) if isinstance(value, list) else str(value)
    return [(f"access-control-{header}", value) for header, value in found.items()]


class Front(Server):
    """The server. `local` answers below /_local; `log` gets a line per request.

    Raises OSError when the port is taken.
    """

    def __init__(
        self, port: int, template: Template, runners: dict[str, Runner],
        local: Respond, log: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        self.routes, self.unsupported = routes(template)
        rules = next(iter(template.http_apis().values())).get("CorsConfiguration") or {}
        anything = {"AllowOrigins": ["*"], "AllowMethods": ["*"], "AllowHeaders": ["*"]}
        self.cors: dict[str, Any] = anything if rules is True else rules
        self.runners, self.local, self.log = runners, local, log
        self.base_path = str(template.parameters.get("BasePath", ""))  # of an API mapping
        super().__init__("127.0.0.1", port, self.respond)

    def respond(self, method: str, target: str, headers: Message, body: bytes | None) -> Answer:
        """Answer one request."""
        if (urlsplit(target).path + "/").startswith("/_local/"):
            # A foreign web page may point its own domain to this machine (DNS rebinding).
            known = headers.get("host", "").rpartition(":")[0] in ("127.0.0.1", "localhost")
            # Without CORS, a browser sends JSON to its own page's server only.
            known &= method == "GET" or headers.get("content-type") == "application/json"
            answers = self.local if known else lambda *_: own_answer(403, "Forbidden")
            return answers(method, target, headers, body)
        if self.base_path and target.startswith(self.base_path + "/"):
            target = target.removeprefix(self.base_path)
        if body is None:
            return _TOO_LARGE
        origin = headers.get("origin")
        if self.cors and method == "OPTIONS" and headers.get("access-control-request-method"):
            names = ("AllowMethods", "AllowHeaders", "MaxAge")
            return 204, cors_headers(self.cors, origin, *names), b""
        status, found, content = self._route(method, target, headers, body)
        if self.cors:
            found = [h for h in found if not h[0].startswith("access-control-")]
            found += cors_headers(self.cors, origin, "ExposeHeaders")
        return status, [*found, ("apigw-requestid", uuid.uuid4().hex[:16])], content

    def _route(self, method: str, target: str, headers: Message, body: bytes) -> Answer:
        path, started = urlsplit(target).path, time.monotonic()
        route = next((r for r in self.routes if r.match(method, path) is not None), None)
        if route is None:
            return own_answer(404, "Not Found")
        if route.authorizer and not headers.get(CALLER_HEADER, "local").strip():
            return own_answer(*_REFUSALS[route.authorizer])
        try:
            made = event(route, method, target, headers, body)
            if len(json.dumps(made, ensure_ascii=False).encode()) > _EVENT_LIMIT:
                return _TOO_LARGE
            future = self.runners[route.function].invoke(made, f"{method} {path}")
            result = answer(future.result(route.timeout))
        except FutureTimeoutError:
            result = own_answer(503, "Service Unavailable")
        milliseconds = (time.monotonic() - started) * 1000
        self.log(route.function, f"{method} {path} → {result[0]} in {milliseconds:.0f} ms")
        return result
