"""Marian: its models, read."""
