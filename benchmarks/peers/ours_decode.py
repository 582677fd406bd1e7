"""dragoman's translator. Off are what no other system does: the guard and the confidence."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from serve import Run, chunk_ms, serve

from dragoman.cli import environment

environment.prepare("translate")

import torch  # noqa: E402

from dragoman.bundle import Bundle  # noqa: E402
from dragoman.toolkits.choice import Engines  # noqa: E402
from dragoman.toolkits.engine import Models  # noqa: E402
from dragoman.translation.notes import Events  # noqa: E402
from dragoman.translation.translator import Translation, Translator  # noqa: E402


class _Endless(Models):
    """Of which a translation may have exactly as many tokens as asked for."""

    longest = property(lambda self: Stretched.steps)  # type: ignore[assignment]


class Stretched(Translator):
    """Searches for exactly ``steps`` tokens where the model itself never ends."""

    steps = 0

    def __init__(self, *models: Bundle | Path | str, run: Path | None = None, device: str = "auto") -> None:
        super().__init__(*models, run=run, device=device)
        self._models = _Endless(self._models.bundles, self._models.run)
        self._engines = Engines(self._models)

    max_tokens = property(lambda self: 1_000_000)  # type: ignore[assignment]  # no line is split


def prepare(
    model: str, sources: str, precision: str, workers: int, threads: int, beam_size: int, length_penalty: float,
    steps: int | None, engine: str = "torch", stop: str = "first", vocabulary: str = "whole",
) -> Run:  # fmt: skip
    """Load the bundle and warm up.

    Args:
        sources: A JSON file with ``texts``, ``refs`` and ``ids``.
        steps: So many tokens of each translation, with a model that never ends; None: as the model says.
        stop: ``first``: when as many translations are finished as the beam is wide, as the other systems do; ``safe``:
            when nothing better can come, as is our default.
        vocabulary: ``whole``, or the run's ``shortlist``.
    """
    torch.set_num_threads(threads)
    text = json.loads(Path(sources).read_text(encoding="utf-8"))
    Stretched.steps = steps or 0
    translator = (Stretched if steps else Translator).load(model, "cpu")
    translator.confidence = None
    settings: dict[str, Any] = dict(
        beam_size=beam_size, length_penalty=length_penalty, precision=precision, engine=engine, threads=workers,
        patience={"first": 1.0, "safe": None}[stop], guard=False,
        shortlist=vocabulary == "shortlist", events=Events(warn=lambda note: print(note, flush=True)),
    )  # fmt: skip

    def translate(lines: list[str], batch: int | None) -> list[Translation]:
        return translator.translate(lines, batch_tokens=batch, **settings)

    def run(what: str, batch: int | None = None, count: int | None = None) -> dict[str, Any]:
        lines = text["texts"][:count]
        if what == "score":
            found = translator.score(lines, text["refs"][:count])
            return {"log_probs": [one.log_prob for one in found]}
        if what == "chunks":
            return {"ms": chunk_ms(lambda chunk: translate(chunk, 10**6), lines, batch or 1)}
        began = time.perf_counter()
        found = translate(lines, batch)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "texts": [one.text for one in found], "n_tokens": [one.n_tokens for one in found]}

    translate(text["texts"][:16], None)
    return run


if __name__ == "__main__":
    serve(prepare, ["torch", "dragoman"])
