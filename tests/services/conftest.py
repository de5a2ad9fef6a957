"""The services have tests of their own, which run in the projects that they are laid into."""

collect_ignore_glob = ["*/tests/*"]
