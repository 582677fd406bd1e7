"""A trace as JSON, and as one HTML file to explore: links between words, every head, decoding step by step.

The file holds all it needs and works without a network; its policy lets nothing in from elsewhere, and no script run
but its own (``pages/explorer.js`` and ``pages/explanation.js``). Texts of the user are in it as JSON only.
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
    """Write the page.

    Raises:
        DragomanError: It cannot be written.
    """
    text = page(trace)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


def page(trace: Trace) -> str:
    """The whole HTML."""
    return render("explanation.html", source=trace.source, content={"trace": trace_data(trace), "scale": scale()})


def trace_data(trace: Trace) -> dict[str, Any]:
    """What the explorer shows, as JSON has it."""
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
    """A trace between words or between subwords; ``steps`` says which row each step made.

    Spans are positions of tokens. Weights between words are computed in the page from those between subwords, which
    halves it.
    """
    src, tgt = [
        side.spans if shown is not tokens else [(i, i + 1) for i in range(len(side.tokens))]
        for side in (tokens.src, tokens.tgt)
    ]  # fmt: skip
    so_far = [(0, 1), *((start + 1, stop + 1) for start, stop in tgt[:-1])]  # behind the start
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
    """Weights in two bytes each, low byte first, as base64."""
    return base64.b64encode(np.round(weights.clip(0, 1) * 65535).astype("<u2").tobytes()).decode()
