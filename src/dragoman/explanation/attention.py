"""Figures of one translation, from its trace: alignment, all heads, the candidates of each step. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.errors import DecodeError
from dragoman.explanation.heat import HeatMap, heat_maps
from dragoman.explanation.style import PALE, QUIET, drawing, fit, new_figure
from dragoman.explanation.trace import Trace

FIGURES = ("alignment", "cross", "encoder", "decoder", "candidates")
"""Names of the figures: the alignment, every head of each kind of attention, and the candidates of each step."""

TAKEN = "#8fc3e6"  # between the paper and the blue of the scale: dark letters are readable on it
_WEIGHT = "attention weight (each row sums to 1)"


def figure(trace: Trace, name: str) -> Any:
    """Draw one of ``FIGURES`` and return the matplotlib Figure.

    Raises:
        ConfigError: The name is unknown, or matplotlib or a font is missing.
        DecodeError: The model has no such attention.
    """
    if name == "alignment":
        return alignment(trace)
    return candidates(trace) if name == "candidates" else heads(trace, name)


def alignment(trace: Trace) -> Any:
    """Draw ``Trace.alignment`` as a heat map: target tokens down, source tokens across."""
    rows, columns = trace.tokens("cross")
    return heat_maps([HeatMap(trace.alignment(), "", rows, columns)], "target, first to last", "source", _WEIGHT)


def heads(trace: Trace, kind: str) -> Any:
    """Draw a heat map for every head of one kind of attention, a row of maps for each layer.

    Raises:
        DecodeError: The model has no attention of this kind.
    """
    layers = trace.layers(kind)
    if not layers:
        raise DecodeError(f"this model has no {kind} attention to draw")
    return head_maps(layers, *trace.tokens(kind), kind)


def head_maps(layers: Sequence[Any], rows: Sequence[str], columns: Sequence[str], kind: str) -> Any:
    """Draw the heat maps of ``heads`` from weights alone.

    Args:
        layers: The weights ``(H, Q, K)`` of each layer, with the same number of heads.
        rows: The Q tokens of the queries; ``columns`` the K tokens of the keys.
        kind: ``cross``, ``encoder`` or ``decoder``.
    """
    maps = [
        HeatMap(head, f"layer {i + 1}, head {j + 1}", rows, columns)
        for i, layer in enumerate(layers)
        for j, head in enumerate(layer)
    ]
    labels = {
        "cross": ("target", "source"), "encoder": ("source, looking", "source, looked at"),
        "decoder": ("target, next word", "target, so far"),
    }  # fmt: skip
    return heat_maps(maps, *labels[kind], _WEIGHT, n_columns=_columns(len(layers[0])))


def _columns(n_heads: int) -> int:
    """Return the number of maps in a row: the largest divisor up to 4, so that rows are full and letters readable."""
    return max(n for n in range(1, 5) if n_heads % n == 0)


def candidates(trace: Trace) -> Any:
    """Draw the candidates of each step as bars of probability, a row for each step; the subword taken is blue."""
    steps = trace.steps
    n_best = max(len(step.best) for step in steps)
    gap = 1.3  # from one column of bars to the next; a bar of 1 is a full column
    with drawing([text for step in steps for text in (step.chosen, *(name for name, _ in step.best))]):
        figure, axes = new_figure(1, 1)
        spot = axes[0, 0]
        for row, step in enumerate(steps):
            for column, (name, probability) in enumerate(step.best):
                taken = name == step.chosen and column == step.rank - 1
                spot.barh(row, probability, left=gap * column, height=0.72, color=TAKEN if taken else PALE)
                spot.annotate(f"{name}  {percent(probability)}", (gap * column, row), (4, 0), va="center",
                              textcoords="offset points", fontsize=9)  # fmt: skip
        spot.set_yticks(range(len(steps)), [step.chosen for step in steps])
        spot.set_xticks([gap * i for i in range(n_best)], _rank_names(n_best))
        spot.tick_params(length=0)
        spot.xaxis.tick_top()
        for label in spot.get_xticklabels():
            label.set(ha="left", color=QUIET)
        spot.spines[:].set_visible(False)
        spot.set(xlim=(0, gap * n_best), ylim=(len(steps) - 0.4, -0.6), ylabel="target, first to last",
                 xlabel="probability of the likeliest next subwords (a full column is 100%); blue: taken")  # fmt: skip
        fit(figure, axes, 1.5 * n_best, 0.1 + 0.28 * len(steps))
    return figure


def _rank_names(n: int) -> tuple[str, ...]:
    """Return the names of the first ``n`` ranks: likeliest, second, ..., 6th."""
    names = ("likeliest", "second", "third", "fourth", "fifth")
    return (*names, *(f"{rank}th" for rank in range(len(names) + 1, n + 1)))[:n]


def percent(share: float) -> str:
    """Return a share as a percentage of at most two digits: 95%, 4.2%, <0.1%."""
    return "<0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"
