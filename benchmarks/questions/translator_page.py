"""A run as one HTML file: sizes, how near it is to ours, and how fast it translates in Chromium.

Logits against the NumPy reference, ids of greedy and beam search against torch's, subwords against SentencePiece's,
BLEU of float32 and int8 against ours; the first translation of twelve words in Chromium, and the same for a model of
the size SMALL with random weights. Needs node and ``make test-browser``'s packages.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from playwright.sync_api import sync_playwright

import dragoman
from benchmarks.record import save, spread
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import ModelConfig, TokenizerConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from dragoman.decoding.batched_search import search_all
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.model.transformer import Transformer
from dragoman.reference import transformer as numpy_transformer
from dragoman.toolkits.page.search import Page, program_version
from dragoman.toolkits.page.write import NAME, write

TWELVE = "The clever teacher who sleeps reads the old book with the girl."
LOADS = 5
ROOM = 10
"""Subwords that the translation of the model with random weights may have beyond its source."""


def lines(run: Path, name: str, side: str, n: int) -> list[str]:
    """The first lines of a split of the demo's corpus."""
    return (run / f"corpus/{name}.{side}").read_text(encoding="utf-8").split("\n")[:n]


def paged(bundle: Bundle, folder: Path, quantization: str) -> Page:
    """The bundle as a page."""
    folder.mkdir(parents=True, exist_ok=True)
    write(bundle, folder, quantization)
    return Page(folder / NAME)


def logits(bundle: Bundle, page: Page, pairs: Sequence[tuple[list[int], list[int]]]) -> float:
    """By how much a logit differs from the NumPy reference's at most."""
    params = {name: tensor.double().numpy() for name, tensor in bundle.model.state_dict().items()}
    config = bundle.model.config.model_dump()
    (found,) = page.answers([{"task": "read", "pairs": pairs, "logits": True}])
    most = 0.0
    for (src, tgt), one in zip(pairs, found, strict=True):
        want, _ = numpy_transformer.forward(params, config, np.array([[*src, EOS_ID]]), np.array([[BOS_ID, *tgt]]))
        most = max(most, float(np.abs(np.array(one["logits"]) - want[0]).max()))
    return most


def ids(bundle: Bundle, page: Page, sources: list[list[int]], beam_size: int) -> dict[str, Any]:
    """How many translations have the same ids, and by how much scores differ."""
    decode = dataclasses.replace(bundle.config.decode, beam_size=beam_size)
    segments, settings = [Segment(ids=row) for row in sources], SearchSettings(decode=decode)
    ours = search_all(bundle.model, segments, settings, torch.device("cpu")).complete()
    theirs = page.search(segments, settings).hypotheses
    pairs = [(a[0], b[0]) for a, b in zip(ours, theirs, strict=True)]
    gaps = [abs(a.score - b.score) for a, b in pairs if a.ids != b.ids]
    return {
        "sentences": len(pairs),
        "identical": sum(a.ids == b.ids for a, b in pairs),
        "greatest_gap_of_scores_where_ids_differ": max(gaps, default=None),
        "greatest_difference_of_scores": max(abs(a.score - b.score) for a, b in pairs),
    }


def odd(texts: Sequence[str], seed: int) -> list[str]:
    """Every fourth text with characters in it that are rare or odd."""
    chance, rare = random.Random(seed), "  \t\u00a0\u2581éñß中文鱼😀𝒳\u0301\u200b<>&0123456789"
    mixed = []
    for i, text in enumerate(texts):
        letters = list(text)
        for _ in range(0 if i % 4 else 6):
            letters.insert(chance.randrange(len(letters) + 1), chance.choice(rare))
        mixed.append("".join(letters))
    return mixed


def subwords(bundle: Bundle, run: Path, folder: Path) -> dict[str, Any]:
    """Of 10,000 lines, how many are cut alike."""
    texts = odd(lines(run, "train", "en", 5000) + lines(run, "train", "de", 5000), 1)
    found = {}
    for kind in ("bpe", "unigram"):
        config = TokenizerConfig(kind=kind, vocab_size=1600)
        tokenizer = bundle.src_tokenizer if kind == "bpe" else Tokenizer.learn(texts, config)
        page = paged(bundle._replace(src_tokenizer=tokenizer, tgt_tokenizer=tokenizer), folder / kind, "int8")
        (theirs,) = page.answers([{"task": "encode", "texts": texts, "side": "src"}])
        ours = tokenizer.encode(texts)
        found[kind] = {"lines": len(texts), "cut_alike": sum(a == b for a, b in zip(ours, theirs, strict=True))}
    return found


