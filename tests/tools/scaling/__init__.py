"""The scaling model and what draws its page."""
