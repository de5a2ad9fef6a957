"""Whether each change of a function with an alias makes a version, told from template.yaml.

Jobs of a durable function run on a published version. SAM publishes one when CodeUri, or the text
of Environment or MemorySize changes; CloudFormation, when VersionDescription does. Lambda refuses
to publish when nothing has changed that a version holds: tags and concurrency are not among it.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-versions.html
https://github.com/aws/serverless-application-model/issues/3281
"""

import hashlib
import json
import re
from typing import Any

from .template import FUNCTION, Template, TemplateError

_HASHED = {"CodeUri", "Environment", "MemorySize", "SnapStart"}  # by SAM, as they are written
_AT_ONCE = {  # what holds for all versions, and what is not the function's own
    "AutoPublishAlias", "AutoPublishAliasAllProperties", "DeploymentPreference", "Events",
    "PermissionsBoundary", "Policies", "PropagateTags", "ProvisionedConcurrencyConfig",
    "ReservedConcurrentExecutions", "Tags", "VersionDescription",
}  # fmt: skip


def expected(template: Template, function: str) -> dict[str, str]:
    """Return the texts that make a version of every change of `function`.

    `RELEASE` is a variable of its Environment: it holds runtime, processor, and a digest of all
    else that SAM does not hash. `VersionDescription` names every parameter that reaches the
    function. A list has no room in it, so a change of a list needs another Release.
    """
    raw = template.document["Resources"][function]["Properties"]
    held = {k: v for k, v in template.with_globals("Function", raw).items() if k not in _AT_ONCE}
    unhashed = {k: v for k, v in held.items() if k not in _HASHED}
    plain = [unhashed.pop("Runtime", ""), *unhashed.pop("Architectures", [])]
    maps = {name: template.document["Mappings"][name] for name in sorted(_used(unhashed, "map"))}
    digest = hashlib.sha256(json.dumps([unhashed, maps], sort_keys=True).encode()).hexdigest()[:8]
    names, conditions = _used(held, "name"), template.document.get("Conditions") or {}
    while more := _used([conditions[n] for n in names & conditions.keys()], "name") - names:
        names |= more
    declared = template.document.get("Parameters") or {}
    named = sorted(n for n in names & declared.keys() if "List" not in declared[n]["Type"])
    return {
        "RELEASE": " ".join([*map(str, plain), digest, "${Release}"]),
        "VersionDescription": " ".join(f"${{{name}}}" for name in named),
    }


def check(template: Template) -> None:
    """Raise `TemplateError`, with the lines to write, if a change of a function could be lost."""
    for name, _, raw in template.resources(FUNCTION):
        if "AutoPublishAlias" in template.with_globals("Function", raw):
            variables = (raw.get("Environment") or {}).get("Variables") or {}
            found = {**raw, **variables}
            for key, text in expected(template, name).items():
                if (found.get(key) or {}).get("Fn::Sub") != text:
                    raise TemplateError(f"{name} needs in template.yaml: {key}: !Sub {text}")


def _used(value: Any, kind: str) -> set[str]:
    """Return what a part of a template refers to: mappings ("map"), or all else ("name")."""
    if not isinstance(value, dict):
        items = value if isinstance(value, list) else []
        return {name for item in items for name in _used(item, kind)}
    found = _used(list(value.values()), kind)
    for key, argument in value.items():
        if key == "Fn::FindInMap" and kind == "map":
            found.add(argument[0])
        elif key in ("Ref", "Condition", "Fn::If") and kind == "name":
            found.add(argument[0] if key == "Fn::If" else argument)
        elif key == "Fn::Sub" and kind == "name":
            found |= set(re.findall(r"\$\{(\w+)\}", json.dumps(argument)))
    return found
