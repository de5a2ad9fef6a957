"""The HTTP contract, attacked."""
