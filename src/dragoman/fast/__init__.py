"""Optimised implementations of the plain model, each compared with its plain version by a test."""

LEAST_SOURCE = 16
"""Shorter sources are padded to this number of tokens: a softmax over fewer is many times slower on a CPU."""
