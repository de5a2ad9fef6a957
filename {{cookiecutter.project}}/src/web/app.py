"""The resolver of an API function: every error becomes a problem response."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from aws_lambda_powertools.logging.correlation_paths import API_GATEWAY_HTTP
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError

from jobs.exceptions import NewerSchema
from web.base_path import at_root
from web.problems import InternalError, JobNotFound, Problem, ServiceUnavailable
from web.responses import problem_response

logger = Logger()


class Api(APIGatewayHttpResolver):
    """Powertools' resolver for HTTP APIs. `handler` is the function's entry point.

    A route may raise any `Problem`. An AWS call that fails becomes 503, everything else 500; the
    log has the stack trace of both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.handler = logger.inject_lambda_context(
            self._handle, clear_state=True, correlation_id_path=API_GATEWAY_HTTP
        )
        self.exception_handler(Problem)(problem_response)
        self.exception_handler([BotoCoreError, ClientError, NewerSchema])(_unavailable)
        self.exception_handler(Exception)(_internal_error)
        self.not_found(_no_route)

    def _handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        event, base = at_root(event)
        answer = self.resolve(event, context)
        location = answer["headers"].get("Location", "")
        if location.startswith("/"):  # of this API; a route may also lead elsewhere
            answer["headers"]["Location"] = base + location
        return answer


class Router(APIGatewayHttpRouter):
    """Routes in a module of their own: `api.include_router(module.router)`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]


def _unavailable(_: Exception) -> Response[str]:
    logger.exception("DynamoDB or the engine does not answer")
    return problem_response(ServiceUnavailable("The service cannot answer now. Try again."))


def _internal_error(_: Exception) -> Response[str]:
    logger.exception("request failed")
    return problem_response(InternalError("The request could not be carried out."))


def _no_route(_: NotFoundError) -> Response[str]:
    return problem_response(JobNotFound("There is nothing at this address."))
