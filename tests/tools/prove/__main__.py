"""`python -m tests.tools.prove`: run a campaign and print its table; exit 1 for a violation."""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.tools.prove.engine import ENGINES, load_engine
from tests.tools.prove.fault_plan import assign
from tests.tools.prove.project import NotAProject, Project, generate


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.prove", description=__doc__)
    add_project(parser)
    parser.add_argument("--jobs", type=_positive, default=500, help="how many; 500 by default")
    parser.add_argument("--seed", type=int, default=1, help="which fault hits which job")
    options = parser.parse_args()
    with ExitStack() as closing:
        try:
            project = find_project(options, closing)
            from local.stack import InitError, TemplateError
        except NotAProject as error:
            parser.error(str(error))
        # Imported late: it takes `local` from the project.
        from tests.tools.prove.campaign import Campaign
        from tests.tools.prove.report import Report

        engine = load_engine(project.engine)
        campaign = Campaign(engine, assign(engine, options.jobs, options.seed), say)
        say(f"{options.jobs} jobs on {project.path}, worker: {engine.name}, seed {options.seed}")
        try:
            campaign.run(project.path, dict(options.parameter))
        except (InitError, TemplateError) as error:
            parser.error(f"The laptop stack of {project.path} does not start: {error}")
    report = Report(engine, campaign.jobs, campaign.unnamed)
    print(*report.lines(), sep="\n")
    print(
        f"{options.jobs} jobs, seed {options.seed}, in {campaign.seconds:.0f} s:"
        f" {report.violations} violations"
    )
    return 1 if report.violations else 0


def add_project(parser: argparse.ArgumentParser) -> None:
    """Let a command line name the project, or the engine of a fresh one."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "project", nargs="?", type=Path, help="a generated project; a fresh one by default"
    )
    which.add_argument("--worker", choices=ENGINES, help="the engine of a fresh project")
    parser.add_argument(
        *("-p", "--parameter"),
        type=_parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a template parameter of the project",
    )


def find_project(options: argparse.Namespace, closing: ExitStack) -> Project:
    """Return the project that the command line names, or a fresh one.

    Puts the project's `local` on the import path.

    Raises:
        NotAProject: The folder is not a generated project.
    """
    path = options.project
    if path is None:
        scratch = closing.enter_context(tempfile.TemporaryDirectory(prefix="prove-"))
        path = generate(Path(scratch), options.worker or ENGINES[0])
    return Project.open(path)


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of jobs. Use 1 or more.")
    return int(text)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text} has no value. Write NAME=VALUE.")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
