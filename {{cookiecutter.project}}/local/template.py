"""template.yaml as CloudFormation and SAM read it, resolved for the laptop.

Imitates parameters, mappings, conditions, intrinsic functions, pseudo parameters and SAM's Globals.
`Template.unsupported` names everything else.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/intrinsic-function-reference.html
https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-template-anatomy-globals.html
"""

import base64
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

REGION = "us-east-1"
ACCOUNT = "000000000000"

TABLES = ("AWS::DynamoDB::Table", "AWS::Serverless::SimpleTable")
QUEUE = "AWS::SQS::Queue"
TOPIC = "AWS::SNS::Topic"
SUBSCRIPTION = "AWS::SNS::Subscription"
BUCKET = "AWS::S3::Bucket"
RULE = "AWS::Events::Rule"
FUNCTION = "AWS::Serverless::Function"
HTTP_API = "AWS::Serverless::HttpApi"
_SUPPORTED = (*TABLES, QUEUE, TOPIC, SUBSCRIPTION, BUCKET, FUNCTION, HTTP_API)

# Only AWS needs these: here nothing is watched, guarded or billed.
_WITHOUT_EFFECT = (
    "AWS::Logs::", "AWS::CloudWatch::", "AWS::IAM::", "AWS::KMS::", "AWS::Lambda::Permission",
    "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy", "AWS::S3::BucketPolicy",
    "AWS::ApplicationInsights::",
)  # fmt: skip
NOT_CALLED = ("firehose", "http", "https", "lambda")  # kinds of subscribers
_FUNCTION_PROPERTIES = {
    "CodeUri", "Environment", "Events", "FunctionName", "Handler", "LoggingConfig", "MemorySize",
    "ReservedConcurrentExecutions", "Runtime", "Timeout",
}  # fmt: skip
_HARMLESS = {  # properties that change nothing of what a function does here
    "Architectures", "Description", "EphemeralStorage", "KmsKeyArn", "PermissionsBoundary",
    "Policies", "PropagateTags", "RecursiveLoop", "Role", "RolePath", "RuntimeManagementConfig",
    "Tags", "Tracing",
}  # fmt: skip
_TABLE_PROPERTIES = {
    "AttributeDefinitions", "GlobalSecondaryIndexes", "KeySchema", "LocalSecondaryIndexes",
    "PrimaryKey", "TableName",
}  # fmt: skip
_EFFECTIVE = {  # the imitated properties of each type; `Template.ignored` names the others
    FUNCTION: _FUNCTION_PROPERTIES,
    **dict.fromkeys(TABLES, _TABLE_PROPERTIES),
    QUEUE: {
        "ContentBasedDeduplication", "DeduplicationScope", "DelaySeconds", "FifoQueue",
        "FifoThroughputLimit", "MaximumMessageSize", "MessageRetentionPeriod", "QueueName",
        "ReceiveMessageWaitTimeSeconds", "RedrivePolicy", "VisibilityTimeout",
    },
    TOPIC: {"FifoTopic", "Subscription", "TopicName"},
    BUCKET: {"BucketName"},
    HTTP_API: {"Auth", "CorsConfiguration"},
}  # fmt: skip
_DURABLE = {  # properties of durable functions, for durable.py
    "AutoPublishAlias", "AutoPublishAliasAllProperties", "DeadLetterQueue", "DurableConfig",
    "VersionDescription",
}  # fmt: skip

_PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NotificationARNs": [],
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/local/local",
    "AWS::StackName": "local",
    "AWS::URLSuffix": "amazonaws.com",
}
_NO_VALUE: Any = object()


class TemplateError(Exception):
    """The template cannot be used; the message is one line that says why and what to do."""


# Tags are registered on the class, so this needs its own.
_Loader: Any = type("_Loader", (yaml.SafeLoader,), {})


