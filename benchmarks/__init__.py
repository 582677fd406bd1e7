"""Measurements. Each is a module: ``python -m benchmarks.NAME``; results go to ``benchmarks/results/NAME.json``."""
