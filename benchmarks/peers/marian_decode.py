"""Marian, by the binding inside the wheel of pymarian, with a model that it trained itself."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from serve import Run, chunk_ms, serve


class ConfigError(ValueError):
    """What is asked for is not there."""


def prepare(
    model: str, sources: str, precision: str, workers: int, threads: int, beam_size: int, length_penalty: float,
    steps: int | None, command: list[str],
) -> Run:  # fmt: skip
    """Convert the model if need be; a translator is made and warmed up for each size of batches, outside the time.

    The parameters are those of ``ours_decode``, but:

    Args:
        model: The folder of a training: ``model.npz`` and one vocabulary, or two whose names sort source first.
        command: Marian's own command line, which ends with the folder of the unpacked wheel.

    Raises:
        ConfigError: A number of steps is asked for.
    """
    if steps is not None:
        raise ConfigError("Marian takes no number of steps")
    folder, scratch = Path(model), Path(tempfile.mkdtemp())
    text = json.loads(Path(sources).read_text(encoding="utf-8"))
    weights, found = folder / "model.npz", sorted(folder.glob("*.spm"))
    vocabularies = [found[0], found[-1]]

    def tool(*arguments: object) -> str:
        whole = [*command, *map(str, arguments)]
        return subprocess.run(whole, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

    if precision == "int8":
        weights = scratch / "model.bin"
        tool("convert", "--from", folder / "model.npz", "--to", weights, "--gemm-type", "intgemm8")
    sys.path.insert(0, command[-1])
    marian = importlib.import_module("_pymarian")
    translators: dict[int, Any] = {}

    def translator(batch: int) -> Any:
        if batch not in translators:
            translators.clear()  # each has a workspace of its own
            options = [
                "--models", weights, "--vocabs", *vocabularies, "--beam-size", beam_size, "--normalize", length_penalty,
                "--cpu-threads", workers * threads, "--mini-batch", batch, "--maxi-batch", 100, "--maxi-batch-sort",
                "src", "--quiet", "--quiet-translation",
            ]  # fmt: skip
            translators[batch] = marian.Translator(" ".join(map(str, options)))
            translated(batch, text["texts"][:16])
        return translators[batch]

    def translated(batch: int, lines: list[str]) -> list[str]:
        return list(translators[batch].translate("\n".join(lines)).split("\n"))

    def run(what: str, batch: int = 1, count: int | None = None) -> dict[str, Any]:
        lines = text["texts"][:count]
        if what == "score":
            pair = [scratch / "src", scratch / "tgt"]
            for path, side in zip(pair, (lines, text["refs"][:count]), strict=True):
                path.write_text("".join(line + "\n" for line in side), encoding="utf-8")
            told = tool(
                "score", "--model", weights, "--vocabs", *vocabularies, "--train-sets", *pair, "--cpu-threads",
                workers * threads, "--workspace", 500, "--quiet",
            )  # fmt: skip
            return {"log_probs": [float(line) for line in told.split()]}
        translator(batch)
        if what == "chunks":
            return {"ms": chunk_ms(lambda chunk: translated(batch, chunk), lines, batch)}
        began = time.perf_counter()
        found = translated(batch, lines)
        return {"seconds": time.perf_counter() - began, "texts": found}

    return run


if __name__ == "__main__":
    serve(prepare, ["pymarian"])
