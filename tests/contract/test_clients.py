"""docs/openapi.yaml as other people's tools read it: linters, and generators of typed clients."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from local.stack import Stack
from tests import KIT
from tests.conftest import Oven
from tests.helpers.support import tools
from tests.helpers.support.machine import run

CLIENTS = KIT / "tests" / "helpers" / "clients"
PAYLOADS: dict[str, list[dict[str, Any]]] = {
    "queue": [{"site": "docs.example"}, {"site": "docs.example", "pages": 0}],
    "durable": [{"customer": "Ada", "delay_seconds": 0}, {"customer": "Ada", "delay_seconds": -1}],
}
"""A payload that completes, and one that breaks its schema in its last field."""
QUIET = {
    **os.environ,
    "NO_PROXY": "127.0.0.1",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "REDOCLY_TELEMETRY": "off",
}

pytestmark = pytest.mark.proof


def npm(command: str, *arguments: str | Path, folder: Path) -> str:
    """Run a command of one of the npm packages in `folder`, and return what it prints."""
    node, packages = tools.npm_packages("clients", CLIENTS)
    shutil.copytree(CLIENTS, folder, dirs_exist_ok=True)
    modules = folder / "node_modules"
    if not modules.exists():
        modules.symlink_to(packages / "node_modules", target_is_directory=True)
    path = os.pathsep.join((str(node.parent), os.environ["PATH"]))
    program = modules / ".bin" / command
    done = run(node, program, *arguments, cwd=folder, env={**QUIET, "PATH": path}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("variant", ["queue-iam", "durable-jwt", "queue-none"])
def test_linters_find_nothing(variant: str, baked: Oven, tmp_path: Path) -> None:
    """Not even a hint, by the rules that Spectral and Redocly recommend."""
    worker, auth = variant.split("-")
    document = baked(worker=worker, auth=auth).path / "docs" / "openapi.yaml"
    (tmp_path / "rules.yaml").write_text("extends: spectral:oas\n", encoding="utf-8")

    npm("spectral", "lint", document, *("-r", "rules.yaml", "-F", "hint"), folder=tmp_path)
    report = npm("redocly", "lint", document, "--format", "json", folder=tmp_path)

    assert json.loads(report)["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}, report


@pytest.mark.parametrize("worker", ["queue", "durable"])
def test_a_python_client_drives_a_job(worker: str, baked: Oven, tmp_path: Path) -> None:
    """It is generated without a warning, types hold, and `errors` are attributes."""
    project = baked(worker=worker)
    bin_ = tools.scripts("openapi-python-client")
    path = os.pathsep.join((str(bin_), os.environ["PATH"]))  # its ruff is there
    made = tmp_path / "made"
    generate = ("generate", "--path", project.path / "docs" / "openapi.yaml", "--fail-on-warning")
    run(
        bin_ / "openapi-python-client",
        *generate,
        "--output-path",
        made,
        env={**QUIET, "PATH": path},
    )
    shutil.copy(CLIENTS / "drive.py", made)
    payload, invalid = PAYLOADS[worker]

    types = ("--strict", "--python-executable", bin_ / "python", "drive.py")
    run(sys.executable, "-m", "mypy", *types, "--cache-dir", tmp_path / "mypy", cwd=made)
    with Stack(project.path) as stack:
        arguments = (stack.url, json.dumps(payload), json.dumps(invalid))
        done = run(bin_ / "python", "drive.py", *arguments, cwd=made, env=QUIET)

    assert json.loads(done.stdout) == expected(invalid)


@pytest.mark.parametrize("worker", ["queue", "durable"])
def test_a_typescript_client_drives_a_job(worker: str, baked: Oven, tmp_path: Path) -> None:
    """It is generated from what the laptop stack serves, and compiles in strict mode."""
    payload, invalid = PAYLOADS[worker]
    lines = ['import type { components } from "./api.js";']
    for name, value in (("payload", payload), ("invalid", invalid)):
        lines.append(
            f'export const {name}: components["schemas"]["Payload"] = {json.dumps(value)};'
        )
    (tmp_path / "payloads.ts").write_text("\n".join(lines), encoding="utf-8")

    with Stack(baked(worker=worker).path) as stack:
        served = build_opener(ProxyHandler({})).open(f"{stack.url}/_local/openapi.json").read()
        (tmp_path / "openapi.json").write_bytes(served)
        optional = ("--default-non-nullable", "false")  # a payload may leave out what has a default
        npm("openapi-typescript", "openapi.json", "-o", "api.d.ts", *optional, folder=tmp_path)
        npm("tsc", folder=tmp_path)
        node, _ = tools.npm_packages("clients", CLIENTS)
        done = run(node, "drive.js", stack.url, cwd=tmp_path, env=QUIET)

    assert json.loads(served)["servers"] == [{"url": stack.url}]
    assert json.loads(done.stdout) == expected(invalid)
    assert ": Record<string, never>" not in (tmp_path / "api.d.ts").read_text(encoding="utf-8")


def expected(invalid: dict[str, Any]) -> dict[str, Any]:
    """Return what a driver prints."""
    return {
        "status": "completed",
        "result": True,
        "field": list(invalid)[-1],
        "problem": "urn:problem:job-not-found",
    }
