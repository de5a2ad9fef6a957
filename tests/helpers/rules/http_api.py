"""The HTTP API, and who gets in."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.helpers.cloudformation import Stack, statements
from tests.helpers.documents import read_yaml
from tests.helpers.rules.rule import API, add, drop, put, rule


def operations(stack: Stack) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The API's routes: method, path, OpenAPI operation."""
    for api in stack.resources(API).values():
        for path, methods in api["Body"]["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation


@rule(
    drop("ApiFunction/Events/RetryJob"),
    put("ApiFunction/Events/GetJob/Properties/Path", "/job/{job_id}"),
)
def routes_are_those_of_the_contract(stack: Stack) -> Iterator[str]:
    contract = read_yaml(stack.project.read("docs/openapi.yaml"))
    promised = {
        (method.upper(), path)
        for path, methods in contract["paths"].items()
        for method in methods
        if method in ("get", "post", "put", "patch", "delete")
    }
    kept = {(method, path) for method, path, _ in operations(stack)}
    for method, path in sorted(promised ^ kept):
        yield f"{method} {path}"


@rule(
    put("ApiFunction/Events/GetJob/Properties/Auth", {"Authorizer": "NONE"}),
    drop("HttpApi/Auth"),
    put("HttpApi/Auth", {"EnableIamAuthorizer": True}),
)
def nobody_comes_past_the_authorizer(stack: Stack) -> Iterator[str]:
    if stack.project.answers["auth"] == "none":
        return
    (api,) = stack.resources(API).values()
    known = api["Body"].get("components", {}).get("securitySchemes", {})
    for method, path, operation in operations(stack):
        schemes = [scheme for option in operation.get("security", []) for scheme in option]
        if not schemes or not set(schemes) <= set(known):
            yield f"{method} {path}"
    for name, scheme in known.items():
        if scheme.get("x-amazon-apigateway-authtype") == "awsSigv4":
            continue
        if scheme.get("x-amazon-apigateway-authorizer", {}).get("type") != "jwt":
            yield name


@rule(
    put("HttpApi/Auth/Authorizers/Jwt/IdentitySource", "$request.headers.Authorization"),
    put("HttpApi/Auth/Authorizers/Jwt/JwtConfiguration/issuer", "https://issuer.example"),
    drop("Parameters/JwtIssuer/AllowedPattern"),
    put("Parameters/JwtAudience/Default", "jobs"),
    drop("Parameters/JwtAudience/AllowedPattern"),
    auth="jwt",
)
def tokens_are_checked_against_what_the_user_says(stack: Stack) -> Iterator[str]:
    """An issuer or audience that was left empty never gets as far as the stack."""
    if stack.project.answers["auth"] != "jwt":
        return
    for name in ("JwtIssuer", "JwtAudience"):
        about = stack.source["Parameters"][name]
        refused = not re.fullmatch(about.get("AllowedPattern", ".*"), "")
        if "Default" in about or not (refused or about.get("MinLength", 0) > 0):
            yield f"{name} may be left empty"
    (api,) = stack.source["Resources"]["HttpApi"]["Properties"]["Auth"]["Authorizers"].values()
    if api["IdentitySource"] != "$request.header.Authorization":
        yield "the token is not looked for in the header"
    if api["JwtConfiguration"] != {
        "issuer": {"Ref": "JwtIssuer"},
        "audience": {"Ref": "JwtAudience"},
    }:
        yield "issuer or audience are not the parameters"


@rule(
    add("Link", "AWS::Lambda::Url", AuthType="NONE", TargetFunctionArn={"Ref": "ApiFunction"}),
    put("AlarmTopicPolicy/PolicyDocument/Statement/0/Principal", "*"),
    put("AlarmTopicPolicy/PolicyDocument/Statement/0/Principal", {"AWS": "*"}),
    add(
        "Open",
        "AWS::Lambda::Permission",
        Action="lambda:InvokeFunction",
        FunctionName={"Ref": "ApiFunction"},
        Principal="*",
    ),
)
def nothing_else_is_public(stack: Stack) -> Iterator[str]:
    for name, kind, properties in stack.everything():
        if kind == "AWS::Lambda::Url":
            yield name
        if kind == "AWS::Lambda::Permission" and (
            properties["Principal"] != "apigateway.amazonaws.com" or "SourceArn" not in properties
        ):
            yield name
        for key in ("PolicyDocument", "AssumeRolePolicyDocument"):
            for statement in statements(properties.get(key, {"Statement": []})):
                if statement["Effect"] == "Allow" and "*" in str(statement.get("Principal", "")):
                    yield name


CORS = "x-amazon-apigateway-cors"
ORIGIN = "https://app.example.com"


@rule(
    put("Parameters/CorsOrigin/Default", "*"),
    put("HttpApi/CorsConfiguration", {"AllowOrigins": [{"Ref": "CorsOrigin"}]}),
    put("HttpApi/CorsConfiguration/Fn::If/1/AllowMethods", ["GET"]),
    put("HttpApi/CorsConfiguration/Fn::If/1/AllowHeaders", ["content-type"]),
    put("HttpApi/CorsConfiguration/Fn::If/1/ExposeHeaders", ["location"]),
    put("HttpApi/CorsConfiguration/Fn::If/1/AllowCredentials", True),
    put(
        "ApiFunction/Events/Rest",
        {"Type": "HttpApi", "Properties": {"ApiId": {"Ref": "HttpApi"}}},
    ),
)
def browsers_are_let_in_by_parameter_alone(stack: Stack) -> Iterator[str]:
    """API Gateway answers the preflight by itself, past every authorizer, as long as no route
    catches OPTIONS.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html
    """
    for api in stack.resources(API).values():
        if CORS in api["Body"]:
            yield "CORS is on by default"
    asked = {"authorization", "content-type", "idempotency-key"}
    if stack.project.answers["auth"] == "iam":
        asked |= {"x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
    for api in stack.having(CorsOrigin=ORIGIN).resources(API).values():
        cors = api["Body"][CORS]
        if cors["allowOrigins"] != [ORIGIN]:
            yield f"other origins are let in: {cors['allowOrigins']}"
        if not {method for method, _, _ in operations(stack)} <= set(cors.get("allowMethods", [])):
            yield "methods are missing"
        if asked != set(cors.get("allowHeaders", [])):
            yield f"request headers are not those that clients send: {cors.get('allowHeaders')}"
        if not {"location", "retry-after", "idempotent-replayed"} <= set(
            cors.get("exposeHeaders", [])
        ):
            yield "response headers are missing"
        if cors.get("allowCredentials"):
            yield "cookies are let in"
    for method, path, _ in operations(stack):
        if method not in ("GET", "POST"):
            yield f"{method} {path} catches the preflight"


@rule(
    drop("HttpApi/FailOnWarnings"),
    drop("HttpApi/AccessLogSettings"),
    put("HttpApi/AccessLogSettings/Format", '{"status":$context.status,}'),
    put("HttpApi/AccessLogSettings/Format", "$context.status\n"),
)
def the_api_tells_what_goes_wrong(stack: Stack) -> Iterator[str]:
    """Without FailOnWarnings an authorizer that cannot be made is a warning, and its routes open.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html
    """
    for name, api in stack.resources(API).items():
        if api.get("FailOnWarnings") is not True:
            yield f"{name} swallows warnings"
    for name, stage in stack.resources("AWS::ApiGatewayV2::Stage").items():
        line = stage.get("AccessLogSettings", {}).get("Format", "")
        filled = re.sub(r"\$context\.[a-zA-Z.]+", "x", line)
        try:
            logged = json.loads(filled)
        except ValueError:
            logged = {}
        if "\n" in line or not {"requestId", "status"} <= set(logged):
            yield f"{name} logs no JSON lines"
