"""The scaling model."""
