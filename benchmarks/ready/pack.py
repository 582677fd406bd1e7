"""Store a trained run as a ready bundle: 8-bit matrices, a model card and a certificate.

    python -m benchmarks.ready.pack RUN --text FOLDER/en-de --data DATA
    python -m benchmarks.ready.pack en-de --words-of FOLDER/en-de    # only add the words of the training text

The certificate compares the stored bundle with the run on the pairs of the corpus's dev set that are in neither the
validation set nor the frozen test.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ready.corpus import N_SHORT, chinese_cleaner, clean_german, key, pairs_of
from benchmarks.ready.frozen import FOLDER, lines
from dragoman import Translator
from dragoman.bundle import Tables, load_bundle, save_bundle
from dragoman.config import Config, PairOfFiles
from dragoman.data.seen_words import CHUNK, of_ids
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.files import sha256
from dragoman.model.weights import untied
from dragoman.ready import FOLDER as READY
from dragoman.ready import NAMES

LANGUAGE = {"de": "German", "zh": "Chinese, in simplified characters"}

CARD = """# {name}: English to {language}

A small Transformer that comes with dragoman, to try things with before anything is trained: `{short}`.

- **Weights**: {parameters:,}, {layers}, width {width}; matrices stored as 8-bit integers.
- **Text**: {pairs:,} sentence pairs of [Tatoeba](https://tatoeba.org), by its contributors, licence
  [CC BY 2.0 FR](https://creativecommons.org/licenses/by/2.0/fr/); cleaned by `benchmarks/ready/corpus.py`.
  {change} {short_pairs:,} short pairs come again without their last mark.
- **Training**: as `benchmarks/ready/{name}.yaml` says, {start}; then {steps:,} updates with noise in the source.
- **Measured** on {lines:,} sentences of Tatoeba that nothing else had looked at: BLEU {bleu:.1f}, chrF {chrf:.1f}
  (`certificate.json`). A reader's judgement of 120 sentences is in `benchmarks/results/newcomer/ready.md`.
- **Not for** anything that matters. Its text is short, everyday sentences, many about Tom and Mary. Long sentences
  lose parts, rare words become others, and it knows no technical terms. It may repeat prejudices of its text.
"""


@dataclass(frozen=True)
class Test:
    """Sentences that neither training nor the frozen test saw."""

    src: list[str]
    ref: list[str]

    @classmethod
    def of(cls, data: Path, text: Path, language: str) -> Test:
        """Return the dev set without the validation set and the frozen test."""
        clean = clean_german if language == "de" else chinese_cleaner()
        seen = {key(line) for path in (text / "valid.en", FOLDER / "tatoeba.en") for line in lines(path)}
        pairs = [p for p in pairs_of(data / f"tatoeba-en-{language}", "dev", language, clean) if key(p[0]) not in seen]
        return cls([pair[0] for pair in pairs], [pair[1] for pair in pairs])


def without_places(config: Config, language: str) -> Config:
    """Return a configuration whose text files are named without their folders."""
    train, valid = (
        PairOfFiles(src=Path(f"{name}.en"), tgt=Path(f"{name}.{language}"), src_lang="en", tgt_lang=language)
        for name in ("train", "valid")
    )
    return config.model_copy(update={"data": config.data.model_copy(update={"train": train, "valid": valid})})


def store(run: Path, folder: Path, language: str) -> None:
    """Write the bundle with 8-bit matrices."""
    bundle = load_bundle(run)
    facts = {name: fact for name, fact in bundle.manifest.items() if name not in ("files", "sha256")}
    if folder.exists():
        shutil.rmtree(folder)
    save_bundle(
        folder, without_places(bundle.config, language), bundle.model.config, untied(bundle.model),
        bundle.src_tokenizer, bundle.tgt_tokenizer, {**facts, "stored": "int8"},
        Tables(shortlist=bundle.shortlist, words=bundle.words),
    )  # fmt: skip


def add_words(folder: Path, text: Path) -> None:
    """Add the words of the training sources to a stored bundle that has none; all else keeps its bytes."""
    bundle = load_bundle(folder)
    sources, tokenizer = lines(text / "all.en"), bundle.src_tokenizer
    words = of_ids((tokenizer.encode(sources[n : n + CHUNK]) for n in range(0, len(sources), CHUNK)), tokenizer)
    before = sha256(folder / "model.safetensors")
    pages = {name: (folder / name).read_bytes() for name in ("README.md", "certificate.json")}
    manifest = {name: fact for name, fact in bundle.manifest.items() if name not in ("files", "sha256")}
    save_bundle(
        folder, bundle.config, bundle.model.config, untied(bundle.model), bundle.src_tokenizer, bundle.tgt_tokenizer,
        manifest, Tables(shortlist=bundle.shortlist, words=words),
    )  # fmt: skip
    for name, content in pages.items():
        (folder / name).write_bytes(content)
    if sha256(folder / "model.safetensors") != before:
        raise SystemExit(f"{folder}: its weights have changed; restore it")
    print(f"{folder}: {len(words):,} words, {len(words.to_bytes()):,} bytes")


def certificate(run: Path, folder: Path, test: Test, language: str) -> dict[str, Any]:
    """Return the scores of the run and of the stored bundle, and how many translations are the same."""
    scores: dict[str, dict[str, Any]] = {}
    texts = []
    for name, place in (("float32 run", run), ("this bundle", folder)):
        texts.append([translation.text for translation in Translator.load(place).translate(test.src)])
        measured = (bleu(texts[-1], test.ref, language), chrf(texts[-1], test.ref))
        scores[name] = {score.name: round(score.value, 2) for score in measured}
        signatures = {score.name: score.signature for score in measured}
    same = sum(a == b for a, b in zip(*texts, strict=True))
    return {
        "lines": len(test.src), "text": "dev of Tatoeba, without validation and frozen test", "scores": scores,
        "signatures": signatures, "identical": same,
    }  # fmt: skip


def card(folder: Path, result: dict[str, Any], language: str) -> str:
    """Return the model card."""
    bundle = load_bundle(folder)
    sizes, scores = bundle.config.model, result["scores"]["this bundle"]
    change = {
        "de": "Changed: quotation marks are plain.",
        "zh": "Changed: traditional characters became simplified ones (OpenCC), punctuation is Chinese.",
    }
    short = next(name for name, pair in NAMES.items() if pair == folder.name)
    return CARD.format(
        name=folder.name, language=LANGUAGE[language], short=short,
        parameters=sum(weight.numel() for weight in bundle.model.parameters()), width=sizes.d_model,
        layers=f"{sizes.n_encoder_layers} + {sizes.n_decoder_layers} layers",
        pairs=(bundle.facts.train_pairs or 0) - N_SHORT[language],
        short_pairs=N_SHORT[language],
        change=change[language], steps=bundle.facts.step, lines=result["lines"],
        start="from random weights" if language == "de" else "from the weights of en-de",
        bleu=scores["BLEU"], chrf=scores["chrF2"],
    )  # fmt: skip


def main() -> None:
    """Store a run, measure it, and write the card and the certificate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="Run folder.")
    parser.add_argument("--text", type=Path, help="Folder of its train.* and valid.*.")
    parser.add_argument("--data", type=Path, help="Folder of tatoeba-en-de and tatoeba-en-zh.")
    parser.add_argument("--words-of", type=Path, help="Folder of the training text; only add its words.")
    options = parser.parse_args()
    if options.words_of is not None:
        add_words(READY / options.run, options.words_of)
        return
    if options.text is None or options.data is None:
        parser.error("--text and --data must be given")
    language = load_bundle(options.run).config.data.tgt_lang or ""
    folder = READY / f"en-{language}"
    store(options.run, folder, language)
    result = certificate(options.run, folder, Test.of(options.data, options.text, language), language)
    (folder / "certificate.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card(folder, result, language), encoding="utf-8")
    print(json.dumps(result, indent=2), sum(path.stat().st_size for path in folder.iterdir()), "bytes")


if __name__ == "__main__":
    main()
