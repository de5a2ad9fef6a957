"""The HTTP contract: every requirement once, against the laptop stack or a deployed API."""
