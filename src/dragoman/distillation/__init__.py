"""Text that models make, and what learns from it: ``augment`` more training text, ``distill`` a small, fast student."""
