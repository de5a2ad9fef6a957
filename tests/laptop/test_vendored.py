"""local/ is vendored: the same bytes in every project, and replaced by `cruft update`."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from local import __version__
from tests import KIT
from tests.conftest import Oven
from tests.helpers.baked import tree, variants

SOURCE = KIT / "{{cookiecutter.project}}" / "local"
CACHES = ("__pycache__/", ".mypy_cache/", ".ruff_cache/")


def vendored(project: Path) -> dict[str, bytes]:
    """Return the files of a project's local/, by name."""
    found = tree(project / "local").items()
    return {name: content for name, content in found if not name.startswith(CACHES)}


def test_it_is_the_same_whatever_the_answers(baked: Oven) -> None:
    expected = vendored(SOURCE.parent)
    assert "durable.py" in expected
    for answers in variants():
        assert vendored(baked(**answers).path) == expected, answers


def test_its_names_hold_no_template_syntax() -> None:
    assert [name for name in vendored(SOURCE.parent) if "{" in name] == []


def test_one_version() -> None:
    kit = tomllib.loads((KIT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (KIT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d\S*)", changelog, re.M)
    assert newest
    assert __version__ == kit == newest[1]


def test_it_tells_its_version(baked: Oven) -> None:
    shown = baked().run("local", "--version").stdout
    assert shown == f"laptop stack {__version__}\n"


def test_its_readme_is_short_and_says_whose_it_is() -> None:
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 20
    for fact in ("Do not edit this folder", "vendored", "`cruft update`", "--version"):
        assert fact in text, fact


def test_git_hosts_count_it_as_vendored(baked: Oven) -> None:
    project = baked.fresh()
    git(project.path, "init", "-q")
    for name, value in (("local/stack.py", "set"), ("src/api.py", "unspecified")):
        shown = git(project.path, "check-attr", "linguist-vendored", name)
        assert shown == f"{name}: linguist-vendored: {value}\n"


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody whose own settings do not matter; returns its output."""
    identity = {
        f"GIT_{who}_{what}": "a@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-c", "core.autocrlf=false", *arguments],
        cwd=folder,
        env={**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(folder: Path) -> None:
    """Commit everything in a repository."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def cruft(folder: Path, home: Path, *arguments: str) -> None:
    """Run cruft in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "cruft", *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(home), "GIT_CONFIG_GLOBAL": os.devnull},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def history(kit: Path, tmp_path: Path) -> Path:
    """A repository of the kit: as an older release, then as it is now."""
    repository = tmp_path / "kit"
    now = tree(kit)
    for name, content in now.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    git(repository, "init", "-q")
    local = repository / "{{cookiecutter.project}}" / "local"
    (local / "gone.py").write_text('"""A module that is no more."""\n', encoding="utf-8")
    (local / "page.html").unlink()
    for path in local.glob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace("self", "this"), encoding="utf-8")
    commit(repository)
    for name, content in now.items():
        (repository / name).write_bytes(content)
    (local / "gone.py").unlink()
    commit(repository)
    return repository


@pytest.mark.parametrize("worker", ["queue", "durable"])
def test_cruft_update_replaces_it_and_keeps_edits(
    history: Path, tmp_path: Path, worker: str
) -> None:
    """While src/ was edited: no conflict, the new local/, and the edits still there."""
    old, new = git(history, "rev-list", "--reverse", "HEAD").split()
    answers = {"project_name": "shop", "worker": worker}
    options = ("--no-input", "--checkout", old, "--extra-context", json.dumps(answers))
    cruft(tmp_path, tmp_path, "create", *options, str(history))
    project = tmp_path / "shop"
    assert (project / "local" / "gone.py").exists()
    git(project, "init", "-q")
    commit(project)
    edits = {
        name: f"# {name}, edited\n{(project / name).read_text(encoding='utf-8')}# the end\n"
        for name in ("src/work.py", "src/api.py")
    }
    for name, text in edits.items():
        (project / name).write_text(text, encoding="utf-8")
    commit(project)

    cruft(project, tmp_path, "update", "--skip-apply-ask", "--checkout", new)

    assert vendored(project) == vendored(SOURCE.parent)
    assert {name: (project / name).read_text(encoding="utf-8") for name in edits} == edits
    assert list(project.rglob("*.rej")) == []
