"""Scores of near-identical texts in many scripts: two characters of each line differ, so every score must be good.

    python -m benchmarks.near_identical before    ``after`` for the state after a change

A score by words takes a line of a script without spaces for one word, and calls it wholly wrong. The lines are letters
of each script, drawn with a fixed seed from the characters that Unicode gives the script, so they mean nothing.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
from collections.abc import Iterator
from typing import NamedTuple

import regex

from benchmarks.scripts_record import record
from dragoman.evaluation.metrics import select_metrics
from dragoman.evaluation.significance import compare

UNSPACED = {
    "Thai": ("th", "nod-Thai"), "Lao": ("lo",), "Khmer": ("km",), "Myanmar": ("my", "shn", "mnw", "ksw"),
    "Tibetan": ("bo", "dz", "lad-Tibt"), "Han": ("zh", "zh-TW", "yue", "wuu", "lzh", "ja"), "Hiragana": ("ja",),
    "Katakana": ("ja", "ain"), "Javanese": ("jv-Java", "jv"), "Balinese": ("ban-Bali", "ban"),
    "Tai_Tham": ("nod", "kkh"), "Tai_Le": ("tdd",), "New_Tai_Lue": ("khb",), "Tai_Viet": ("blt",), "Yi": ("ii",),
    "Batak": ("bbc-Batk",),
}  # fmt: skip
"""Scripts without spaces between words, and codes of languages that are written in them."""

SPACED = {
    "Latin": ("de", "vi", "jv"), "Cyrillic": ("ru", "sr"), "Greek": ("el",), "Arabic": ("ar", "fa"), "Hebrew": ("he",),
    "Devanagari": ("hi", "mr"), "Bengali": ("bn",), "Tamil": ("ta",), "Telugu": ("te",), "Malayalam": ("ml",),
    "Sinhala": ("si",), "Georgian": ("ka",), "Armenian": ("hy",), "Ethiopic": ("am",), "Hangul": ("ko",),
}  # fmt: skip
"""Scripts with spaces between words."""

N_LINES, LETTERS, WORD, SEED = 12, 48, 4, 40
"""Lines of each script, letters of a line, letters of a word where there are spaces, and the seed of both."""

WORST_TER, WORST_BLEU = 20.0, 50.0


class Texts(NamedTuple):
    """Near-identical translations and references in one script."""

    script: str
    lang: str | None
    hyps: list[str]
    refs: list[str]


@functools.cache
def small_letters() -> str:
    """Return all letters of the Basic Multilingual Plane but capitals."""
    every = map(chr, range(0xFFFF))
    return "".join(letter for letter in every if letter.isalpha() and letter == letter.lower())


@functools.cache
def letters_of(script: str) -> list[str]:
    """Return the first letters of a script, in the order of Unicode."""
    letters: list[str] = regex.findall(rf"\p{{Script={script}}}", small_letters())
    return letters[:400]


def near_identical(script: str, lang: str | None) -> Texts:
    """Return lines of a script, and the same with the last two letters changed."""
    chance, letters = random.Random(f"{SEED} {script}"), letters_of(script)
    refs, hyps = [], []
    for _ in range(N_LINES):
        line = chance.choices(letters, k=LETTERS)
        other = [*line[:-2], *(chance.choice([letter for letter in letters if letter != old]) for old in line[-2:])]
        for lines, written in ((refs, line), (hyps, other)):
            words = ["".join(written[i : i + WORD]) for i in range(0, LETTERS, WORD)]
            lines.append((" " if script in SPACED else "").join(words))
    return Texts(script, lang, hyps, refs)


def all_texts() -> Iterator[Texts]:
    """Yield the texts of each script for each of its languages, and for an unknown language."""
    for script, langs in (UNSPACED | SPACED).items():
        for lang in (*langs, None):
            yield near_identical(script, lang)


def scores_of(texts: Texts) -> dict[str, float]:
    """Return BLEU and TER as a comparison of two systems gives them."""
    same = compare(texts.hyps, texts.hyps, texts.refs, texts.lang, select_metrics(["bleu", "ter"]), n_samples=1)
    return {comparison.metric: round(comparison.a, 2) for comparison in same}


def is_wrong(scores: dict[str, float]) -> bool:
    """True if near-identical texts are scored as different ones."""
    return scores["BLEU"] < WORST_BLEU or scores["TER"] > WORST_TER


def main() -> None:
    """Record the scores of every script and language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("when", choices=["before", "after"])
    when = parser.parse_args().when
    scores = {f"{texts.script}, {texts.lang or 'unknown language'}": scores_of(texts) for texts in all_texts()}
    wrong = [name for name, its_scores in scores.items() if is_wrong(its_scores)]
    figures = {"texts": len(scores), "scored_as_different": len(wrong), "these": wrong, "scores": scores}
    inputs = {
        "rule": f"{N_LINES} lines of {LETTERS} letters of each script; the last two letters of each line differ",
        "seed": SEED,
    }
    record("near_identical", when, figures, inputs)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
