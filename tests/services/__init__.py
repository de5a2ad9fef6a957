"""Services that users would build on a generated project, as the files that they would change."""
