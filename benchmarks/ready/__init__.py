"""The ready bundles of the package: their frozen test, their training text, and what they make of the test."""