def certificates(run: Path, n: int, folder: Path) -> dict[str, Any]:
    """What ``dragoman export --format page --check`` says of both kinds of numbers."""
    src, ref = folder / "test.en", folder / "test.de"
    for file, side in ((src, "en"), (ref, "de")):
        file.write_text("".join(f"{line}\n" for line in lines(run, "held_out", side, n)), encoding="utf-8")
    found = {}
    for quantization in ("float32", "int8"):
        file = dragoman.export(run, "page", folder / f"{quantization}.html", quantization)
        one = dragoman.certify(run, file, src=src, ref=ref, device="cpu", quiet=True)
        found[quantization] = {
            "lines": n, "identical": one.n_identical, "most_nats": one.most_nats, "mean_nats": one.mean_nats,
            "scores": {each.metric: [round(each.a, 2), round(each.b, 2)] for each in one.comparisons},
        }  # fmt: skip
    return found


def small(bundle: Bundle) -> tuple[Bundle, str]:
    """A model of the size SMALL with random weights and 8,000 subwords of random words, and twelve of these words.

    What it says has no end, so it is as long as it may be: as many subwords as the source has, and ``ROOM``.
    """
    chance = random.Random(1)
    words = [" " + "".join(chance.choices("etaoinshrdlu", k=5)) for _ in range(8000)]
    texts = ["".join(chance.choices(words, k=12)) for _ in range(6000)]
    tokenizer = Tokenizer.learn(texts, TokenizerConfig(vocab_size=8000))
    n = tokenizer.vocab_size
    sizes = dict(d_model=256, d_ff=1024, n_heads=4, n_encoder_layers=3, n_decoder_layers=3)
    torch.manual_seed(1)
    model = Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, norm="pre", **sizes)).eval()
    decode = dataclasses.replace(bundle.config.decode, max_extra_tokens=ROOM)
    config = bundle.config.model_copy(update={"decode": decode})
    pieces = [tokenizer.decode([[i]])[0] for i in range(n)]
    whole = [piece for piece in pieces if len(piece) == 5 and f" {piece}" in words]
    made = bundle._replace(weights=model, src_tokenizer=tokenizer, tgt_tokenizer=tokenizer, config=config)
    return made, " ".join(whole[:12])


def in_chromium(browser: Any, page_file: Path, text: str) -> dict[str, float]:
    """Seconds until the page is ready, and for its first translation."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(page_file.as_uri())
    page.evaluate("ask('lines', { text: '' })")  # answered once the model is there
    ready = time.perf_counter() - begun
    took = page.evaluate(
        """async (text) => { const begun = performance.now(); const one = await ask('sentence', { text });
                           return [(performance.now() - begun) / 1000, one.ids.length]; }""",
        text,
    )
    page.fill("#source", text)
    begun = time.perf_counter()
    page.locator("#result:not(.old):not(:empty)").wait_for(timeout=60_000)
    shown = time.perf_counter() - begun
    context.close()
    return {"ready_s": ready, "first_translation_s": took[0], "subwords": took[1], "from_typing_s": shown}


def timed(browser: Any, file: Path, text: str) -> dict[str, Any]:
    """The same several times, each with a new page."""
    seen = [in_chromium(browser, file, text) for _ in range(LOADS)]
    return {name: spread([one[name] for one in seen]) for name in seen[0]}


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="the run of dragoman demo")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--note", default="", help="what else ran on the machine")
    args = parser.parse_args()
    bundle = load_bundle(args.run)
    figures: dict[str, Any] = {"node": program_version()[1], **({"note": args.note} if args.note else {})}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        whole, rounded = (paged(bundle, folder / kind, kind) for kind in ("float32", "int8"))
        figures["bytes"] = {kind: page.file.stat().st_size for kind, page in (("float32", whole), ("int8", rounded))}
        half = args.sentences // 2
        texts = lines(args.run, "held_out", "en", half) + lines(args.run, "deeper", "en", args.sentences - half)
        refs = lines(args.run, "held_out", "de", 50)
        sources = bundle.src_tokenizer.encode(texts)
        pairs = list(zip(sources[:50], bundle.tgt_tokenizer.encode(refs), strict=True))
        figures["greatest_difference_of_logits"] = logits(bundle, whole, pairs)
        figures["search"] = {kind: ids(bundle, whole, sources, size) for kind, size in (("greedy", 1), ("beam 4", 4))}
        figures["subwords"] = subwords(bundle, args.run, folder)
        figures["certificate"] = certificates(args.run, min(500, args.sentences), folder)
        browser = driver.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        figures["chromium"] = browser.version
        figures["text"] = TWELVE
        figures["demo_in_chromium"] = timed(browser, rounded.file, TWELVE)
        large, words = small(bundle)
        file = paged(large, folder / "small", "int8").file
        figures["small_random_weights"] = {
            "parameters": sum(weight.numel() for weight in large.model.parameters()),
            "vocabulary": large.tgt_tokenizer.vocab_size,
            "bytes": file.stat().st_size,
            "in_chromium": timed(browser, file, words),
        }
        browser.close()
    command = f"python -m benchmarks.questions.translator_page --run {args.run}"
    save("translator_page", figures, command, ("torch", "numpy", "sentencepiece", "playwright"))


if __name__ == "__main__":
    main()
