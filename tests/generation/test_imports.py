"""Imports in the generated src/ run one way, and each function loads only what it uses."""

import ast
import os
import subprocess
import sys

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS
from tests.helpers.rules.sources import environment, sources

MAY_IMPORT = {
    "api": {"job_routes", "callback_routes", "web"},
    "job_routes": {"dispatch", "jobs", "web"},
    "callback_routes": {"dispatch", "jobs", "web"},
    "web": {"jobs", "web"},
    "jobs": {"jobs"},
    "dispatch": {"jobs"},
    "failure_reason": {"jobs"},
    "dead_letter": {"failure_reason", "jobs"},
    "answers": set(),
    "durable_context": {"answers", "jobs", "retries"},
    "retries": {"jobs"},
    "worker": {"durable_context", "jobs", "retries", "work"},
    "worker_entry": {"worker"},
    "work": {"answers", "jobs"},
}


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
def test_imports_run_one_way(worker: str, baked: Oven) -> None:
    modules = sources(baked(worker=worker))
    own = {name.split(".")[0] for name in modules}
    wrong = []
    for name, tree in modules.items():
        for node in ast.walk(tree):
            targets = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [node.module]
            for target in targets:
                part, room = target.split(".")[0], name.split(".")[0]
                if part in own and part not in MAY_IMPORT[room]:
                    wrong.append(f"{name} imports {target}")

    assert wrong == []


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
@pytest.mark.parametrize("function", ["api", "worker", "dead_letter"])
def test_a_function_loads_only_what_it_uses(worker: str, function: str, baked: Oven) -> None:
    """Only the API compiles the payload schema; only the others need boto3, by Powertools."""
    project = baked(worker=worker)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {function}; print(*sys.modules)"],
        cwd=project.path / "src",
        env={"PATH": os.environ["PATH"], **environment(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    if function == "api":
        assert {"web.payload", "fastjsonschema"} <= loaded
        assert not loaded & {"boto3", "s3transfer", "jobs.once"}
    else:
        assert not loaded & {"web", "fastjsonschema"}
