"""The drawings of the course: ``python -m benchmarks.course`` writes those of chapters 1 to 6 into docs/course.

Each is made of the parts of ``benchmarks.diagrams``; a quantity has the colour of its role (``diagrams.ROLES``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.diagrams import Box, Grid, Part, diagram
from benchmarks.harness.environments import ROOT

FOLDER = ROOT / "docs/course"
WORDS = ("she", "saw", "him", "(pad)")

Array = NDArray[np.float64]


def texts(values: Array, decimals: int = 0) -> list[list[str]]:
    """Return the numbers of a matrix as the cells of a drawing; NaN becomes a hidden cell."""
    return [["" if np.isnan(value) else f"{value:.{decimals}f}" for value in row] for row in values]


def grid(x: float, y: float, values: Array, kind: str, title: str, decimals: int = 0) -> Grid:
    """Return a matrix of the worked example, with the names of its rows."""
    return Grid(x, y, texts(values, decimals), kind, title, WORDS)


# --- the colours ------------------------------------------------------------------------------------------------------


def colours() -> str:
    """Draw one box for each role, as the index of the course shows them."""
    names = {"x": "x", "q": "queries q", "k": "keys k", "v": "values v", "w": "weights"}
    parts: list[Part] = [Box(4 + 112 * i, 4, 104, 32, [name], kind) for i, (kind, name) in enumerate(names.items())]
    return diagram(564, 40, "Colours of the course", "Five boxes: x, queries, keys, values, weights.", parts)


# --- attention --------------------------------------------------------------------------------------------------------


def worked() -> dict[str, Array]:
    """Compute attention for four words with the small whole numbers of the chapter on attention."""
    x = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]])
    w_q = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]])
    w_k = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    q, k, v = x @ w_q, x @ w_k, x @ np.diag([1, 2, 3, 4])
    scores = q @ k.T / 2
    may_attend = np.tri(4, dtype=bool) & np.array([True, True, True, False])
    masked = np.where(may_attend, scores, np.nan)
    exps = np.where(may_attend, np.exp(scores), 0)
    weights = exps / exps.sum(axis=1, keepdims=True)
    return {"x": x, "q": q, "k": k, "v": v, "scores": scores, "masked": masked, "weights": weights, "out": weights @ v}


def attention() -> str:
    """Draw every matrix of the worked example, from the input to the output."""
    made = worked()
    left = [48 + 178 * i for i in range(4)]
    above = [(left[0], "x", "x", "X"), (left[1], "q", "q", "Q = X W_q"), (left[2], "k", "k", "K = X W_k"),
             (left[3], "v", "v", "V = X W_v")]  # fmt: skip
    parts: list[Part] = [grid(x, 30, made[name], kind, title) for x, name, kind, title in above]
    weights = made["weights"]
    parts += [
        grid(left[0], 186, made["scores"], "w", "Q Kᵀ / √d_k", 1),
        grid(left[1], 186, made["masked"], "w", "masked", 1),
        grid(left[2], 186, weights, "w", "softmax: weights", 2)._replace(shades=weights.tolist()),
        grid(left[3], 186, made["out"], "v", "weights · V", 1),
    ]
    return diagram(
        730, 296, "Attention with four words",
        "Above: the inputs and their queries, keys and values, four by four whole numbers. Below: scores, the same with "
        "the later words and the padding hidden, the weights of each row, and the weighted means of the values.", parts,
    )  # fmt: skip


DRAWINGS: dict[str, Callable[[], str]] = {"colours": colours, "attention": attention}
"""The function that draws each file of docs/course."""


def write(drawings: Sequence[str] = tuple(DRAWINGS)) -> None:
    """Write drawings into docs/course."""
    for name in drawings:
        (FOLDER / f"{name}.svg").write_text(DRAWINGS[name](), encoding="utf-8")


def main() -> None:
    """Write all drawings."""
    write()


if __name__ == "__main__":
    main()
