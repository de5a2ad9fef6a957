"""Rules that every generated template.yaml keeps, and that neither SAM nor cfn-lint knows.

A rule is a generator of faults. It comes with edits that break it, so that it can be seen to work.
"""

from tests.helpers.rules import alarms, company, functions, http_api, queues, tables, whole
from tests.helpers.rules.rule import RULES, Edit, Rule, put

__all__ = [
    "RULES",
    "Edit",
    "Rule",
    "alarms",
    "company",
    "functions",
    "http_api",
    "put",
    "queues",
    "tables",
    "whole",
]
