"""The emulated AWS of the unit tests: what template.yaml declares, on this machine.

Importing this module starts it, and imports the functions in their environment, since that is
when they read their settings.
"""

import importlib
import os
from pathlib import Path

import pytest

from local.emulator import Emulator
from local.template import Template
from tests import samples

AWS = Emulator(Template.load(Path(__file__).parents[2] / "template.yaml"))
AWS.start()
AWS.create()
samples.prepare(AWS.client, AWS.ref)

_ENVIRONMENT = {
    name: value
    for function in AWS.template.functions()
    for name, value in AWS.environment(function.name).items()
}


def set_environment(patch: pytest.MonkeyPatch) -> None:
    """Give this process the environment of the functions, and nothing of another account."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "POWERTOOLS_"))]:
        patch.delenv(name)
    for name, value in _ENVIRONMENT.items():
        patch.setenv(name, value)


with pytest.MonkeyPatch.context() as _patch:
    set_environment(_patch)
    for _function in AWS.template.functions():
        importlib.import_module(_function.handler.rpartition(".")[0])
