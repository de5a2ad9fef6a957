"""What the documents say is so: the kit's, and those of a generated project."""

import ast
import fnmatch
import functools
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import yaml
from botocore import xform_name
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from local.template import Template
from tests import KIT
from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, BakedProject, tree
from tests.helpers.markdown import Block, Document, commands
from tests.helpers.support.sam import SAM
from tests.laptop.test_lost_work import PROJECT as LOST_WORK
from tests.tools.scaling import model

KIT_DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *sorted(path.relative_to(KIT).as_posix() for path in (KIT / "docs").glob("*.md")),
)
AUTH = QUESTIONS["auth"]


@pytest.fixture(params=itertools.product(QUESTIONS["worker"], AUTH), ids="-".join)
def project(request: pytest.FixtureRequest, baked: Oven) -> BakedProject:
    """A generated project, for each engine and each kind of caller: its documents differ."""
    worker, auth = request.param
    return baked(worker=worker, auth=auth)


def documents(project: BakedProject) -> list[Document]:
    """The documents of a generated project."""
    paths = [project.path / "README.md", *sorted((project.path / "docs").glob("*.md"))]
    return [read(path) for path in paths]


def document(project: BakedProject, name: str) -> Document:
    """One document of a generated project."""
    return read(project.path / name)


def kit_documents() -> list[Document]:
    """The kit's own documents."""
    return [read(KIT / name) for name in KIT_DOCUMENTS]


@functools.cache
def read(path: Path) -> Document:
    """Read a document once for all tests."""
    return Document(path)


@functools.cache
def read_template(path: Path) -> Any:
    """Read a template once for all tests, which do not change it."""
    return Template.load(path).document


def template(project: BakedProject) -> Any:
    """template.yaml with its short forms as CloudFormation's long ones."""
    return read_template(project.path / "template.yaml")


def resources(project: BakedProject, *types: str) -> dict[str, Any]:
    """The properties of the template's resources of some types."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template(project)["Resources"].items()
        if resource["Type"] in types
    }


# ---------------------------------------------------------------- links


def broken_links(document: Document) -> list[str]:
    """The links that lead nowhere."""
    faults = []
    for link in document.links:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (document.path.parent / name).resolve() if name else document.path
        if not target.exists() or (anchor and anchor not in read(target).anchors):
            faults.append(link)
    return faults


@pytest.mark.parametrize("document", kit_documents(), ids=str)
def test_links_of_the_kit_lead_somewhere(document: Document) -> None:
    assert broken_links(document) == []
    assert len(set(document.anchors)) == len(document.anchors)


def test_links_of_a_project_lead_somewhere(project: BakedProject) -> None:
    assert {d.path.name: broken_links(d) for d in documents(project) if broken_links(d)} == {}


def test_each_document_of_a_project_is_found_from_its_readme(project: BakedProject) -> None:
    links = {link.split("#")[0] for link in document(project, "README.md").links}

    assert {f"docs/{d.path.name}" for d in documents(project)[1:]} <= links


def test_the_readme_of_a_project_is_short(project: BakedProject) -> None:
    assert len(document(project, "README.md").text.splitlines()) <= 250


def test_each_document_of_the_kit_is_found_from_its_readme() -> None:
    seen, todo = set(), [KIT / "README.md"]
    while todo:
        document = Document(todo.pop())
        seen.add(document.path)
        linked = {(document.path.parent / link.split("#")[0]).resolve() for link in document.links}
        todo += [path for path in linked if path.suffix == ".md" and path not in seen]

    assert {KIT / name for name in KIT_DOCUMENTS} - seen == {KIT / "CHANGELOG.md"}


def test_the_readme_begins_with_what_the_reader_came_for() -> None:
    """Two screens at most come before the first table, and the page's picture is among them."""
    readme = Document(KIT / "README.md")
    first, _, _ = readme.text.partition("\n| ")

    assert len(first.splitlines()) <= 85
    assert "(docs/laptop-page.png)" in first
    assert (KIT / "docs/laptop-page.png").stat().st_size < 150_000


# ---------------------------------------------------------------- names

