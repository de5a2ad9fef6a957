"""Recipe: call other Lambda functions. No sandbox runs while the job waits for their answers.

Payload: `{"text": "hello"}`

In template.yaml, set the variable `TRANSLATE_FUNCTION` of WorkerFunction to the function's name,
and grant `lambda:InvokeFunction` to WorkerRole. Do not let the payload choose the function. Call a
durable function by version or alias. On the laptop stack, use the logical id of a function in
template.yaml.
"""

from typing import Any

from aws_durable_execution_sdk_python import DurableContext, InvokeError

from jobs import PermanentError
from jobs.context import JobContext
from jobs.settings import required

TRANSLATE = required("TRANSLATE_FUNCTION")


def run(payload: dict[str, Any], context: DurableContext, job: JobContext) -> dict[str, Any]:
    """Call the function once per language. A replay keeps the earlier answers."""
    results: dict[str, Any] = {}
    for language in ("de", "ja"):
        try:
            results[language] = context.invoke(
                TRANSLATE,
                {"text": payload["text"], "to": language},
                name=f"translate-{language}",
            )
        except InvokeError as error:  # invoke does not retry: for that, loop with a wait
            raise PermanentError(f"no translation to {language}: {error}") from error
        job.progress(len(results), 2)
    return results
