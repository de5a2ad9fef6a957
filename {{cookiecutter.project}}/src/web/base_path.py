"""Where the API is: at the root of its domain, below an API mapping, or in a named stage."""

import os
from typing import Any

BASE_PATH = os.environ.get("BASE_PATH", "")


def at_root(event: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a request as if the API were at the root of its domain, and the path that it is at.

    AWS writes that `rawPath` lacks an API mapping's path; others have seen it there. It has the
    name of a stage, unless a custom domain is mapped to the stage.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    https://github.com/aws-powertools/powertools-lambda-python/pull/579
    """
    context, raw, key = event["requestContext"], event["rawPath"], event["routeKey"]
    stage = "" if context["stage"] == "$default" else f"/{context['stage']}"
    any_depth = key == "$default" or "+}" in key
    for prefix in sorted({BASE_PATH, stage, ""}, key=len, reverse=True):
        path = raw.removeprefix(prefix)
        fits = path.startswith("/") and (any_depth or path.count("/") == key.count("/"))
        # Powertools' patterns end in $, which a line break may follow.
        if raw == prefix + path and fits and not path.endswith("\n"):
            at = {"rawPath": path, "requestContext": context | {"stage": "$default"}}
            return event | at, prefix or BASE_PATH
    return event | {"rawPath": "/", "requestContext": context | {"stage": "$default"}}, BASE_PATH
