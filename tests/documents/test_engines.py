"""CONTRIBUTING's list of the files of an engine is complete."""

import re

import pytest

from tests import KIT
from tests.helpers.baked import QUESTIONS, tree

PAGE = (KIT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACES = ("templates/ENGINE", "tests/tools/prove/ENGINE")
"""Where an engine has files, as the list names these folders."""


def files(engine: str) -> set[str]:
    """Return the paths of an engine's files, with ENGINE for its name."""
    return {
        f"{place}/{name}"
        for place in PLACES
        for name in tree(KIT / place.replace("ENGINE", engine))
        if "__pycache__" not in name
    }


def listed() -> set[str]:
    """Return the paths in CONTRIBUTING's list: lines of a folder and the names in it."""
    block = re.search(r"^```text\n(templates/ENGINE.+?)^```", PAGE, re.M | re.S)
    assert block
    paths, folder = set[str](), ""
    for line in block[1].splitlines():
        words = line.split()
        if not line.startswith(" "):
            folder = words.pop(0)
        paths |= {folder + name for name in words}
    return paths


def test_the_files_of_every_engine_are_listed() -> None:
    common = set.intersection(*(files(engine) for engine in QUESTIONS["worker"]))

    assert sorted(listed()) == sorted(common)


@pytest.mark.parametrize("engine", QUESTIONS["worker"])
def test_a_file_that_one_engine_has_alone_is_left_out_of_the_others(engine: str) -> None:
    """Its name in the generated project's tree depends on `worker`; CONTRIBUTING tells so."""
    names = {path.removeprefix("templates/ENGINE/") for path in files(engine) - listed()}
    conditional = {
        re.sub(r"\{% if cookiecutter.worker == '(\w+)' %\}(.+)\{% endif %\}", r"\2", path)
        for path in tree(KIT / "{{cookiecutter.project}}")
        if f"'{engine}'" in path
    }
    included = {name for name in names if not name.startswith("tests/tools/")}

    assert included == conditional


def test_the_places_that_it_names_exist() -> None:
    section = PAGE.partition("\n## Adding an engine\n")[2].partition("\n## ")[0]
    places = re.findall(r"`((?:tests|docs|cookiecutter)[\w/.]+)`", section)

    assert len(places) > 5
    assert [place for place in places if not (KIT / place).exists()] == []
