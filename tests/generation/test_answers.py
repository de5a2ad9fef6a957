"""Hard answers arrive as typed; bad ones are refused before anything is written."""

import shutil
import tomllib
from pathlib import Path

import pytest
from cookiecutter.exceptions import FailedHookException

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, bake, cookiecutter, tree, type_answers
from tests.helpers.documents import read_markdown, read_yaml

PROJECT = "{{cookiecutter.project}}"
HARD_TEXTS = [
    'Say "hi" to C:\\new\\table',
    "it's: #1, {a} {{ 7*7 }} {% if %} {# no #}",
    "日本語の仕事 🚀 naïve 👩‍💻",
    "</script><b>bold</b> &amp; &lt;",
    "$(rm -rf /) `id` ${HOME} %PATH% %s !Sub",
    "- a dash",
    "@at `and` *and* _and_ ~~and~~ [x](y) ![z](w)",
    "1. first | second #",
    "> quote: yes, null, ~, 0x10, 1e3",
    "{{resolve:ssm:x}} {{cookiecutter}} \\",
    "=== # ---",
    '\'\'\' """ \\" \\N{DASH} \\u0041 \\',
]


SAY_TEXTS = (".md", ".toml", ".yaml")
"""The files that hold the texts; see test_texts_stand_only_where_they_are_escaped_for."""


