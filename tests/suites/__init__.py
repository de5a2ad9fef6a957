"""A generated project's own suites: that they pass, and that they notice a change."""
