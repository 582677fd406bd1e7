"""A trace as JSON, and as one HTML file to explore: links between words, every head, decoding step by step.

The file needs no network. Its content security policy allows no other sources, and no scripts but its own
(``pages/explorer.js`` and ``pages/explanation.js``). It holds texts of the user as JSON only.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.explanation.trace import KINDS, Trace
from dragoman.explanation.words import Span
from dragoman.files import explained, write_text
from dragoman.pages.colours import scale
from dragoman.pages.render import render


def save_page(trace: Trace, path: Path) -> None:
    """Write the page of a trace to a file, with the folders above it.

    Raises:
        DragomanError: The file cannot be written.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(trace))


def page(trace: Trace) -> str:
    """Return the page of a trace as HTML."""
    return render("explanation.html", source=trace.source, content={"trace": trace_data(trace), "scale": scale()})


def trace_data(trace: Trace) -> dict[str, Any]:
    """Return all that the explorer shows, as JSON types; the server answers with the same."""
    views = [_view("subwords", trace, trace)]
    if trace.src.words == trace.src.tokens and trace.tgt.words == trace.tgt.tokens:
        views[0]["name"] = "words"
    else:
        views.insert(0, _view("words", trace.by_words(), trace))
    return {
        "source": trace.source,
        "translation": trace.translation,
        "src_lang": trace.src.lang or "",
        "tgt_lang": trace.tgt.lang or "",
        "model": dict(trace.model),
        "forced": trace.n_forced,
        "views": views,
        "steps": [step._asdict() for step in trace.steps],
    }


def _view(name: str, shown: Trace, tokens: Trace) -> dict[str, Any]:
    """Return one view of a trace, between words or between subwords, as JSON types.

    Weights between words are not included: the page computes them from those between subwords, which halves its size.

    Args:
        name: ``words`` or ``subwords``.
        shown: The trace with the tokens of this view.
        tokens: The trace with subwords as tokens; spans are positions among these.
    """
    src, tgt = [
        side.spans if shown is not tokens else [(i, i + 1) for i in range(len(side.tokens))]
        for side in (tokens.src, tokens.tgt)
    ]  # fmt: skip
    so_far = [(0, 1), *((start + 1, stop + 1) for start, stop in tgt[:-1])]  # target after the start token
    spans: dict[str, tuple[Sequence[Span], Sequence[Span]]] = {
        "cross": (tgt, src), "encoder": (src, src), "decoder": (tgt, so_far),
    }  # fmt: skip
    kinds = {}
    for kind in KINDS:
        if layers := shown.layers(kind):
            rows, columns = shown.tokens(kind)
            weights = np.stack(layers)  # (layers, H, Q, K)
            kinds[kind] = {
                "rows": rows, "rows_lang": (shown.src if kind == "encoder" else shown.tgt).lang or "",
                "columns": columns, "columns_lang": (shown.tgt if kind == "decoder" else shown.src).lang or "",
                "row_spans": spans[kind][0], "column_spans": spans[kind][1],
                "shape": weights.shape, **({"weights": _packed(weights)} if shown is tokens else {}),
            }  # fmt: skip
    return {
        "name": name,
        "kinds": kinds,
        "steps": [i for i, (first, stop) in enumerate(tgt) for _ in range(first, stop)],
    }


def _packed(weights: Any) -> str:
    """Return weights from 0 to 1 as base64 of 16-bit integers, low byte first."""
    return base64.b64encode(np.round(weights.clip(0, 1) * 65535).astype("<u2").tobytes()).decode()
