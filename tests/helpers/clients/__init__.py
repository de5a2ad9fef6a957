"""Tools that read a project's OpenAPI document: linters, and generators of clients."""
