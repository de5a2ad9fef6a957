"""The reference to a job that its execution is given; the payload stays in the store."""

import json
from dataclasses import dataclass


class NotAReference(ValueError):
    """A message holds no reference to a job."""


@dataclass(frozen=True)
class Reference:
    """Points at a job."""

    job_id: str
    retry_of: int | None = None
    """The length of the job's history when its retry was requested; None: not a retry."""

    def dumps(self) -> str:
        """Return the reference as JSON, the same bytes every time."""
        members: dict[str, str | int] = {"job_id": self.job_id}
        if self.retry_of is not None:
            members["retry_of"] = self.retry_of
        return json.dumps(members)

    @classmethod
    def loads(cls, text: str) -> "Reference":
        """Read a reference.

        Raises:
            NotAReference: the text is something else.
        """
        try:
            members = json.loads(text)
        except ValueError:
            raise NotAReference("the message is not JSON") from None
        if not isinstance(members, dict) or not isinstance(members.get("job_id"), str):
            raise NotAReference("the message has no job_id")
        if type(members.get("retry_of", 0)) is not int:
            raise NotAReference("the message's retry_of is not a whole number")
        return cls(members["job_id"], members.get("retry_of"))
