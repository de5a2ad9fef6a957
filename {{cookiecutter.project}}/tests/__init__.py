"""The tests: unit, contract (any deployment) and local (what needs control of the stack)."""
