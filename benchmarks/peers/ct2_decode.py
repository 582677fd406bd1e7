"""CTranslate2."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ctranslate2
from serve import Run, chunk_ms, serve

COMPUTE = {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"}


class ConfigError(ValueError):
    """What is asked for is not there."""


def prepare(
    model: str, sources: str, precision: str, workers: int, threads: int, beam_size: int, length_penalty: float,
    steps: int | None, batch_type: str = "examples", vocabulary: str = "whole",
) -> Run:  # fmt: skip
    """Load a converted model and warm up; the parameters are those of ``ours_decode``, and what a batch is counted in.

    Raises:
        ConfigError: A shortlist is asked for, and the run has none.
    """
    if vocabulary == "shortlist" and not (Path(model) / "vmap.txt").exists():
        raise ConfigError("shortlist: this run has none")
    text = json.loads(Path(sources).read_text(encoding="utf-8"))
    pieces = json.loads((Path(model) / "shared_vocabulary.json").read_text(encoding="utf-8"))
    ids = {piece: i for i, piece in enumerate(pieces)}
    src = [[pieces[i] for i in row] for row in text["ids"]]
    translator = ctranslate2.Translator(
        model, device="cpu", compute_type=COMPUTE[precision], inter_threads=workers, intra_threads=threads
    )
    settings = dict(
        beam_size=beam_size, length_penalty=length_penalty, max_decoding_length=steps or 80, batch_type=batch_type,
        use_vmap=vocabulary == "shortlist",
    )  # fmt: skip

    def translate(rows: list[list[str]], batch: int) -> list[list[int]]:
        found = translator.translate_batch(rows, max_batch_size=batch, **settings)
        return [[ids[piece] for piece in one.hypotheses[0]] for one in found]

    def run(what: str, batch: int = 1, count: int | None = None) -> dict[str, Any]:
        rows = src[:count]
        if what == "score":
            refs = [[pieces[i] for i in row] for row in text["ref_ids"][:count]]
            return {"log_probs": [sum(one.log_probs) for one in translator.score_batch(rows, refs)]}
        if what == "chunks":
            return {"ms": chunk_ms(lambda chunk: translate(chunk, batch), rows, batch)}
        began = time.perf_counter()
        found = translate(rows, batch)
        return {"seconds": time.perf_counter() - began, "ids": found}

    translate(src[:16], 16)
    return run


if __name__ == "__main__":
    serve(prepare, ["ctranslate2"])