# What documents name in code font although no file of the project holds it, and whose it is.
FOREIGN = {
    *("202 Accepted", "Retry-After"),  # HTTP's
    *("AccessDenied", "ThrottlingException", '"State": "Disabled"'),  # what AWS answers
    "ApproximateRunningDurableExecutionsUtilization",  # AWS's metric
    *("execute-api:Invoke", "start-message-move-task", "--guided"),  # AWS's words
    "logs.REGION.amazonaws.com",  # a principal of AWS
    *("PATH", "export AWS_DEFAULT_REGION=us-east-1", "asyncio.create_task"),  # of shell, of Python
    "python-uv",  # of SAM CLI
    *("TIMED_OUT", "processing", "getStatus", "submit"),  # of what the kit is compared with
    *('{"job_id": …}', "{% include … %}", "${…}", "{{resolve:…}}"),  # shortened
    "{% if cookiecutter.worker == 'ENGINE' %}executions.py{% endif %}",  # ENGINE stands for a name
}
COMMAND = re.compile(r"(make|sam|aws|cruft|pipx|cookiecutter|\S*python|pip|git)(?=\s)")


@functools.cache
def text_of(folder: Path) -> str:
    """Everything below a folder that is no document, as one text."""
    parts = []
    for name, content in tree(folder).items():
        # The laptop stack leaves its state in the projects that it runs.
        if not name.startswith(".local/") and not name.endswith((".md", "test_docs.py")):
            parts += [name, content.decode(errors="replace")]
    return "\n".join(parts)


def unknown_spans(document: Document, text: str) -> list[str]:
    """The code spans with a word that is neither in `text` nor in the document's commands."""
    text = "\n".join([text, *document.blocks_in("sh")])
    unknown = []
    for span in document.spans:
        if COMMAND.match(span) or span in FOREIGN:
            continue  # commands are looked at by their own tests
        words = re.sub(r"\(.*\)$", "(", span).split()  # a call's arguments are for the reader
        names = [re.sub(r"^job\.|^http://127\.0\.0\.1:3000|[=:](\w*)$|/$", "", w) for w in words]
        if not all(
            name in text and re.search(rf"(?<!\w){re.escape(name)}", text) for name in names
        ):
            unknown.append(span)
    return unknown


def test_a_project_names_what_there_is(project: BakedProject) -> None:
    text = text_of(project.path)

    unknown = {d.path.name: unknown_spans(d, text) for d in documents(project)}
    assert {name: spans for name, spans in unknown.items() if spans} == {}


@pytest.mark.parametrize("document", kit_documents(), ids=str)
def test_the_kit_names_what_there_is(document: Document, kit: Path, baked: Oven) -> None:
    readme = KIT / "{{cookiecutter.project}}" / "README.md"  # how to write a name into Markdown
    text = readme.read_text(encoding="utf-8") + text_of(kit)
    text += "".join(text_of(baked(auth=auth).path) for auth in AUTH)

    assert unknown_spans(document, text) == []


def test_promises_are_kept_where_the_readme_says(project: BakedProject) -> None:
    rows = document(project, "docs/how-it-works.md").table("Promise", "Kept by")

    assert len(rows) == 7
    for _, place in rows:
        texts = [project.read(name) for name in re.findall(r"\]\(\.\./(src/[\w/.]+)\)", place)]
        names = re.findall(r"`(\w+)`", place)
        if "starts no thread" in place:
            text = text_of(project.path / "src")
            assert not re.search(r"import .*(thread|asyncio|concurrent|process)", text)
        else:
            assert texts
        defined = {
            node.name
            for text in texts
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert set(names) <= defined, place


def test_messages_in_the_runbook_are_logged(project: BakedProject) -> None:
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in (project.path / "src").rglob("*.py")
    )
    quoted = re.findall(r'"([^"]+)"', Document(project.path / "docs/runbook.md").prose)

    assert quoted
    assert [text for text in quoted if text not in source] == []


# ---------------------------------------------------------------- commands


@functools.cache
def aws_models() -> Any:
    """Return a session, which remembers the models that it has read."""
    return botocore.session.get_session()


def test_aws_commands_exist(project: BakedProject) -> None:
    """Service, operation and each option, as botocore's model has them."""
    session = aws_models()
    checked = 0
    for command in project_commands(project, "aws"):
        service, operation, *words = command[1:]
        model = session.get_service_model(service)
        operations = {xform_name(name, "-"): name for name in model.operation_names}
        assert operation in operations, command
        members = model.operation_model(operations[operation]).input_shape.members
        options = {f"--{xform_name(name, '-')}" for name in members}
        options |= {option.replace("--", "--no-", 1) for option in options}
        given = {word for word in words if word.startswith("--")}
        assert given <= options | {"--query", "--output", "--cli-binary-format"}, command
        checked += 1
    assert checked >= 15


