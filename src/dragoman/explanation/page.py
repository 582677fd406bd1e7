"""A trace as one HTML file to explore: words whose partners light up, every head, the candidates of each step.

The file holds all it needs and works without a network; its policy lets nothing in from elsewhere, and no script run
but its own (``page.js``, ``page.css``). Texts of the user stand in it as JSON only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.explanation.style import BLUES, blend
from dragoman.explanation.trace import KINDS, Trace, rank_names
from dragoman.files import explained, write_text

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
    files = resources.files(__package__)
    style, script = ((files / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    policy = f"default-src 'none'; script-src 'sha256-{sums[0]}'; style-src 'unsafe-inline'; base-uri 'none'"
    content = json.dumps(page_data(trace), ensure_ascii=False, separators=(",", ":"))
    content = content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    n_best = max(len(step.best) for step in trace.steps)
    ranks = "".join(f'<th scope="col">{rank}</th>' for rank in rank_names(n_best))
    return f"""<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>dragoman: {html.escape(trace.source)}</title>
<style>{style}</style>
</head>
<body>
<header>
<div><h1>What the model looked at</h1>
<p class="about">To choose each next word the model weighs every word it may see; the weights of one word sum to 100%.
Each layer does so several times over, in heads that look for different things.</p></div>
<button type="button" class="theme" id="theme"></button>
</header>
<noscript><p>This page needs JavaScript, which is switched off; nothing is loaded from elsewhere.</p></noscript>
<main>
<div class="controls"><div class="choice" id="kinds" role="group" aria-label="Whose attention"></div>
<div class="choice" id="views" role="group" aria-label="Words or subwords"></div>
<span class="about" id="name"></span></div>
<section class="sentences" id="sentences" aria-label="The sentences">
<svg class="links" id="links" aria-hidden="true"></svg>
<div class="row" id="keys" role="group" aria-label="Looked at"></div>
<div class="row" id="queries" role="group" aria-label="Looking"></div>
<p class="said" id="said" aria-live="polite"></p>
</section>
<div class="big"><table class="map" id="map"></table></div>
<div class="legend"><span>0</span><i id="ramp"></i><span>1</span><span>attention weight; each row sums to 1</span></div>
<h2>Every head</h2>
<p class="about">Rows look at columns, as above. Choose one to enlarge it.</p>
<div id="heads"></div>
<h2>What each step chose among</h2>
<p class="about">The likeliest next subwords with their probability, in blue the one taken. The search looks ahead, so
it may take another than the likeliest; · is a space.</p>
<div class="wide"><table class="steps" id="steps">
<thead><tr><th scope="col">taken</th>{ranks}</tr></thead><tbody></tbody></table></div>
</main>
<script type="application/json" id="data">{content}</script>
<script>{script}</script>
</body>
</html>
"""


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
