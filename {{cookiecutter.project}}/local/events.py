"""Events for functions that the stack does not call by itself: schedules and EventBridge rules.

https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html
https://github.com/cloud-custodian/cloud-custodian/pull/9566 ("detail" of a schedule is text)
"""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from .template import ACCOUNT, FUNCTION, REGION, RULE, Template, TemplateError

_COMPARISONS = ("anything-but", "equals-ignore-case", "exists", "numeric", "prefix", "suffix")


def example(template: Template, function: str) -> Any:
    """Return an event of a function's first schedule or rule. Raises `TemplateError` for none."""
    for name, source in _sources(template, function):
        if given := source.get("Input"):
            return json.loads(given)
        kind, detail = ("scheduler", "{}") if name.startswith("schedule/") else ("events", {})
        scheduled = {"detail-type": "Scheduled Event", "source": f"aws.{kind}", "detail": detail}
        pattern = source.get("Pattern") or source.get("EventPattern")
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "account": ACCOUNT,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "region": REGION,
            "resources": [f"arn:aws:{kind}:{REGION}:{ACCOUNT}:{name}"],
            **({"detail": {}, **_match(pattern)} if pattern else scheduled),
        }
    raise TemplateError(f"{function} has no schedule and no rule. Give an event: -e event.json")


def _sources(template: Template, function: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (last part of the ARN, properties) of what calls a function."""
    raw = {name: raw for name, _, raw in template.resources(FUNCTION)}[function]
    for name, event in template.resolve(raw.get("Events") or {}).items():
        if event["Type"] in ("Schedule", "EventBridgeRule", "CloudWatchEvent"):
            yield f"rule/{function}{name}", event.get("Properties") or {}
        elif event["Type"] == "ScheduleV2":
            yield f"schedule/default/{function}{name}", event.get("Properties") or {}
    for name, rule in template.resolved(RULE).items():
        for target in rule.get("Targets") or []:
            if target["Arn"] == template.arn(function):
                yield f"rule/{name}", {**rule, **target}


def _match(pattern: Any) -> Any:
    """Return a value that a pattern matches: the first one that it names."""
    if isinstance(pattern, list):
        return _match(pattern[0]) if isinstance(pattern[0], dict) else pattern[0]
    if not isinstance(pattern, dict):
        return pattern
    if len(pattern) == 1 and (found := next(iter(pattern))) in _COMPARISONS:
        return pattern[found] if isinstance(pattern[found], str) else ""
    return {key: _match(value) for key, value in pattern.items()}
