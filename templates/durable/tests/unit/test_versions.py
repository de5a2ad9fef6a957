"""Each change of the worker in template.yaml makes a version: jobs run on published ones only."""

from pathlib import Path

from local.template import Template
from local.versions import check


def test_every_change_of_the_worker_makes_a_version() -> None:
    """If it fails, write the line that it prints into template.yaml."""
    check(Template.load(Path(__file__).parents[2] / "template.yaml"))
