"""How work.py asks: who may answer a job that waits, and what they see."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_durable_execution_sdk_python.config import WaitForCallbackConfig

MAX_QUESTION = 10_000
"""Bytes, as JSON; the question is a part of the job's item."""


@dataclass(frozen=True)
class AnswerConfig(WaitForCallbackConfig):
    """How `context.wait_for_callback` waits: the SDK's settings, who may answer, and what is asked.

    Without `callers` and `claims`, the job's owner may answer.
    """

    callers: tuple[str, ...] = ()
    """Callers by their ids, which src/web/caller.py gives them."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """With `auth: jwt`, the claims of which an answering caller's token has one, by their names."""
    question: Mapping[str, Any] = field(default_factory=dict)
    """What those who may answer see, a JSON object. They do not see the job."""

    def record(self) -> dict[str, Any]:
        """Return what the job keeps of it.

        Raises:
            ValueError: the question is no JSON, or too large.
        """
        question = json.dumps(dict(self.question), allow_nan=False)
        if len(question) > MAX_QUESTION:
            raise ValueError(f"The question has more than {MAX_QUESTION} bytes.")
        return {
            "callers": list(self.callers),
            "claims": dict(self.claims),
            "question": question,
        }
