"""Optimised implementations of the plain model, each compared with its plain version by a test."""
