"""Who is calling: the IAM principal that signed the request."""

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from web.problems import Unauthenticated


def caller_of(event: APIGatewayProxyEventV2) -> str:
    """Return the caller's ARN. A role's ARN holds its session: each session is a caller.

    Raises:
        Unauthenticated: the request came past the authorizer.
    """
    iam = event.raw_event.get("requestContext", {}).get("authorizer", {}).get("iam", {})
    if not iam.get("userArn"):
        raise Unauthenticated("Sign the request with AWS Signature Version 4.")
    return str(iam["userArn"])
