"""Who is calling: the IAM principal that signed the request."""

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from jobs.settings import required
from web.problems import Problem

_SESSIONS = required("CALLER_IS") == "session"


class Forbidden(Problem):
    """The request came past the authorizer."""

    slug, status, title = "forbidden", 403, "The caller is not known"


def caller_of(event: APIGatewayProxyEventV2) -> str:
    """Return the id of the caller's role, user or Cognito identity.

    The sessions of a role are one caller: a pod, a task or an instance names its session after
    itself. With CallerIs=session each session is a caller, known by its ARN.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html

    Raises:
        Forbidden: the request is not signed.
    """
    authorizer = event.raw_event["requestContext"].get("authorizer") or {}
    iam = authorizer.get("iam") or {}
    cognito = (iam.get("cognitoIdentity") or {}).get("identityId")
    user_id, arn = iam.get("userId"), iam.get("userArn")
    if not user_id or not arn:
        raise Forbidden("Sign the request with AWS Signature Version 4.")
    if _SESSIONS:
        return str(arn)
    # AROA begins a role's id. Others, such as those of federated users, name one caller as a whole.
    role = user_id.partition(":")[0] if user_id.startswith("AROA") else user_id
    return str(cognito or role)
