"""The kit's own files work on every system that it is cloned to."""

import re
import subprocess
from pathlib import Path

import pytest

from tests import KIT
from tests.helpers.baked import copy_kit, tree


def kit_files() -> list[str]:
    """The kit's files, as git has or would have them."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=KIT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listing.stdout.split("\0") if name]


def test_a_clone_works_on_windows_and_macos() -> None:
    files = kit_files()
    reserved = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)
    parts = {part for name in files for part in name.split("/")}

    assert [part for part in parts if re.search(r'[<>:"|?*\\\x00-\x1f]|[. ]$', part)] == []
    assert [part for part in parts if reserved.fullmatch(part)] == []
    conditional = re.compile(r"\{% if cookiecutter\.\w+ == '\w+' %\}[\w.-]+\{% endif %\}")
    with_braces = {part for part in parts if "{" in part and not conditional.fullmatch(part)}
    assert with_braces == {"{{cookiecutter.project}}"}
    assert len({name.lower() for name in files}) == len(files)
    assert max(map(len, files)) < 150


def test_a_clone_has_unix_line_ends() -> None:
    checked = subprocess.run(
        ["git", "check-attr", "-z", "--stdin", "eol"],
        cwd=KIT,
        input="\0".join(kit_files()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(checked.stdout.split("\0")[2::3]) == {"lf"}


def test_what_tools_and_systems_leave_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = copy_kit(tmp_path / "used")
    clean = tree(used)
    for leftover in (".git", "templates/.idea/x.xml", "tests/__pycache__/x.pyc"):
        (used / leftover).parent.mkdir(exist_ok=True)
        (used / leftover).touch()
    (used / "{{cookiecutter.project}}" / ".DS_Store").write_bytes(b"\x00\xff")
    monkeypatch.setattr("tests.helpers.baked.KIT", used)

    assert tree(copy_kit(tmp_path / "copy")) == clean
