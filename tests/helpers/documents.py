"""Reads generated documents as their readers do."""

import itertools
from typing import Any

import yaml

from tests.helpers.markdown import parse


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as what they hold."""


def _untagged(loader: _Loader, _tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    assert isinstance(node, yaml.MappingNode)
    return loader.construct_mapping(node, deep=True)


_Loader.add_multi_constructor("!", _untagged)


def read_yaml(text: str) -> Any:
    """A YAML document, CloudFormation's or not."""
    return yaml.load(text, Loader=_Loader)


def read_markdown(text: str) -> list[tuple[str, str]]:
    """Headings and paragraphs that hold nothing but text: (tag, text)."""
    found = []
    for before, token in itertools.pairwise(parse(text)):
        children = token.children or []
        if token.type == "inline" and all(c.type.startswith("text") for c in children):
            found.append((before.tag, "".join(child.content for child in children)))
    return found