@pytest.mark.proof
def test_sam_commands_exist(baked: Oven, tmp_path: Path) -> None:
    projects = [baked(auth=auth) for auth in AUTH]
    functions = {*resources(projects[0], "AWS::Serverless::Function")}
    used: dict[str, list[str]] = {}  # "local invoke": everything that follows it somewhere
    for words in itertools.chain(
        *(project_commands(p, "sam") for p in projects), kit_commands("sam")
    ):
        depth = 2 if words[1] in ("local", "list") else 1
        used.setdefault(" ".join(words[1 : 1 + depth]), []).extend(words[1 + depth :])
    sam = SAM.find()

    with ThreadPoolExecutor() as pool:  # a second each
        helps = pool.map(lambda name: sam.run(*name.split(), "--help", cwd=tmp_path).stdout, used)
        known = dict(zip(used, helps, strict=True))
    assert len(known) >= 6
    for name, words in used.items():
        for word in words:
            if word.startswith("-"):
                assert re.search(rf"(?<![\w-]){word}(?![\w-])", known[name]), (name, word)
            elif word.endswith("Function"):
                assert word in functions
            elif word.startswith("events/"):
                assert (projects[0].path / word).exists(), word


def project_commands(project: BakedProject, program: str) -> Iterator[list[str]]:
    """Every use of a program in a project's documents, in blocks and within lines."""
    for document in documents(project):
        yield from uses(document, program)


def kit_commands(program: str) -> Iterator[list[str]]:
    """Every use of a program in the kit's documents."""
    for document in kit_documents():
        yield from uses(document, program)


def uses(document: Document, program: str) -> Iterator[list[str]]:
    """Every use of a program in a document."""
    spans = [list(commands(span)) for span in document.spans if COMMAND.match(span)]
    for command in [c for block in (*document.commands(), *spans) for c in block]:
        words = list(itertools.dropwhile(re.compile(r"\w+=").match, command))
        if words and Path(words[0]).name == program and len(words) > 1:
            yield words


def test_no_program_escapes_these_tests(project: BakedProject) -> None:
    shell = {"cd", "while", "do", "done", "git"}
    looked_at = {"aws", "sam", "make", "python", "curl", "cookiecutter", "cruft", "pipx"}
    all_documents = [*documents(project), *kit_documents()]
    scripts = "\n".join(text for d in all_documents for text in d.blocks_in("sh"))
    shell |= set(re.findall(r"^(\w+)\(\) \{", scripts, re.M))  # functions of their own
    used = {
        Path(command[0]).name
        for document in all_documents
        for block in document.commands()
        for command in block
        if not re.match(r"\w+=", command[0])
    }
    assert used <= shell | looked_at | {"python3"}


def targets(makefile: Path) -> set[str]:
    """What `make` can be told to do there."""
    return set(re.findall(r"^([a-z-]+):", makefile.read_text(encoding="utf-8"), re.M))


def test_make_knows_its_targets(project: BakedProject) -> None:
    theirs, ours = targets(project.path / "Makefile"), targets(KIT / "Makefile")

    asked = [words[1] for words in project_commands(project, "make")]
    assert set(asked) <= theirs
    for document in kit_documents():
        for block in document.commands():
            generated = any(command[0] == "cd" for command in block)
            for command in block:
                if command[0] == "make":
                    assert command[1] in (theirs if generated else ours), (document, command)
    for span in [s for document in kit_documents() for s in document.spans]:
        if span.startswith("make "):
            assert span.split()[1] in theirs | ours, span


def test_python_commands_work(project: BakedProject) -> None:
    parameters = template(project)["Parameters"]
    offered = project.run("local", "--help").stdout
    for words in project_commands(project, "python"):
        module, arguments = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
        assert module in ("local", "local.bytecode", "local.openapi", "pip", "pytest"), words
        for before, word in zip(["", *arguments], arguments, strict=False):
            if before == "--parameter":
                assert word.split("=")[0] in parameters, words
            elif before == "-r" or (module == "pytest" and not word.startswith("-")):
                assert (project.path / word).exists(), words
            elif module == "local" and word not in ("JOB_ID", "NAME", "Name=value"):
                assert re.search(rf"(?<![\w-]){word}(?![\w-])", offered), words


