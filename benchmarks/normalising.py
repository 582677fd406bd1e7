"""What text that only looks different costs: lines altered in ways that a reader does not see, translated and scored.

    python -m benchmarks.normalising RUN /path/to/multi30k --lines 1000 --as after

Each line of a test set is altered in one way, such as a no-break space for its first space. Counted are the lines whose
translation is that of the untouched line, apart from outer white space; and, for ``dragoman score``, the pairs whose
log-probability is unchanged when the source or the translation is altered. The record keeps the figures before and
after the text was normalised. The test suite takes the alterations from here.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import random
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, machine

SEED = 40
WHITE_SPACE = (
    "\t\v\f\r\x1c\x1d\x1e\x1f \x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028"
    "\u2029\u202f\u205f\u3000"
)
"""All that Unicode or Python call white space, but for LF, which ends a line."""


def _wide(text: str) -> str:
    """Return a text with its ASCII letters and digits in full width, and ideographic spaces."""
    return "".join(
        chr(ord(character) + 0xFEE0) if character.isascii() and character.isalnum() else character for character in text
    ).replace(" ", "\u3000")


def _in_longest_word(text: str, mark: str) -> str:
    """Return a text with a mark in the middle of its longest word of letters alone; between letters, not marks."""
    words = [word for word in text.split(" ") if len(word) > 1]
    if not words:
        return text
    word = max(words, key=len)
    middle = next(
        (i for i in range(len(word) // 2, len(word)) if not unicodedata.category(word[i]).startswith("M")), len(word)
    )
    return text.replace(word, word[:middle] + mark + word[middle:], 1)


def _mixed(text: str, chance: random.Random) -> str:
    """Return a text with each space replaced by one to three random characters of white space, outer ones added."""

    def run() -> str:
        return "".join(chance.choices(WHITE_SPACE, k=chance.randint(1, 3)))

    return run() + "".join(run() if character == " " else character for character in text) + run()


ALTERATIONS: dict[str, Callable[[str, random.Random], str]] = {
    "one no-break space": lambda text, _: text.replace(" ", "\u00a0", 1),
    "all no-break spaces": lambda text, _: text.replace(" ", "\u00a0"),
    "double spaces": lambda text, _: text.replace(" ", "  "),
    "tab before": lambda text, _: "\t" + text,
    "soft hyphen": lambda text, _: _in_longest_word(text, "\u00ad"),
    "full width": lambda text, _: _wide(text),
    "zero-width space": lambda text, _: text.replace(" ", "\u200b ", 1),
    "NFD": lambda text, _: unicodedata.normalize("NFD", text),
    "byte order mark": lambda text, _: "\ufeff" + text,
    "line separator": lambda text, _: text.replace(" ", "\u2028", 1),
    "outer spaces": lambda text, _: f"  {text}   ",
    "direction marks": lambda text, _: "\u200e" + text.replace(" ", " \u2066", 1) + "\u200f",
    "word joiner": lambda text, _: _in_longest_word(text, "\u2060"),
    "joiner": lambda text, _: _in_longest_word(text, "\u200c") if text.isascii() else text,
    "mixed white space": _mixed,
}
"""Ways to alter a text that a reader does not see; each takes the text and a source of random numbers."""


def altered(kind: str, texts: Sequence[str]) -> list[str]:
    """Return the texts altered in one way; the same arguments give the same texts."""
    chance = random.Random(f"{SEED} {kind}")
    return [ALTERATIONS[kind](text, chance) for text in texts]


def measure(run: str, sources: Sequence[str], references: Sequence[str], beam_size: int) -> dict[str, Any]:
    """Return for each alteration the share of translations and of scores that stay the same, and BLEU."""
    from sacrebleu.metrics import BLEU

    from dragoman.translation.translator import Translator

    translator = Translator.load(run, device="cpu")

    def translated(texts: Sequence[str]) -> list[str]:
        return [line.text.strip() for line in translator.translate(texts, beam_size=beam_size, guard=False)]

    def scores(texts: Sequence[str], targets: Sequence[str]) -> list[float]:
        return [scored.log_prob for scored in translator.score(texts, targets)]

    def same(before: Sequence[float], after: Sequence[float]) -> int:
        return sum(abs(a - b) < 1e-3 for a, b in zip(before, after, strict=True))

    plain, own = translated(sources), scores(sources, references)
    figures: dict[str, Any] = {
        "lines": len(sources),
        "beam_size": beam_size,
        "untouched": {"bleu": round(BLEU().corpus_score(plain, [list(references)]).score, 1)},
    }
    for kind in ALTERATIONS:
        texts = altered(kind, sources)
        hyps = translated(texts)
        figures[kind] = {
            "identical": sum(map(str.__eq__, hyps, plain)),
            "bleu": round(BLEU().corpus_score(hyps, [list(references)]).score, 1),
            "same_score_source_altered": same(own, scores(texts, references)),
            "same_score_target_altered": same(own, scores(sources, altered(kind, references))),
        }
        print(kind, figures[kind], file=sys.stderr, flush=True)
    return figures


def encoding_speed(run: str, lines: Sequence[str]) -> dict[str, float]:
    """Return how many lines of source are encoded in a second of the processor: the best of five passes."""
    from dragoman.bundle import load_bundle

    tokenizer = load_bundle(run).src_tokenizer
    lines = list(lines) * max(1, 20_000 // len(lines))
    best = min(_seconds(lambda: tokenizer.encode(lines)) for _ in range(5))
    return {"encoded_lines_per_cpu_s": round(len(lines) / best)}


def _seconds(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def main() -> None:
    """Measure a run on Multi30k's test set, and write the figures into the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("folder", type=Path, help="the folder of Multi30k")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--as", dest="stage", choices=("before", "after"), required=True)
    options = parser.parse_args()
    files = [options.folder / f"test_2016_flickr.{lang}" for lang in ("en", "de")]
    sides = [path.read_text(encoding="utf-8").split("\n")[: options.lines] for path in files]
    figures = measure(options.run, *sides, options.beam_size) | encoding_speed(options.run, sides[0])
    path = RESULTS / "scripts" / "normalising.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    packages = ("torch", "numpy", "sentencepiece")
    record |= {
        "command": f"python -m benchmarks.normalising RUN MULTI30K --lines {options.lines} --as {options.stage}",
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "inputs": {
            "rule": "the first lines of Multi30k's test set of 2016, each altered by ALTERATIONS of this script",
            "seed": SEED,
            "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
            "licence": "Multi30k: research and education, non-commercial; github.com/multi30k/dataset",
        },
        options.stage: figures,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
