"""What the sources in src/ do, read from their syntax trees."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import boto3

from tests.helpers.baked import BakedProject
from tests.helpers.support.sam import REGION


def sources(project: BakedProject) -> dict[str, ast.Module]:
    """The modules of src/, parsed, by name."""
    return _parsed(project.path / "src")


@functools.cache
def _parsed(folder: Path) -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in folder.rglob("*.py")
    }


def imported(project: BakedProject, module: str) -> dict[str, ast.Module]:
    """The project's own sources that importing `module` runs, by name."""
    known = sources(project)
    found: dict[str, ast.Module] = {}
    left = [module]
    while left:
        name = left.pop()
        name = name if name in known else f"{name}.__init__"
        if name not in known or name in found:
            continue
        found[name] = known[name]
        for node in ast.walk(known[name]):
            if isinstance(node, ast.Import):
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                left += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


@functools.cache
def _operations() -> dict[str, set[str]]:
    """IAM actions by the name of the client's method."""
    found: dict[str, set[str]] = {}
    for service in ("dynamodb", "sqs", "sns", "lambda"):
        client = boto3.client(service, REGION, aws_access_key_id="x", aws_secret_access_key="x")
        for method, operation in client.meta.method_to_api_mapping.items():
            action = "InvokeFunction" if operation == "Invoke" else operation
            found.setdefault(method, set()).add(f"{service}:{action}")
    return found


def calls(modules: dict[str, ast.Module]) -> set[str]:
    """The IAM actions that these sources may need, Powertools' idempotency included."""
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for tree in modules.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    if "DynamoDBPersistenceLayer" in names:
        names |= {"get_item", "put_item", "update_item", "delete_item"}
    return {action for name in names for action in _operations().get(name, set())}


def variables(tree: ast.Module) -> Iterator[str]:
    """The environment variables that a source reads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            if re.fullmatch(r"required\w*|os\.environ\.get|os\.getenv", ast.unparse(node.func)):
                yield str(node.args[0].value)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            yield ast.literal_eval(node.slice)


def environment(project: BakedProject) -> dict[str, str]:
    """An environment in which each function can be imported: every variable that src/ reads."""
    names = {name for tree in sources(project).values() for name in variables(tree)}
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": REGION}
    return {**dict.fromkeys(names, "1"), **keys, "PYTHONDONTWRITEBYTECODE": "1"}


def counted(project: BakedProject) -> list[str]:
    """The metrics that the sources count: those of `Metric`."""
    return [
        str(ast.literal_eval(entry.value))
        for node in sources(project)["jobs.metrics"].body
        if isinstance(node, ast.ClassDef) and node.name == "Metric"
        for entry in node.body
        if isinstance(entry, ast.Assign)
    ]
