"""Measure sinusoidal and rotary positions, for the experiment positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from dragoman.reference import Array, position_angles, rotate, sinusoidal_positions


def wavelengths(d_model: int) -> Array:
    """Return the wavelength of each channel in positions, ``(d_model,)``; it is 2 pi for the first two."""
    pairs: Array = 2 * math.pi * 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.repeat(pairs, 2)


def mean_change(table: Array) -> Array:
    """Return the mean distance that each pair of channels moves in one step, ``(d_model / 2,)``."""
    pairs = table.reshape(len(table), -1, 2)
    change: Array = np.linalg.norm(np.diff(pairs, axis=0), axis=2).mean(axis=0)
    return change


def closest(d_model: int, n: int) -> dict[str, float]:
    """Find the two closest of ``n`` positions. Their distance depends only on their offset, so each offset is tried."""
    slow = position_angles(2, d_model)[1]  # radians for one step, (d_model / 2,)
    squared = np.zeros(n - 1)
    for start in range(0, n - 1, 4096):
        offsets = np.arange(start + 1, min(start + 4097, n))
        squared[start : start + len(offsets)] = (2 - 2 * np.cos(offsets[:, None] * slow)).sum(axis=1)
    best = int(squared.argmin())
    return {"d_model": d_model, "offset": best + 1, "distance": math.sqrt(squared[best])}


def distinct_rows(table: torch.Tensor) -> int:
    """Return the number of rows that are different, compared bit by bit."""
    return len({row.numpy().tobytes() for row in table.view(torch.uint8)})


def shift_error(table: Array, offset: int) -> float:
    """Return the greatest error of ``PE(pos + offset) = M PE(pos)``, where ``M`` rotates each pair of channels."""
    n, d_model = table.shape
    angles = offset * position_angles(2, d_model)[1]
    matrix = np.zeros((d_model, d_model))
    for i, angle in enumerate(angles):
        s, c = math.sin(angle), math.cos(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]  # channels are (sine, cosine)
    return float(np.abs(table[: n - offset] @ matrix.T - table[offset:]).max())


def ways_to_count(n: int) -> dict[str, Array]:
    """Return the positions 0 to n - 1 as vectors in four ways, each ``(n, width)``."""
    places = np.arange(n)
    return {
        "the number itself: 0, 1, 2, ...": places[:, None].astype(float),
        "its share of the length: p / (n − 1)": places[:, None] / (n - 1),
        "binary digits": (places[:, None] >> np.arange(n.bit_length()) & 1).astype(float),
        "sinusoids, d_model = 512": sinusoidal_positions(n, 512),
    }


def compare_ways_to_count(n: int) -> list[dict[str, Any]]:
    """Measure uniqueness, bounds and steps of all ``ways_to_count``, and the steps of twice as many positions."""
    longer = ways_to_count(2 * n)
    rows = []
    for name, table in ways_to_count(n).items():
        steps, steps_of_longer = (
            np.linalg.norm(np.diff(t, axis=0), axis=1) for t in (table, longer[name])
        )  # fmt: skip
        rows.append({
            "name": name, "distinct": len(np.unique(table, axis=0)), "of": n, "greatest": float(np.abs(table).max()),
            "least_step": float(steps.min()), "greatest_step": float(steps.max()),
            "least_step_of_longer": float(steps_of_longer.min()),
        })  # fmt: skip
    return rows


# --- attention scores ------------------------------------------------------------------------------------------------


def moved_scores(offset: int, n: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the score of two words, ``offset`` apart, at each of ``n`` places, for rotary and added positions."""
    d = 64
    q, k = rng.standard_normal((2, d))
    turned_q, turned_k = rotate(np.tile(q, (n + offset, 1))), rotate(np.tile(k, (n + offset, 1)))
    table = sinusoidal_positions(n + offset, d)
    w_q, w_k = rng.standard_normal((2, d, d)) / math.sqrt(d)
    added_q, added_k = (q + table) @ w_q.T, (k + table) @ w_k.T
    return {
        "rotary": (turned_q[offset:] * turned_k[:n]).sum(axis=1) / math.sqrt(d),
        "sinusoidal": (added_q[offset:] * added_k[:n]).sum(axis=1) / math.sqrt(d),
    }
