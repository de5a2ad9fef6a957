"""Problem details as in RFC 9457: one class for each type of problem."""

from typing import Any, ClassVar


class Problem(Exception):
    """An error response. Its `type` is stable, because clients switch on it."""

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members = members

    def document(self) -> dict[str, Any]:
        """Return the body of an `application/problem+json` response."""
        return {
            "type": f"urn:problem:{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }


class InvalidJson(Problem):
    """The body cannot be read as one unambiguous JSON text."""

    slug, status, title = "invalid-json", 400, "The body is not valid JSON"


class NotAnObject(Problem):
    """The body is JSON, but not an object."""

    slug, status, title = "not-an-object", 400, "The body is not a JSON object"


class InvalidIdempotencyKey(Problem):
    """The Idempotency-Key header holds no key."""

    slug, status, title = "invalid-idempotency-key", 400, "The Idempotency-Key is not usable"


class JobNotFound(Problem):
    """The job does not exist, or belongs to another caller."""

    slug, status, title = "job-not-found", 404, "There is no such job"


class JobFinished(Problem):
    """A finished job cannot be cancelled."""

    slug, status, title = "job-finished", 409, "The job has already finished"


class JobNotRetryable(Problem):
    """The job is neither failed nor cancelled, or has been retried too often."""

    slug, status, title = "job-not-retryable", 409, "The job cannot be retried"


class PayloadTooLarge(Problem):
    """The body is larger than the payload of a job may be."""

    slug, status, title = "payload-too-large", 413, "The body is too large"


class UnsupportedMediaType(Problem):
    """The body is not declared as JSON."""

    slug, status, title = "unsupported-media-type", 415, "The media type is not supported"


class InvalidPayload(Problem):
    """The body breaks payload.schema.json; `errors` names the fields."""

    slug, status, title = "invalid-payload", 422, "The body breaks the schema"


class IdempotencyKeyReused(Problem):
    """The key was used before, for another payload."""

    slug, status, title = "idempotency-key-reused", 422, "The Idempotency-Key was used before"


class InternalError(Problem):
    """A defect of the service; the log has the stack trace."""

    slug, status, title = "internal-error", 500, "Something went wrong"


class IntakePaused(Problem):
    """The operator accepts no jobs for a while; nothing has been stored."""

    slug, status, title = "intake-paused", 503, "No jobs are accepted now"
    headers: ClassVar = {"Retry-After": "60"}


class ServiceUnavailable(Problem):
    """DynamoDB or the engine does not answer; the request may have taken effect."""

    slug, status, title = "service-unavailable", 503, "The service is not available"
    headers: ClassVar = {"Retry-After": "5"}
