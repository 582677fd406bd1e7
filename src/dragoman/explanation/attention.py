"""Figures of one translation, from its trace: alignment, every head, the candidates of each step. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.heat import HeatMap, heat_maps
from dragoman.explanation.style import PALE, QUIET, drawing, fit, new_figure
from dragoman.explanation.trace import Trace, rank_names

FIGURES = ("alignment", "cross", "encoder", "decoder", "candidates")
"""What can be drawn: the alignment; every head of each kind of attention; what each step chose among."""

TAKEN = "#8fc3e6"  # between the paper and the blue of the scale: letters on it are dark
_WEIGHT = "attention weight (each row sums to 1)"


def figure(trace: Trace, name: str) -> Any:
    """Draw one of ``FIGURES``.

    Raises:
        ConfigError: There is no figure of this name, or matplotlib or a font is missing.
        DecodeError: The model has no such attention.
    """
    if name not in FIGURES:
        raise ConfigError(f"no figure is called {name!r}: choose {', '.join(FIGURES)}")
    if name == "alignment":
        return alignment(trace)
    return candidates(trace) if name == "candidates" else heads(trace, name)


def alignment(trace: Trace) -> Any:
    """Which source each target came from (``Trace.alignment``): target down, source across."""
    rows, columns = trace.tokens("cross")
    return heat_maps([HeatMap(trace.alignment(), "", rows, columns)], "target, first to last", "source", _WEIGHT)


def heads(trace: Trace, kind: str) -> Any:
    """Every head of every layer of one kind of attention, a row of maps for each layer.

    Raises:
        DecodeError: The model has no attention of this kind.
    """
    layers = trace.layers(kind)
    if not layers:
        raise DecodeError(f"this model has no {kind} attention to draw")
    return head_maps(layers, *trace.tokens(kind), kind)


def head_maps(layers: Sequence[Any], rows: Sequence[str], columns: Sequence[str], kind: str) -> Any:
    """The maps of ``heads`` from weights alone.

    Args:
        layers: For each layer its weights ``(H, Q, K)``; as many heads in each.
        rows: The queries' tokens, ``Q`` of them; ``columns`` the keys', ``K``.
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
    """Maps in a row: at most four, so that letters stay readable, and every row as full."""
    return max(n for n in range(1, 5) if n_heads % n == 0)


def candidates(trace: Trace) -> Any:
    """What each step took, and the likeliest it could have taken, as bars of probability: a step a row."""
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
        spot.set_xticks([gap * i for i in range(n_best)], rank_names(n_best))
        spot.tick_params(length=0)
        spot.xaxis.tick_top()
        for label in spot.get_xticklabels():
            label.set(ha="left", color=QUIET)
        spot.spines[:].set_visible(False)
        spot.set(xlim=(0, gap * n_best), ylim=(len(steps) - 0.4, -0.6), ylabel="target, first to last",
                 xlabel="probability of the likeliest next subwords (a full column is 100%); blue: taken")  # fmt: skip
        fit(figure, axes, 1.5 * n_best, 0.1 + 0.28 * len(steps))
    return figure


def percent(share: float) -> str:
    """At most two digits: 95%, 4.2%, <0.1%."""
    return "<0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"