@pytest.fixture(scope="module")
def small_kit(kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit without the files of a project that hold no text of the answers."""
    small = Path(shutil.copytree(kit, tmp_path_factory.mktemp("small") / "kit"))
    for path in (small / PROJECT).rglob("*"):
        if path.is_file() and path.suffix not in SAY_TEXTS:
            path.unlink()
    return small


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_hard_texts_arrive_as_typed(text: str, small_kit: Path, tmp_path: Path) -> None:
    answers = {"project_name": text, "project": "hard", "description": f"{text}."}
    project = bake(small_kit, tmp_path / "output", answers, typed=True)

    description = f"{text}."
    assert read_yaml(project.read("template.yaml"))["Description"] == f"{text}: {description}"
    assert read_yaml(project.read("docs/openapi.yaml"))["info"]["title"] == text
    package = tomllib.loads(project.read("pyproject.toml"))["project"]
    assert (package["name"], package["description"]) == ("hard", description)
    readme = read_markdown(project.read("README.md"))
    assert readme[0] == ("h1", text)
    assert ("p", description) in readme


def test_texts_stand_only_where_they_are_escaped_for(baked: Oven) -> None:
    project = baked(project_name="Zyzzyva", project="plain", description="Quixotic")

    places = {
        Path(name).suffix
        for name, content in project.files().items()
        if b"Zyzzyva" in content or b"Quixotic" in content
    }
    assert places == {*SAY_TEXTS}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Jobs API", "jobs-api"),
        ("Ärger mit C# & Co.", "arger-mit-c-co"),
        ("日本語", "ri-ben-yu"),
        ("🚀", "jobs"),
        ("3D prints", "jobs-3d-prints"),
        ("123456789012345678901234567", "jobs-123456789012345678901"),
        ("Customer notification jobs", "customer-notification-jobs"),
        ("Customer notification service", "customer-notification"),
        ("-- x --", "x"),
    ],
)
def test_every_name_has_a_slug_that_works(
    name: str, slug: str, small_kit: Path, tmp_path: Path
) -> None:
    project = bake(small_kit, tmp_path / "output", {"project_name": name}, typed=True)

    assert project.path.name == slug


SLUG = "use a letter, then letters, digits and single hyphens, at most 26 characters"
ONE_LINE = "use one line of text"
REFUSED = [
    pytest.param({"project": ""}, "project", SLUG, id="no slug"),
    pytest.param({"project": "1api"}, "project", SLUG, id="digit first"),
    pytest.param({"project": "jobs_api"}, "project", SLUG, id="underscore"),
    pytest.param({"project": "jobs api"}, "project", SLUG, id="space"),
    pytest.param({"project": "jobs-"}, "project", SLUG, id="hyphen last"),
    pytest.param({"project": "jöbs"}, "project", SLUG, id="umlaut"),
    pytest.param({"project": "jobs\n"}, "project", SLUG, id="slug with line break"),
    pytest.param({"project": "j" * 27}, "project", SLUG, id="slug too long"),
    pytest.param({"project": ".."}, "project", SLUG, id="parent folder"),
    pytest.param({"project": "."}, "project", SLUG, id="this folder"),
    pytest.param({"project": "a/b"}, "project", SLUG, id="folder in folder"),
    pytest.param({"project": "a\\b"}, "project", SLUG, id="Windows folder in folder"),
    pytest.param({"project": "../jobs"}, "project", SLUG, id="beside"),
    pytest.param({"project": "$(id)"}, "project", SLUG, id="shell"),
    pytest.param({"project": '"""+exit(0)+"""'}, "project", SLUG, id="Python"),
    pytest.param({"project_name": ""}, "project_name", "use 1 to 50", id="no name"),
    pytest.param({"project_name": "  "}, "project_name", "use 1 to 50", id="blank name"),
    pytest.param({"project_name": "x" * 51}, "project_name", "use 1 to 50", id="long name"),
    pytest.param({"project_name": "a\nb: c"}, "project_name", ONE_LINE, id="line break"),
    pytest.param({"project_name": "a\x1b[31mb"}, "project_name", ONE_LINE, id="escape"),
    pytest.param({"project_name": "a\u2028b"}, "project_name", ONE_LINE, id="line separator"),
    pytest.param({"project_name": "a\u202eb"}, "project_name", ONE_LINE, id="reversed text"),
    pytest.param({"project_name": "a\udcffb"}, "project_name", ONE_LINE, id="not UTF-8"),
    pytest.param({"project_name": "a\uffff"}, "project_name", ONE_LINE, id="not in YAML"),
    pytest.param({"description": ""}, "description", "use 1 to 200", id="no description"),
    pytest.param({"description": "x" * 201}, "description", "use 1 to 200", id="long description"),
    pytest.param({"description": "a\tb"}, "description", ONE_LINE, id="tab"),
    pytest.param({"description": "{{ 7*7 }}"}, "description", "at the prompt", id="Jinja"),
    pytest.param({"project_name": "a{# b #}"}, "project_name", "at the prompt", id="Jinja comment"),
    pytest.param({"architectures": "sparc"}, "architectures", '["arm64"]', id="processor"),
    pytest.param(
        {"architectures": '{"value": ["arm64", "x86_64"]}'},
        "architectures",
        '["arm64"]',
        id="two processors",
    ),
]


@pytest.mark.parametrize(("answers", "question", "allowed"), REFUSED)
def test_a_bad_answer_is_refused_in_one_line_and_leaves_nothing(
    answers: dict[str, str],
    question: str,
    allowed: str,
    kit: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(FailedHookException):
        bake(kit, tmp_path / "output", answers)

    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"{question}: ")
    assert allowed in line
    assert list((tmp_path / "output").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output"]


def test_the_command_shows_the_refusal_first(kit: Path, tmp_path: Path) -> None:
    """And leaves nothing, also where an absolute path was asked for."""
    done = cookiecutter(kit, tmp_path / "output", f"project={tmp_path}/elsewhere/jobs")

    assert done.returncode != 0
    first = done.stderr.splitlines()[0]
    assert first.startswith("project: ")
    assert SLUG in first
    assert list((tmp_path / "output").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "settings"]


@pytest.mark.parametrize("question", ["worker", "runtime", "auth"])
def test_an_unknown_choice_is_refused_by_name(question: str, kit: Path, tmp_path: Path) -> None:
    # The words are cookiecutter's, which looks at choices before any code of the kit runs.
    with pytest.raises(ValueError, match=f"unknown provided for choice variable {question}") as no:
        bake(kit, tmp_path / "output", {question: "unknown"})

    assert all(choice in str(no.value) for choice in QUESTIONS[question])
    assert list((tmp_path / "output").iterdir()) == []


def test_a_refusal_spares_what_is_there(kit: Path, tmp_path: Path) -> None:
    mine = tmp_path / "output" / "jobs-api" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("kept")

    done = cookiecutter(kit, tmp_path / "output", "-f", "description=")

    assert done.returncode != 0
    assert tree(tmp_path / "output") == {"jobs-api/mine": b"kept"}


@pytest.mark.parametrize("answer", ["arm64", '{"value": ["arm64"]}'])
def test_a_processor_may_be_named_on_the_command_line(
    answer: str, small_kit: Path, tmp_path: Path
) -> None:
    project = bake(small_kit, tmp_path / "output", {"architectures": answer})

    template = read_yaml(project.read("template.yaml"))
    assert template["Globals"]["Function"]["Architectures"] == ["arm64"]


def test_typed_braces_survive_a_replay(small_kit: Path, tmp_path: Path) -> None:
    first = type_answers(small_kit, tmp_path / "output", project_name="{{ 7*7 }}", project="braces")
    replay = tmp_path / "settings" / "kit.json"

    done = cookiecutter(small_kit, tmp_path / "again", "--replay-file", str(replay), typed=[])

    assert done.returncode == 0, done.stdout + done.stderr
    assert tree(tmp_path / "again" / "braces") == first.files()


def test_the_longest_slug_fits_into_every_name(
    small_kit: Path, baked: Oven, tmp_path: Path
) -> None:
    """26 is written in cookiecutter.json, and computed in the hook."""
    longest = "j" * 26
    assert bake(small_kit, tmp_path / "output", {"project": longest}).path.name == longest
    default = bake(small_kit, tmp_path / "typed", {"project_name": "j" * 30}, typed=True)
    assert default.path.name == longest

    resources = read_yaml(baked().read("template.yaml"))["Resources"]
    named = {
        name
        for name, resource in resources.items()
        if resource["Type"] in ("AWS::Serverless::Function", "AWS::IAM::Role")
    }
    random_part = 13
    assert all(len(f"{longest}-prod-{name}-") + random_part <= 64 for name in named)
