"""What a generated README tells to send is what the project accepts."""

import json

import pytest
from jsonschema import Draft7Validator

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS
from tests.helpers.markdown import Document


@pytest.mark.parametrize("worker", QUESTIONS["worker"])
@pytest.mark.parametrize("auth", QUESTIONS["auth"])
def test_payloads_in_the_readme_keep_the_schema(worker: str, auth: str, baked: Oven) -> None:
    project = baked(worker=worker, auth=auth)
    schema = Draft7Validator(json.loads(project.read("src/payload.schema.json")))
    sent = [
        json.loads(command[command.index("-d") + 1])
        for block in Document(project.path / "README.md").commands()
        for command in block
        if command[0] == "curl" and any(word.endswith("/jobs") for word in command)
    ]

    assert len(sent) == 2  # to the laptop stack, to the deployed API
    for payload in sent:
        schema.validate(payload)