def _short_form(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    """Read CloudFormation's short forms: `!Ref X` is `{"Ref": "X"}`."""
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    else:
        kind = "sequence" if isinstance(node, yaml.SequenceNode) else "mapping"
        value = getattr(loader, f"construct_{kind}")(node, deep=True)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


@dataclass(frozen=True)
class Function:
    """One function of the template, with Globals merged in and everything resolved.

    `timeout` is in seconds, `memory` in MB; `reserved` is ReservedConcurrentExecutions;
    `declared` names all variables, also those without a value.
    """

    name: str
    arn: str
    handler: str
    runtime: str
    code: Path
    timeout: int
    memory: int
    reserved: int | None
    environment: dict[str, str]
    declared: frozenset[str]
    events: dict[str, dict[str, Any]]
    log_format: str = "Text"
    log_level: str = "INFO"


@dataclass(frozen=True)
class Template:
    """A loaded template; `resolve` gives any part of it its value.

    Example: `Template.load("template.yaml", {"MaxAttempts": "3"}).functions()`.
    """

    path: Path
    document: dict[str, Any]
    parameters: dict[str, Any]
    endpoint: str = "http://127.0.0.1"
    _conditions: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path, parameters: Mapping[str, str] | None = None) -> "Template":
        """Read a template and check its parameters as CloudFormation does.

        Raises `TemplateError`.
        """
        path, given = Path(path), parameters or {}
        try:
            document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        except OSError as error:
            raise TemplateError(f"{path}: {error.strerror}") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f"{path}:{mark.line + 1}" if mark else str(path)
            raise TemplateError(f"{where}: {getattr(error, 'problem', error)}") from None
        if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
            raise TemplateError(f"{path}: no Resources; this is not a SAM template")
        declared = document.get("Parameters") or {}
        for name in given.keys() - declared.keys():
            known = ", ".join(declared) or "none"
            raise TemplateError(f"{path}: no parameter {name}; there are: {known}")
        values = {n: given.get(n, d.get("Default")) for n, d in declared.items()}
        checked = {n: _checked(n, declared[n], str(v)) for n, v in values.items() if v is not None}
        return cls(path, document, checked)

    def at(self, endpoint: str) -> "Template":
        """Return the same template for an emulator at `endpoint`, which queue URLs contain."""
        return replace(self, endpoint=endpoint.rstrip("/"))

    def resources(self, *types: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield (logical id, type, unresolved properties) where the resource's condition holds."""
        for logical_id, resource in self.document["Resources"].items():
            if not isinstance(resource, dict) or "Type" not in resource:
                raise TemplateError(f"{self.path}: resource {logical_id} has no Type")
            wanted = not types or resource["Type"] in types
            if wanted and ("Condition" not in resource or self._condition(resource["Condition"])):
                yield logical_id, resource["Type"], resource.get("Properties") or {}

    def resolved(self, *types: str) -> dict[str, dict[str, Any]]:
        """Return the resources of some types: logical id → resolved properties."""
        return {name: self.resolve(raw) for name, _, raw in self.resources(*types)}

    def functions(self) -> list[Function]:
        """Return the functions with a Python runtime."""
        every = [(n, self.with_globals("Function", raw)) for n, _, raw in self.resources(FUNCTION)]
        return [self._function(name, raw) for name, raw in every if self._runnable(raw)]

    def http_apis(self) -> dict[str, dict[str, Any]]:
        """Return the HTTP APIs by logical id; SAM makes one when an event names none."""
        declared = {n: raw for n, _, raw in self.resources(HTTP_API)} or {"ServerlessHttpApi": {}}
        found = {}
        for name, raw in declared.items():
            merged = self.with_globals("HttpApi", raw)
            auth = merged.pop("Auth", None) or {}  # its issuer may be a parameter without a value
            authorizers = (auth.get("Authorizers") or {}).items()
            found[name] = {
                **self.resolve(merged),
                "DefaultAuthorizer": self.resolve(auth.get("DefaultAuthorizer")),
                "JwtAuthorizers": [n for n, a in authorizers if "JwtConfiguration" in a],
            }
        return found

    def name(self, logical_id: str) -> str:
        """Return a resource's name: its explicit one, else its logical id."""
        properties = self._resource(logical_id).get("Properties") or {}
        for key in ("TableName", "QueueName", "TopicName", "BucketName", "FunctionName"):
            if key in properties:
                return str(self.resolve(properties[key]))
        if self._resource(logical_id)["Type"] == BUCKET:  # S3 takes no capitals
            return logical_id.lower()
        fifo = properties.get("FifoQueue") or properties.get("FifoTopic")
        return f"{logical_id}.fifo" if is_true(self.resolve(fifo)) else logical_id

    def arn(self, logical_id: str) -> str:
        """Return a resource's ARN."""
        kind, name = self._resource(logical_id)["Type"], self.name(logical_id)
        if kind == BUCKET:
            return f"arn:aws:s3:::{name}"
        prefix = {FUNCTION: "function:", **dict.fromkeys(TABLES, "table/")}.get(kind, "")
        service = {FUNCTION: "lambda", TABLES[1]: "dynamodb"}.get(kind, kind.split("::")[1].lower())
        return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{prefix}{name}"

    def queue_url(self, logical_id: str) -> str:
        """Return a queue's URL at this template's endpoint."""
        return f"{self.endpoint}/{ACCOUNT}/{self.name(logical_id)}"

    def resolve(self, value: Any) -> Any:
        """Return `value` with its intrinsic functions evaluated.

        Raises `TemplateError` for an unknown name and for functions that need an account.
        """
        if isinstance(value, list):
            return [r for r in map(self.resolve, value) if r is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or str(name).startswith("Fn::"):
                return self._intrinsic(name, argument)
        every = {k: self.resolve(v) for k, v in value.items()}
        return {k: v for k, v in every.items() if v is not _NO_VALUE}

    def unsupported(self) -> list[str]:
        """Name everything in the template that acts on AWS and not here."""
        found = []
        for name, kind, raw in self.resources():
            if kind == FUNCTION:
                merged = self.with_globals("Function", raw)
                if not self._runnable(merged):
                    found.append(f"{name} (runtime {self.resolve(merged.get('Runtime'))})")
                known = _FUNCTION_PROPERTIES | _HARMLESS
                known |= _DURABLE if "DurableConfig" in merged else set()
                found += [f"{name}.{p}" for p in self._with_value(merged) if p not in known]
            elif kind == BUCKET:
                found += [f"{name}.{p}" for p in raw if p == "NotificationConfiguration"]
            elif kind == HTTP_API:
                found += [f"{name}.{p}" for p in raw if p == "StageName"]
            elif kind not in _SUPPORTED and not kind.startswith(_WITHOUT_EFFECT):
                found.append(f"{name} ({kind})")
        if re.search(r"\{\{resolve:", str(self.document)):
            found.append("dynamic references (resolve:…)")
        for name, topic, subscription in self.subscriptions():
            if subscription["Protocol"] in NOT_CALLED:
                found.append(f"{name} ({subscription['Protocol']} subscription of {topic})")
        return found + [f"{name} (a second HTTP API)" for name in list(self.http_apis())[1:]]

    def subscriptions(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (logical id, topic's ARN, resolved properties) of each subscription to a topic."""
        found = [(name, p["TopicArn"], p) for name, p in self.resolved(SUBSCRIPTION).items()]
        for name, topic in self.resolved(TOPIC).items():
            found += [(name, self.arn(name), p) for p in topic.get("Subscription") or []]
        return found

    def without_effect(self) -> dict[str, int]:
        """Count the resources that only AWS needs, by type."""
        kinds = [kind for _, kind, _ in self.resources() if kind.startswith(_WITHOUT_EFFECT)]
        return dict(Counter(kind.rpartition("::")[2] for kind in kinds))

    def ignored(self) -> list[str]:
        """Name the properties of supported resources that have no effect here, as Type.Property."""
        sections, found = {FUNCTION: "Function", HTTP_API: "HttpApi"}, set()
        unsupported = self.unsupported()
        for name, kind, raw in self.resources(*_EFFECTIVE):
            merged = self.with_globals(sections.get(kind, ""), raw)
            served = _DURABLE if "DurableConfig" in merged else set()
            for key in merged.keys() - _EFFECTIVE[kind] - served:
                if f"{name}.{key}" not in unsupported and key in self._with_value(merged):
                    found.add(f"{kind.rpartition('::')[2]}.{key}")
        return sorted(found)

    def _with_value(self, properties: dict[str, Any]) -> list[str]:
        """Return the names of properties that are not AWS::NoValue."""
        found = []
        for key, value in properties.items():
            with contextlib.suppress(TemplateError):  # only AWS knows its value
                if not self.resolve([value]):
                    continue
            found.append(key)
        return found

    def whole(self, value: Any, where: str) -> int:
        """Return a whole number. Raises `TemplateError`, which names the value's parameter."""
        if re.fullmatch(r"-?\d+", text(value)):
            return int(text(value))
        names = [name for name, given in self.parameters.items() if text(given) == text(value)]
        source = f" (parameter {names[0]})" if names else ""
        raise TemplateError(f"{where} is {text(value)}{source}. Use a whole number.")

    def _runnable(self, properties: dict[str, Any]) -> bool:
        return str(self.resolve(properties.get("Runtime"))).startswith("python")

    def _function(self, name: str, raw: dict[str, Any]) -> Function:
        properties = self.resolve({k: v for k, v in raw.items() if k in _FUNCTION_PROPERTIES})
        if "Handler" not in properties:
            raise TemplateError(f"{self.path}: {name} has no Handler")
        code = (self.path.parent / str(properties.get("CodeUri", "."))).resolve()
        if not code.is_dir():
            raise TemplateError(f"{self.path}: {name}: CodeUri {code} is not a folder")
        variables = (properties.get("Environment") or {}).get("Variables") or {}
        logging = properties.get("LoggingConfig") or {}
        reserved = properties.get("ReservedConcurrentExecutions")
        if reserved is not None:
            reserved = self.whole(reserved, f"{name}.ReservedConcurrentExecutions")
        if reserved == 0 and "DurableConfig" not in raw:
            why = "switches it off, which is not supported here; take 1 or more"
            raise TemplateError(f"{self.path}: {name}: ReservedConcurrentExecutions 0 {why}")
        return Function(
            name=name,
            arn=self.arn(name),
            handler=str(properties["Handler"]),
            runtime=str(properties["Runtime"]),
            code=code,
            timeout=self.whole(properties.get("Timeout", 3), f"{name}.Timeout"),
            memory=self.whole(properties.get("MemorySize", 128), f"{name}.MemorySize"),
            reserved=reserved,
            environment={k: text(v) for k, v in variables.items()},
            declared=frozenset((raw.get("Environment") or {}).get("Variables") or {}),
            events=properties.get("Events") or {},
            log_format=logging.get("LogFormat", "Text"),
            log_level=logging.get("ApplicationLogLevel", "INFO"),
        )

    def with_globals(self, section: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Return a resource's properties, with those of a section of Globals merged in."""
        return dict(_merge((self.document.get("Globals") or {}).get(section) or {}, properties))

    def _resource(self, logical_id: str) -> dict[str, Any]:
        if logical_id not in self.document["Resources"]:
            raise TemplateError(f"{self.path}: there is no {logical_id}")
        return dict(self.document["Resources"][logical_id])

    def _condition(self, condition: Any) -> bool:
        if isinstance(condition, str):
            if condition not in self._conditions:
                declared = self.document.get("Conditions") or {}
                if condition not in declared:
                    raise TemplateError(f"{self.path}: there is no condition {condition}")
                self._conditions[condition] = self._condition(declared[condition])
            return self._conditions[condition]
        ((name, argument),) = condition.items()
        match name:
            case "Condition":
                return self._condition(argument)
            case "Fn::Equals":
                return len(set(map(text, self.resolve(argument)))) == 1
            case "Fn::Not":
                return not self._condition(argument[0])
            case "Fn::And" | "Fn::Or":
                return (all if name == "Fn::And" else any)(map(self._condition, argument))
        raise TemplateError(f"{self.path}: {name} is not a condition function")

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        for known in (_PSEUDO, self.parameters):
            if name in known:
                return known[name]
        if name in (self.document.get("Parameters") or {}):
            raise TemplateError(f"parameter {name} has no default; give --parameter {name}=VALUE")
        how = {QUEUE: self.queue_url, TOPIC: self.arn}.get(self._resource(name)["Type"], self.name)
        return how(name)

    def _attribute(self, logical_id: str, attribute: str) -> str:
        if attribute in ("Arn", "TopicArn"):
            return self.arn(logical_id)
        if attribute in ("QueueName", "TopicName"):
            return self.name(logical_id)
        if attribute == "QueueUrl":
            return self.queue_url(logical_id)
        self._resource(logical_id)
        return f"{logical_id}.{attribute}"  # as SAM CLI leaves what only AWS knows

    def _intrinsic(self, name: str, argument: Any) -> Any:
        if name == "Ref":
            return self._ref(argument)
        if name == "Fn::If":  # the other branch may have no value
            return self.resolve(argument[1 if self._condition(argument[0]) else 2])
        if name in ("Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"):
            return self._condition({name: argument})
        plain = self.resolve(argument)
        listed = [plain] if isinstance(plain, str) else plain
        match name:
            case "Fn::GetAtt":
                return self._attribute(*(plain.split(".", 1) if plain is not listed else plain))
            case "Fn::Sub":
                return self._substitute(*listed)
            case "Fn::FindInMap":
                return self._find_in_map(*map(text, plain[:3]))
            case "Fn::Join":
                return str(plain[0]).join(map(text, plain[1]))
            case "Fn::Select":
                return plain[1][int(plain[0])]
            case "Fn::Split":
                return plain[1].split(plain[0])
            case "Fn::Base64":
                return base64.b64encode(text(plain).encode()).decode()
        raise TemplateError(f"{self.path}: {name} is not supported here")

    def _substitute(self, pattern: str, extra: Mapping[str, Any] = MappingProxyType({})) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in extra:
                return text(extra[name])
            return text(self._attribute(*name.split(".", 1)) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", value, pattern)

    def _find_in_map(self, name: str, first: str, second: str) -> Any:
        try:
            return self.document["Mappings"][name][first][second]
        except KeyError:
            where = f"{name}.{first}.{second}"
            raise TemplateError(f"{self.path}: Mappings has no {where}") from None


def text(value: Any) -> str:
    """Return a scalar as CloudFormation writes it, with booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_true(value: Any) -> bool:
    """Tell whether a property is true, as a boolean or as text."""
    return text(value).lower() == "true"


def _merge(base: Any, extra: Any) -> Any:
    """Merge as SAM does: maps by key, lists end to end; other values replace."""
    if isinstance(base, dict) and isinstance(extra, dict):
        both = {k: _merge(base[k], v) if k in base else v for k, v in extra.items()}
        return {**base, **both}
    return base + extra if isinstance(base, list) and isinstance(extra, list) else extra


def _checked(name: str, declaration: dict[str, Any], value: str) -> Any:
    """Return a parameter's value. Raises `TemplateError` where CloudFormation refuses it."""
    kind = str(declaration.get("Type", "String"))
    numeric = re.fullmatch(r"-?\d+(\.\d+)?", value)
    number = float(value) if kind == "Number" and numeric else 0.0
    allowed = [text(v) for v in declaration.get("AllowedValues") or [value]]
    limits = {key: float(declaration[key]) for key in declaration if key.startswith(("Min", "Max"))}
    for broken, reason in (
        (value not in allowed, f"be one of {', '.join(allowed)}"),
        (kind == "Number" and not numeric, "be a number"),
        (number < limits.get("MinValue", number), "be at least {MinValue}"),
        (number > limits.get("MaxValue", number), "be at most {MaxValue}"),
        (len(value) < limits.get("MinLength", 0), "have at least {MinLength} characters"),
        (len(value) > limits.get("MaxLength", len(value)), "have at most {MaxLength} characters"),
        (not re.fullmatch(declaration.get("AllowedPattern", "(?s).*"), value),
         "match {AllowedPattern}"),
    ):  # fmt: skip
        if broken:
            rule = "must " + reason.format_map(declaration)
            hint = declaration.get("ConstraintDescription", rule)
            raise TemplateError(f"parameter {name}={value}: {hint}")
    listed = kind == "CommaDelimitedList" or kind.startswith("List<")
    return [item.strip() for item in value.split(",")] if listed else value
