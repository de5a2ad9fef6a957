"""Who is calling: the subject of the token that the authorizer has verified."""

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from web.problems import Unauthenticated


def caller_of(event: APIGatewayProxyEventV2) -> str:
    """Return the token's `sub` claim.

    Raises:
        Unauthenticated: the request came past the authorizer, or its token has no subject.
    """
    jwt = event.raw_event.get("requestContext", {}).get("authorizer", {}).get("jwt", {})
    if not jwt.get("claims", {}).get("sub"):
        raise Unauthenticated("Send a bearer token with a subject.")
    return str(jwt["claims"]["sub"])