def test_python_commands_of_the_kit_work() -> None:
    for words in kit_commands("python"):
        module = words[words.index("-m") + 1]
        if module != "local":  # of a generated project
            assert (KIT / f"{module.replace('.', '/')}.py").exists(), words


def test_generators_are_told_real_questions() -> None:
    """Answers in the commands that generate, by whichever program."""
    for program in ("cookiecutter", "sam", "cruft"):
        for words in kit_commands(program):
            given = [w for before, w in itertools.pairwise(words) if before == "--extra-context"]
            asked = {name for text in given for name in json.loads(text)}
            if program == "cookiecutter":
                asked |= {word.split("=")[0] for word in words if re.match(r"\w+=", word)}
            assert asked <= QUESTIONS.keys(), words


# ---------------------------------------------------------------- diagrams


def edges(flowchart: str) -> set[tuple[str, str, str]]:
    """The arrows of a Mermaid flowchart: from, arrow, to. Shapes are for the eye."""
    found = set()
    for line in flowchart.splitlines()[1:]:
        match = re.fullmatch(r"  (\w+)(?:\W+\w+\W+?)? (==>|-->|-\.->) (\w+)(?:\W+(\w+)\W+)?", line)
        assert match, line
        assert match[4] in (None, match[3]), line  # what is written in a shape is its name
        found.add((match[1], match[2], match[3]))
    return found


