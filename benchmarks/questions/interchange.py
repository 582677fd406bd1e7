"""A run in other toolkits: exported, compared with itself by certificates, imported again; Marian's positions."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch

import dragoman
from benchmarks.record import save
from dragoman.bundle import load_bundle
from dragoman.data.corpus import read_lines
from dragoman.decoding.scoring import read_all
from dragoman.model.transformer import Transformer
from dragoman.toolkits.marian.read import N_POSITIONS, positions

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": dict(beam_size=1),
    "beam 5, n ** alpha": dict(beam_size=5, length_penalty=1.0, length_penalty_form="power"),
    "beam 5, the paper's penalty": dict(beam_size=5, length_penalty=0.6, length_penalty_form="gnmt"),
}
TABLES = ("src_positions.weight", "tgt_positions.weight")
EXPORTS = (
    ("ctranslate2", "float32"),
    ("ctranslate2", "int8"),
    ("huggingface", "float32"),
    ("onnx", "float32"),
    ("onnx", "int8"),
)


def shown(found: Any) -> dict[str, Any]:
    """What of a certificate is recorded."""
    scores = {
        one.metric: {"ours": one.a, "theirs": one.b, "p": one.p_randomisation} for one in found.comparisons
    }  # fmt: skip
    return {
        "lines": found.n_lines, "identical": found.n_identical, "most_nats": found.most_nats,
        "mean_nats": found.mean_nats, "cut_differently": found.n_cut_differently, "why": found.why,
        "megabytes": [round(n / 1e6, 2) for n in found.n_bytes], "seconds": found.seconds, "scores": scores,
        "versions": found.versions,
    }  # fmt: skip


def again(run: Path, folder: Path, out: Path, text: Path) -> dict[str, Any]:
    """A run and what is imported from its export: weights that differ, texts that are cut differently."""
    one, other = load_bundle(run), load_bundle(dragoman.import_model(folder, out))
    theirs = other.model.state_dict()
    lines = list(read_lines(text))
    cuts = zip(one.src_tokenizer.encode(lines), other.src_tokenizer.encode(lines), strict=True)
    return {
        "tensors_that_differ": sum(not torch.equal(w, theirs[name]) for name, w in one.model.state_dict().items()),
        "tensors": len(theirs), "texts_cut_differently": sum(a != b for a, b in cuts), "texts": len(lines),
    }  # fmt: skip


def apart(run: Path, src: Path, ref: Path) -> dict[str, dict[str, float]]:
    """What the paper's sinusoids in place of Marian's change, which is what other converters of Marian do.

    The run was trained with the paper's; under Marian's the same pairs have other log-probabilities. Pairs are joined
    until a source has so many tokens.
    """
    bundle = load_bundle(run)
    ours = bundle.model.config
    marian = Transformer(ours.model_copy(update={"positions": "learned", "max_len": N_POSITIONS})).eval()
    table = positions(N_POSITIONS, ours.d_model)
    half = ours.d_model // 2
    table = torch.stack((table[:, :half], table[:, half:]), -1).flatten(1)  # sines and cosines in turn, as ours
    marian.load_state_dict({**bundle.model.state_dict(), **dict.fromkeys(TABLES, table)})
    pairs = [*zip(*(t.encode(list(read_lines(path))) for t, path in
                    ((bundle.src_tokenizer, src), (bundle.tgt_tokenizer, ref))), strict=True)]  # fmt: skip
    found = {}
    for least in (1, 100, 300):
        joined: list[tuple[list[int], list[int]]] = [([], [])]
        for one, other in pairs:
            if len(joined[-1][0]) >= least:
                joined.append(([], []))
            joined[-1][0].extend(one)
            joined[-1][1].extend(other)
        joined = joined[:-1][:30]
        read = [read_all(model, joined, torch.device("cpu")) for model in (bundle.model, marian)]
        differences = [
            abs(x - y)
            for a, b in zip(*read, strict=True)
            if a and b
            for x, y in zip(a.log_probs, b.log_probs, strict=True)
        ]
        sums = [abs(a.log_prob - b.log_prob) for a, b in zip(*read, strict=True) if a and b]
        found[f"sources of at least {least} tokens"] = {
            "pairs": len(joined), "mean_nats_of_a_token": statistics.mean(differences),
            "most_nats_of_a_token": max(differences), "mean_nats_of_a_translation": statistics.mean(sums),
        }  # fmt: skip
    return found


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True, help="text to translate")
    parser.add_argument("--ref", type=Path, required=True, help="its references")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for to, quantization in EXPORTS:
            folder = dragoman.export(given.run, to, Path(scratch) / f"{to}-{quantization}", quantization)
            figures[f"{to}, {quantization}"] = {
                name: shown(dragoman.certify(given.run, folder, src=given.src, ref=given.ref, quiet=True, **search))
                for name, search in SEARCHES.items()
            }
        package = dragoman.export(given.run, "argos", Path(scratch) / "x.argosmodel", "int8")
        figures["argos, int8"] = {"megabytes": round(package.stat().st_size / 1e6, 2)}
        for name in ("huggingface-float32", "ctranslate2-float32", "ctranslate2-int8", package.name):
            out = Path(scratch) / f"again-{name}"
            figures[f"{name}, imported again"] = again(given.run, Path(scratch) / name, out, given.src)
        figures["the paper's positions in place of Marian's"] = apart(given.run, given.src, given.ref)
    texts = f"--src {given.src.name} --ref {given.ref.name}"
    command = f"python -m benchmarks.questions.interchange --run {given.run.name} {texts}"
    save("interchange", figures, command, ("torch", "ctranslate2", "transformers", "onnxruntime", "sentencepiece"))


if __name__ == "__main__":
    main()
