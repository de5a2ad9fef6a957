"""The kit's tests, and the commands behind `make`."""

from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
"""The kit's working tree."""
