"""Tests of `local/`, the laptop stack: every rule of Lambda, SQS and API Gateway it follows."""

import sys
from pathlib import Path

# The package under test lies in the template; it is copied as it is, so it runs from there.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "{{cookiecutter.project}}"))
