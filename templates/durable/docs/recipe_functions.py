"""Recipe: calling other Lambda functions, without waiting in a sandbox for their answers.

Its payload: `{"text": "hello"}`

Which function is not the caller's to say: the variable `TRANSLATE_FUNCTION` of WorkerFunction in
template.yaml names it, and WorkerRole needs `lambda:InvokeFunction` for it. A durable function is
called by version or alias. On the laptop stack, functions of this template.yaml can be called by
their logical id.
"""

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, InvokeError

from jobs import PermanentError
from jobs.context import JobContext
from jobs.settings import required

TRANSLATE = required("TRANSLATE_FUNCTION")


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Call one after the other; what one has answered is kept."""
    results: dict[str, Any] = {}
    for language in ("de", "ja"):
        try:
            results[language] = context.invoke(
                TRANSLATE,
                {"text": payload["text"], "to": language},
                name=f"translate-{language}",
            )
        except InvokeError as error:  # it is not tried again: call it in a loop with a wait
            raise PermanentError(f"no translation to {language}: {error}") from error
        job.progress(len(results), 2)
    return results
