"""Synthetic data: ``augment`` makes more training data, ``distill`` trains a small, fast student on it."""
