"""Which process of pytest-xdist runs which tests, and where the time went.

The marks and `--dist loadgroup` of pytest-xdist 3.8 have no effect with pytest 9.2, so the kit has
a scheduler of its own: https://pytest-xdist.readthedocs.io/en/stable/how-to.html
"""

from collections import defaultdict

import pytest
from xdist.scheduler import LoadScopeScheduling

LONG = (
    "tests/services/test_services.py",
    "tests/prove/test_prove.py",
    "tests/containers/test_support.py",
    "tests/containers/test_invoke.py",
    "tests/suites/test_suites.py",
    "tests/contract/test_fuzz.py",
    "tests/generation/test_tree.py",
    "tests/template/test_template.py",
)
"""What takes a minute or more comes first, so that no process is left alone with it in the end."""

APART = ("tests/services/test_services.py", "tests/suites/test_suites.py")
"""Files whose tests share nothing: each test is a group of its own."""


def group(nodeid: str) -> str:
    """Return the group of a test. One process runs a whole group, whose tests share fixtures."""
    file = nodeid.partition("::")[0]
    return nodeid if file in APART else file


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
    """Hands whole groups to the processes, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduler:
    """Use that scheduler."""
    return Scheduler(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of pytest-xdist, put long groups first."""
    order = {file: number for number, file in enumerate(LONG, -len(LONG))}
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long the slowest files took, and how busy each process was."""
    files, processes = defaultdict[str, float](float), defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                files[report.nodeid.partition("::")[0]] += report.duration
                processes[getattr(report, "worker_id", "")] += report.duration
    if len(processes) > 1:
        terminalreporter.section("slowest 10 files")
        for file, seconds in sorted(files.items(), key=lambda item: -item[1])[:10]:
            terminalreporter.write_line(f"{seconds:8.1f} s  {file}")
        for process, seconds in sorted(processes.items()):
            terminalreporter.write_line(f"{seconds:8.1f} s  in process {process}")
