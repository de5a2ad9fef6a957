"""Who is calling: the subject of the token that the authorizer has verified."""

from typing import ClassVar

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from web.problems import Problem


class Unauthenticated(Problem):
    """The request came past the authorizer."""

    slug, status, title = "unauthenticated", 401, "The caller is not known"
    headers: ClassVar = {"WWW-Authenticate": "Bearer"}


class Forbidden(Problem):
    """The token is valid and names nobody."""

    slug, status, title = "forbidden", 403, "The token names no caller"


def caller_of(event: APIGatewayProxyEventV2) -> str:
    """Return the token's `sub`, or `client:` and the `client_id` of a machine's token.

    Raises:
        Unauthenticated: there is no token.
        Forbidden: the token has neither claim.
    """
    authorizer = event.raw_event["requestContext"].get("authorizer") or {}
    token = authorizer.get("jwt")
    if not token:
        raise Unauthenticated("Send a bearer token.")
    claims = token.get("claims") or {}
    for claim, prefix in (("sub", ""), ("client_id", "client:")):
        name = claims.get(claim)
        if isinstance(name, str) and name.strip():
            return prefix + name
    raise Forbidden("The token has neither sub nor client_id.")
