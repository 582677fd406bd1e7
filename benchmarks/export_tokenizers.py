"""Compare the tokenizers of other programs on exports with ours, on text changed in ways that readers do not see.

    python -m benchmarks.export_tokenizers before    the state before a change; ``after`` for the one after it

The sentences and changes are those of ``tests/toolkits/test_normalised_exports.py``, in 16 languages.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, machine

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "toolkits")]
PATH = RESULTS / "scripts" / "export-tokenizers.json"
PACKAGES = ("sentencepiece", "tokenizers", "transformers", "ctranslate2")


def figures(run: Path, node_modules: Path | None) -> dict[str, Any]:
    """Return how many lines each program cuts otherwise, for each kind of subwords and each change."""
    from test_normalised_exports import KINDS, TEXTS, foreign, tokenizer

    from dragoman.bundle import load_bundle
    from dragoman.config import ModelConfig
    from dragoman.evaluation.odd_text import CHANGES
    from dragoman.model.transformer import Transformer
    from export_readers import readers, written

    changes = {"unchanged": str, **CHANGES}
    result: dict[str, Any] = {}
    ours = {**{kind: tokenizer(kind) for kind in KINDS}, **{name: foreign(name) for name in ("nmt_nfkc", "nfkc_cf")}}
    for kind, own in ours.items():
        sizes = dict(d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
        n = own.vocab_size
        model = Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, **sizes)).eval()
        bundle = load_bundle(run)._replace(src_tokenizer=own, tgt_tokenizer=own, weights=model)
        with tempfile.TemporaryDirectory() as work:
            programs = readers(written(bundle, Path(work)), Path(work), node_modules)
            result[kind] = {"here": {"not as unchanged": _not_as_unchanged(own.encode, changes, TEXTS)}}
            for name, encode in programs.items():
                differing = {
                    change: sum(a != b for a, b in zip(encode(texts), own.encode(texts), strict=True))
                    for change, texts in ((change, [make(text) for text in TEXTS]) for change, make in changes.items())
                }
                result[kind][name] = {
                    "not as here": {change: n for change, n in differing.items() if n},
                    "not as unchanged": _not_as_unchanged(encode, changes, TEXTS),
                }
    return {"lines": len(TEXTS), "changes": len(CHANGES), "subwords": result}


def _not_as_unchanged(encode: Any, changes: Any, texts: list[str]) -> dict[str, int]:
    plain = encode(texts)
    counts = {
        name: sum(a != b for a, b in zip(plain, encode([make(text) for text in texts]), strict=True))
        for name, make in changes.items()
    }
    return {name: n for name, n in counts.items() if n}


def inputs() -> dict[str, Any]:
    """Return the rule by which the inputs were made, and their sum."""
    from dragoman.evaluation.odd_text import CHANGES
    from odd_sentences import SENTENCES, learning_lines

    texts = [line for lines in SENTENCES.values() for line in lines]
    changed = [make(text) for make in CHANGES.values() for text in texts]
    digest = hashlib.sha256("\n".join([*learning_lines(), *texts, *changed]).encode()).hexdigest()
    rule = "tests/odd_sentences.py, each sentence changed by each of evaluation/odd_text.py"
    return {"rule": rule, "seed": 5, "sha256": digest, "licence": "written for this project"}


def main() -> None:
    """Write one half of the record; the other half stays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=["before", "after"])
    parser.add_argument("--run", type=Path, required=True, help="any run; its subwords and model are replaced")
    parser.add_argument("--node-modules", type=Path, help="folder with @huggingface/tokenizers, for transformers.js")
    arguments = parser.parse_args()
    record = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    record |= {
        "command": "python -m benchmarks.export_tokenizers after --run RUN --node-modules DIR",
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "inputs": inputs(),
        arguments.half: figures(arguments.run, arguments.node_modules),
    }
    if arguments.node_modules is not None:
        package = arguments.node_modules / "@huggingface" / "tokenizers" / "package.json"
        record["versions"]["@huggingface/tokenizers"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
