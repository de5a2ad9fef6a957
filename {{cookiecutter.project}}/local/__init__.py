"""The laptop stack: run this project's template.yaml on this machine as AWS would."""

__version__ = "0.1.0"