def named(value: Any) -> set[str]:
    """The logical ids that a part of the template refers to."""
    if isinstance(value, dict):
        found = {value["Ref"]} if "Ref" in value else set()
        if "Fn::GetAtt" in value:
            target = value["Fn::GetAtt"]
            found |= {target.split(".")[0] if isinstance(target, str) else target[0]}
        if "Fn::Sub" in value:
            found |= set(re.findall(r"\$\{(\w+)", str(value["Fn::Sub"])))
        return found.union(*(named(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(named(item) for item in value))
    return set()


def granted(project: BakedProject, role: str) -> Iterator[tuple[str, str]]:
    """What a role allows: action, logical id."""
    properties = resources(project, "AWS::IAM::Role")[role]
    documents = [policy["PolicyDocument"] for policy in properties["Policies"]]
    managed = named(properties.get("ManagedPolicyArns", []))
    for name, policy in resources(project, "AWS::IAM::ManagedPolicy", "AWS::IAM::Policy").items():
        if name in managed or role in named(policy.get("Roles", [])):
            documents.append(policy["PolicyDocument"])
    for statement in itertools.chain(*(document["Statement"] for document in documents)):
        if "Action" not in statement:  # an If: about a key or a network that is the user's
            continue
        actions = statement["Action"]
        yield from itertools.product(
            [actions] if isinstance(actions, str) else actions, named(statement["Resource"])
        )


def drawn_stack(project: BakedProject) -> set[tuple[str, str, str]]:
    """The arrows that template.yaml asks for: what starts functions, redrives, and calls."""
    functions = resources(project, "AWS::Serverless::Function")
    queues = resources(project, "AWS::SQS::Queue")
    called = {*queues, *resources(project, "AWS::DynamoDB::Table", "AWS::SNS::Topic")}
    found = {("Caller", "-->", "HttpApi")}
    for name, function in functions.items():
        sources = set()
        for event in function.get("Events", {}).values():
            properties = event["Properties"]
            sources |= named(properties.get("Queue", properties.get("ApiId")))
        dead_letters = named(function.get("DeadLetterQueue", {}))
        found |= {(source, "==>", name) for source in sources}
        found |= {(name, "-.->", queue) for queue in dead_letters}
        (role,) = named(function["Role"])
        for action, target in granted(project, role):
            if target in called - sources - dead_letters:
                found.add((name, "-->", target))
            elif target in functions and action == "lambda:InvokeFunction":
                found.add((name, "==>", target))
    for name, queue in queues.items():
        target = queue.get("RedrivePolicy", {}).get("deadLetterTargetArn", {})
        found |= {(name, "-.->", other) for other in named(target)}
    for alarm in resources(project, "AWS::CloudWatch::Alarm").values():
        found |= {("Alarms", "-->", topic) for topic in named(alarm["AlarmActions"])}
    return found


def life(project: BakedProject) -> set[tuple[str, str, str]]:
    """The transitions that this project's code makes, from the acceptance of a job on."""
    code = (
        "import json, jobs.lifecycle as j; print(json.dumps([{n: [t.sources, t.target] for n, t in"
        " vars(j).items() if isinstance(t, j.Transition)}, sorted(j.TERMINAL)]))"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=project.path / "src",
        capture_output=True,
        text=True,
        check=True,
    )
    transitions, terminal = json.loads(done.stdout)
    arrows = {
        (source, target, name.lower().replace("_", " ") if source != target else "")
        for name in transitions.keys() & transitions_made(project)
        for target in [transitions[name][1]]
        for source in transitions[name][0]
    } | {(status, "[*]", "") for status in terminal}
    reached = {"queued"}
    before: set[str] = set()
    while reached != before:
        before = set(reached)
        reached |= {target for source, target, _ in arrows if source in reached}
    return {arrow for arrow in arrows if arrow[0] in reached} | {("[*]", "queued", "accept")}


def transitions_made(project: BakedProject) -> set[str]:
    """The transitions of those methods of the stores that some code calls."""
    nodes = [
        node
        for path in (project.path / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]
    called = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return {
        node.attr
        for method in nodes
        if isinstance(method, ast.FunctionDef) and method.name in called
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "lifecycle"
    }


def states(diagram: str) -> set[tuple[str, str, str]]:
    """The arrows of a Mermaid state diagram: from, to, label."""
    found = set()
    for line in diagram.splitlines()[2:]:
        match = re.fullmatch(r"  (\S+) --> ([^\s:]+)(?:: (.+))?", line)
        assert match, line
        found |= {(match[1], match[2], label) for label in (match[3] or "").split(", ")}
        assert match[1] != match[2] or not match[3], "Mermaid draws a loop's label over another's"
    return found


def test_the_diagrams_show_the_project(project: BakedProject) -> None:
    stack, jobs = document(project, "docs/how-it-works.md").blocks_in("mermaid")

    assert stack.startswith("flowchart LR\n")
    assert edges(stack) == drawn_stack(project)
    assert jobs.startswith("stateDiagram-v2\n  direction LR\n")
    assert states(jobs) == life(project)


def test_the_kit_shows_what_the_project_shows(baked: Oven) -> None:
    ours, project = Document(KIT / "README.md"), baked()
    diagrams = document(project, "docs/how-it-works.md").blocks_in("mermaid")
    contract = ("Request", "Answers")

    assert ours.blocks_in("mermaid") == diagrams
    assert ours.table(*contract) == document(project, "README.md").table(*contract)


# ---------------------------------------------------------------- tables

PATTERNS = {
    r"^$|^[^@\s]+@[^@\s]+$": "an address, or empty",
    r"^$|^\*$|^https?://[^\s/]+$": "an origin, `*`, or empty",
    r"^https://\S+$": "an https address",
    r"^$|^https?://\S+$": "an http address, or empty",
    r"^$|^arn:[\w-]+:iam::\d{12}:policy/\S+$": "a policy's ARN, or empty",
    r"^$|^arn:[\w-]+:kms:[\w-]+:\d{12}:key/\S+$": "a key's ARN, or empty",
    r"^$|^(/[A-Za-z0-9$_.+!*'()-]+)+$": "a path, or empty",
    r"^$|^subnet-\w+$": "subnets, or empty",
    r"^$|^sg-\w+$": "security groups, or empty",
    r"^\S+$": "audiences, separated by commas",
    r"^\S*$": "a scope, or empty",
    r"^[\w.-]{0,40}$": "up to 40 letters, digits, `.`, `_` and `-`",
}


def allowed(parameter: dict[str, Any]) -> str:
    """What a parameter takes, in the README's words."""
    if "AllowedValues" in parameter:
        return ", ".join(map(str, parameter["AllowedValues"]))
    if "MinValue" in parameter:
        return f"{parameter['MinValue']} to {parameter['MaxValue']}"
    if "MinLength" in parameter:
        return f"at least {parameter['MinLength']} character"
    return PATTERNS[parameter["AllowedPattern"]]


def test_the_parameters_are_those_of_the_template(project: BakedProject) -> None:
    rows = document(project, "docs/reference.md").table("Parameter", "Default", "Allowed", "")

    assert {row[0]: row[1:] for row in rows} == {
        f"`{name}`": [str(p.get("Default", "none")), allowed(p), p["Description"]]
        for name, p in template(project)["Parameters"].items()
    }


def test_the_questions_are_those_of_the_kit() -> None:
    rows = Document(KIT / "docs/questions.md").table("Question", "Asks", "Default", "Allowed")
    asked = {name: q for name, q in QUESTIONS.items() if not name.startswith("_")}

    assert [row[0].strip("`") for row in rows] == list(asked)
    for name, prompt, default, choices in (map(str, row) for row in rows):
        question = asked[name.strip("`")]
        words = QUESTIONS["__prompts__"][name.strip("`")]
        words = words["__prompt__"] if isinstance(words, dict) else words
        assert words.split(",")[0].split(" (")[0].startswith(prompt.split(",")[0]), prompt
        if isinstance(question, list):
            assert (default, choices) == (question[0], ", ".join(question))
        elif isinstance(question, dict):
            assert default == json.dumps(question)
            assert default in choices
        elif "{{" not in question:
            assert default == question
    defaults = {row[0]: row[2] for row in rows}
    assert defaults["`project`"].endswith("jobs-api")


def test_limits_in_the_questions_are_those_of_the_hook() -> None:
    hook = (KIT / "hooks/pre_gen_project.py").read_text(encoding="utf-8")
    rows = {
        row[0]: row[3]
        for row in Document(KIT / "docs/questions.md").table(
            "Question", "Asks", "Default", "Allowed"
        )
    }

    limits = dict(re.findall(r'"(\w+)": (\d+)', hook))
    assert f"1 to {limits['project_name']} characters" in rows["`project_name`"]
    assert f"1 to {limits['description']} characters" in rows["`description`"]
    slug = 64 - len("-prod") - len("-DeadLetterFunction-") - 13
    assert f"at most {slug} characters" in rows["`project`"]


def test_every_alarm_has_its_section(project: BakedProject) -> None:
    runbook = Document(project.path / "docs/runbook.md")
    rows = runbook.table("Alarm", "Section")
    listed = {
        alarm: re.sub(r"\[(.+)\]\(.+\)", r"\1", section)
        for names, section in rows
        for alarm in re.findall(r"`(\w+)`", names)
    }

    described = {}
    for name, alarm in resources(project, "AWS::CloudWatch::Alarm").items():
        match = re.search(r" See docs/runbook\.md: (.+)\.$", alarm["AlarmDescription"])
        assert match, name
        described[name] = match[1]
    assert listed == described
    assert {section.lower() for section in described.values()} <= {
        heading.lower() for heading in runbook.headings
    }


def test_the_contract_is_the_openapi_document(project: BakedProject) -> None:
    openapi = yaml.safe_load(project.read("docs/openapi.yaml"))
    readme = document(project, "README.md")
    everywhere = {"500", "503"}
    gateway = {"401", "403", "429"}  # ours too, with `auth: jwt`: see "Calling the deployed API"
    told = {}
    for request, answers in readme.table("Request", "Answers"):
        method, path = re.findall(r"`(\w+) (/[\w/{}]+)`", request)[0]
        told[path, method.lower()] = set(re.findall(r"\b[2-5]\d\d\b(?!,)", answers))

    assert told == {
        (path, method): set(operation["responses"]) - everywhere - gateway
        for path, item in openapi["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post")
    }
    assert "500 or 503" in readme.prose


def test_the_sample_job_is_one(project: BakedProject) -> None:
    openapi = yaml.safe_load(project.read("docs/openapi.yaml"))
    registry = Registry().with_resource("urn:api", DRAFT202012.create_resource(openapi))
    schema = Draft202012Validator(
        {"$ref": "urn:api#/components/schemas/Job"},
        registry=registry,
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )
    (job,) = map(json.loads, document(project, "docs/how-it-works.md").blocks_in("json"))

    schema.validate(job)


# ---------------------------------------------------------------- code


def code_blocks(document: Document) -> list[Block]:
    """The blocks that claim to be out of a file."""
    claims = ("python", "json", "toml", "yaml")
    return [b for b in document.blocks if b.language in claims and '"job_id"' not in b.text[:20]]


def test_code_in_a_project_is_out_of_its_files(project: BakedProject) -> None:
    """For docs/how-to.md see tests/services/test_services.py."""
    files = [text.decode() for name, text in project.files().items() if not name.endswith(".md")]
    blocks = [
        block
        for document in documents(project)
        if document.path.name != "how-to.md"
        for block in code_blocks(document)
    ]

    assert blocks
    for block in blocks:
        if block.language == "toml":  # for the user to add
            given = re.findall(r"(\w+)=", block.text.partition('"')[2])
            assert set(given) <= set(template(project)["Parameters"]), block
        elif '"Statement"' not in block.text:
            assert any(block.text in text for text in files), block


def test_the_policy_for_callers_allows_every_route(baked: Oven) -> None:
    project = baked(auth="iam", worker="durable")
    (policy,) = map(json.loads, document(project, "README.md").blocks_in("json"))
    (statement,) = policy["Statement"]
    events = [
        event["Properties"]
        for function in resources(project, "AWS::Serverless::Function").values()
        for event in function.get("Events", {}).values()
        if event["Type"] == "HttpApi"
    ]

    assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")
    assert events
    for event in events:
        called = f"abc123/$default/{event['Method']}{event['Path']}"
        assert fnmatch.fnmatchcase(called, statement["Resource"].split(":")[-1]), event


SERVICES = {  # by the resource types of template.yaml
    "Serverless": ("Lambda", "API Gateway"),
    "DynamoDB": ("DynamoDB",),
    "SQS": ("SQS",),
    "SNS": ("SNS",),
    "CloudWatch": ("CloudWatch",),
    "Logs": ("CloudWatch Logs",),
    "IAM": ("IAM", "iam:PassRole"),
}


def test_the_rights_of_who_deploys_cover_the_template(project: BakedProject) -> None:
    text = document(project, "README.md").text
    (rights,) = re.findall(r"^- the rights to manage .+?\n(?=\n|- )", text, re.M | re.S)

    types = {r["Type"].split("::")[1] for r in template(project)["Resources"].values()}
    named = [name for kind in types for name in SERVICES[kind]]
    assert [name for name in named if not re.search(rf"\b{name}\b", rights)] == []


@pytest.mark.parametrize("document", kit_documents(), ids=str)
def test_code_in_the_kit_is_out_of_its_files(document: Document) -> None:
    sources = [*LOST_WORK.rglob("*.py"), *(KIT / "tests/laptop").glob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources]

    assert [b for b in code_blocks(document) if not any(b.text in text for text in texts)] == []


# ---------------------------------------------------------------- figures


def test_the_cost_adds_up(project: BakedProject) -> None:
    rows = document(project, "docs/reference.md").table(
        "What", "Units per job", "Price per million units", "Per million jobs"
    )
    *items, (label, _, _, total) = rows
    costs = []
    for what, units, price, cost in items:
        exact = float(units) * float(price)
        assert abs(exact - float(cost)) <= 0.00051, what
        costs.append(exact)
    assert label == "**Total**"
    assert total == f"**{sum(costs):.3f}**"


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        (
            "queue",
            "With a queue and 1 s of work per job, about {total:.0f} dollars."
            " The work accounts for {work:.0f} dollars",
        ),
        (
            "durable",
            "With a durable function and 0.5 s of work, a wait and a follow-up per job,"
            " about {total:.0f} dollars. The {count:.0f} operations of each execution account for"
            " {operations:.0f} dollars",
        ),
    ],
    ids=["queue", "durable"],
)
def test_the_kit_tells_the_cost_of_its_projects(worker: str, told: str, baked: Oven) -> None:
    reference = document(baked(worker=worker), "docs/reference.md")
    limits = Document(KIT / "docs/limits.md").prose
    figures: dict[str, float] = {}
    for what, units, _, dollars in reference.table(
        "What", "Units per job", "Price per million units", "Per million jobs"
    ):
        if "durable operations (" in what:
            figures |= {"operations": float(dollars), "count": float(units)}
        elif "of the worker" in what:
            figures["work"] = float(dollars)
        elif "Total" in what:
            figures["total"] = float(dollars.strip("*"))
    monthly = reference.prose.partition("Per month, ")[2].partition("\n")[0]
    idle = sum(map(float, re.findall(r"\((\d\.\d\d)\b", monthly)))

    assert told.format(**figures) in limits
    assert f"about {idle:.0f} dollars a month" in limits


def test_the_kit_compares_the_cost_of_the_same_job() -> None:
    queue, durable = (
        sum(model.cost(variant, model.Load(1, 1)).values())
        for variant in (model.QUEUE, model.DURABLE)
    )
    told = f" with a queue, about {durable:.0f} dollars with a durable function"
    row = next(
        row
        for row in Document(KIT / "README.md").table(
            *("", "this kit", "an SQS example for SAM", "AsyncJob of aws-blocks", "Step Functions")
        )
        if row[0] == "Cost per million jobs of 1 s"
    )

    assert row[1] == f"[about {queue:.0f} dollars](docs/limits.md#cost){told}"


def test_the_cost_is_that_of_this_stack(project: BakedProject) -> None:
    reference = document(project, "docs/reference.md")
    memory = template(project)["Globals"]["Function"]["MemorySize"]
    rows = {
        row[0]: row[1]
        for row in reference.table(
            "What", "Units per job", "Price per million units", "Per million jobs"
        )
    }
    for what, units in rows.items():
        if shown := re.search(r"\((\d) . (\d+) ms . ([\d.]+) GB\)", what):
            assert float(shown[3]) == memory / 1024
            assert float(units) == int(shown[1]) * int(shown[2]) / 1000 * memory / 1024
    assert f"with {memory} MB" in reference.prose

    alarms = resources(project, "AWS::CloudWatch::Alarm")
    watched = sum(
        len([m for m in alarm.get("Metrics", [1]) if m == 1 or "MetricStat" in m])
        for alarm in alarms.values()
    )
    dashboard = json.dumps(resources(project, "AWS::CloudWatch::Dashboard"))
    own = len(set(re.findall(r'\[\\*"Jobs\\*", \\*"(\w+)', dashboard)))
    assert f"{len(alarms)} alarms over {watched} metrics ({watched * 0.10:.2f})" in reference.prose
    assert f"{own} metrics of its own ({own * 0.30:.2f})" in reference.prose
    pollers = sum(
        event["Type"] == "SQS"
        for function in resources(project, "AWS::Serverless::Function").values()
        for event in function.get("Events", {}).values()
    )
    # Lambda keeps five long polls of 20 seconds open on a queue.
    receives = pollers * 5 * 3 * 60 * 24 * 30 / 1e6
    assert f"{receives:.1f} million empty receives" in reference.prose
    assert f"({receives * 0.40:.2f})" in reference.prose


def test_times_of_the_queue_are_those_of_the_stack(baked: Oven) -> None:
    project = baked(worker="queue")
    queues = resources(project, "AWS::SQS::Queue")
    parameters = template(project)["Parameters"]
    days = {name: queue["MessageRetentionPeriod"] // 86_400 for name, queue in queues.items()}
    how, runbook = (document(project, f"docs/{n}.md").prose for n in ("how-it-works", "runbook"))
    limits = Document(KIT / "docs/limits.md").text
    worst = parameters["MaxAttempts"]["Default"] * 6 * parameters["WorkerTimeout"]["Default"]
    base = parameters["RetryBaseSeconds"]["Default"]

    backup = 35  # of DynamoDB, which cannot be set
    for text, told in (
        (how, {days["JobsQueue"]}),
        (limits, {days["JobsQueue"]}),
        (runbook, {*days.values(), backup}),
    ):
        assert set(map(int, re.findall(r"\b(\d+) days", text))) == told
    assert f"every {queues['DeadLetterQueue']['VisibilityTimeout'] // 60} minutes" in runbook
    assert (worst, "half an hour" in how, "half an hour" in limits) == (1800, True, True)
    assert f"after {base / 2:g} to {base} seconds, then {base} to {base * 2}" in runbook


def test_sizes_are_those_of_the_code(project: BakedProject) -> None:
    readme = Document(project.path / "README.md").text
    limits = Document(KIT / "docs/limits.md").text

    for name, figure, told in (
        ("web/body", "MAX_BYTES = 200_000", "200,000"),
        ("jobs/result", "MAX_RESULT_BYTES = 100_000", "100,000"),
        ("jobs/job", "MAX_HISTORY = 1_000", "1,000"),
    ):
        assert figure in project.read(f"src/{name}.py")
        assert told in limits
        assert name == "jobs/job" or f"{told} bytes" in readme
