"""The laptop stack: this project's template.yaml, run as AWS would, on this machine."""
