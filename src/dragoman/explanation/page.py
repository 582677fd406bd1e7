"""A trace as one HTML file to explore: words whose partners light up, every head, the candidates of each step.

The file holds all it needs and works without a network; its policy lets nothing in from elsewhere, and no script run
but its own (``pages/explanation.*``). Texts of the user stand in it as JSON only.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.explanation.style import BLUES, blend
from dragoman.explanation.trace import KINDS, Trace, rank_names
from dragoman.files import explained, write_text
from dragoman.pages.render import render

DARK = ("#16181b", "#2f7fb8", "#eaf5ff")
"""The scale on a dark page: nothing is the page, all is nearly white."""

_TITLES = {"cross": "Translation to source", "encoder": "Source to itself", "decoder": "Translation to itself"}
_LABELS = {
    "cross": {"keys": "source (looked at)", "queries": "translation (looking)"},
    "encoder": {"keys": "source (looked at)", "queries": "source (looking)"},
    "decoder": {"keys": "translation so far (looked at)", "queries": "next word (looking)"},
}
_HINT = "Point at a word, or walk along the words with the arrow keys; a click holds it, Escape lets go."


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
    n_best = max(len(step.best) for step in trace.steps)
    return render("explanation.html", source=trace.source, ranks=rank_names(n_best), content=page_data(trace))


def page_data(trace: Trace) -> dict[str, Any]:
    """What the page shows, as JSON has it."""
    views = [_view("Words", trace.by_words(), trace), _view("Subwords", trace, trace)]
    return {
        "views": views[:1] if trace.src.words == trace.src.tokens and trace.tgt.words == trace.tgt.tokens else views,
        "titles": _TITLES,
        "labels": _LABELS,
        "hint": _HINT,
        "tgt_lang": trace.tgt.lang or "",
        "steps": [step._asdict() for step in trace.steps],
        "scale": {theme: [_hex(colour) for colour in blend(stops, 256)] for theme, stops in
                  (("light", BLUES), ("dark", DARK))},
    }  # fmt: skip


def _view(name: str, shown: Trace, tokens: Trace) -> dict[str, Any]:
    """A trace between words or between subwords; ``steps`` says of each step which row it made."""
    spans = tokens.tgt.spans if shown is not tokens else [(i, i + 1) for i in range(len(tokens.tgt.tokens))]
    kinds = {}
    for kind in KINDS:
        if layers := shown.layers(kind):
            rows, columns = shown.tokens(kind)
            weights = np.stack(layers)  # (layers, H, Q, K)
            kinds[kind] = {
                "rows": rows, "rows_lang": (shown.src if kind == "encoder" else shown.tgt).lang or "",
                "columns": columns, "columns_lang": (shown.tgt if kind == "decoder" else shown.src).lang or "",
                "shape": weights.shape, "weights": _packed(weights),
            }  # fmt: skip
    return {
        "name": name,
        "kinds": kinds,
        "steps": [i for i, (first, stop) in enumerate(spans) for _ in range(first, stop)],
    }


def _packed(weights: Any) -> str:
    """Weights in two bytes each, low byte first, as base64."""
    return base64.b64encode(np.round(weights.clip(0, 1) * 65535).astype("<u2").tobytes()).decode()


def _hex(colour: Any) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)
