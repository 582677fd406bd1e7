"""How rightly words that a model never saw are named, and what that costs.

    python -m benchmarks.unseen_words after NAME=RUN:TRAIN:TEST ...

TRAIN is the source side of the run's training text as it lies on disk, TEST any text in that language; a seed draws its
lines. The truth is read from TRAIN by a rule of its own: a word is a run of letters, and one that TRAIN does not have,
without regard to case, was never seen. In text without spaces between words jieba finds the words (``pip install
jieba``), and one that stands nowhere in TRAIN was never seen; a report that shares two neighbours of it finds it.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.scripts_record import record_of_tests
from dragoman.bundle import load_bundle
from dragoman.data.seen_words import learn
from dragoman.data.store import Store
from dragoman.languages.known import is_unspaced
from dragoman.translation.translator import Translator
from dragoman.translation.unseen_words import unseen_words

SEED, MOST = 42, 2000
_LETTERS = re.compile(r"[^\W\d_]+")


def lines_of(path: str, most: int | None = None) -> list[str]:
    """Return the lines of a file that are not blank; of more than ``most`` some, drawn by seed."""
    lines = [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line.strip()]
    return lines if most is None or len(lines) <= most else random.Random(SEED).sample(lines, most)


def shares(found: Collection[Any], true: Collection[Any]) -> dict[str, Any]:
    """Return precision and recall, and how many of each there are."""
    right = len(set(found) & set(true))
    return {
        "never_seen": len(set(true)), "reported": len(set(found)),
        "precision": round(right / len(set(found)), 4) if found else None,
        "recall": round(right / len(set(true)), 4) if true else None,
    }  # fmt: skip


def of_words(tests: Sequence[str], train: Sequence[str], reported: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return figures of a language with spaces, over pairs of line and word."""
    seen = {word.casefold() for line in train for word in _LETTERS.findall(line)}
    true = {
        (i, w.casefold()) for i, line in enumerate(tests) for w in _LETTERS.findall(line) if w.casefold() not in seen
    }
    found = {(i, word.casefold()) for i, words in enumerate(reported) for word in words}
    wrong = sorted(word for _, word in found - true)[:10]
    missed = sorted(word for _, word in true - found)[:10]
    lines = len({i for i, _ in true})
    return {**shares(found, true), "lines_with_one": lines, "wrongly_reported": wrong, "missed": missed}


def of_characters(tests: Sequence[str], train: Sequence[str], reported: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return figures of a language without spaces, over the words that jieba finds."""
    import jieba

    text = "\n".join(train)
    words = [list(dict.fromkeys(w for w in jieba.cut(line) if _LETTERS.fullmatch(w))) for line in tests]
    true = {(i, word) for i, own in enumerate(words) for word in own if word not in text}
    named = {(i, word) for i, word in true if any(overlap(word, other) for other in reported[i])}
    right = [
        (i, new) for i, own in enumerate(reported) for new in own if any(j == i and overlap(w, new) for j, w in true)
    ]
    n_reported = sum(map(len, reported))
    return {
        "never_seen": len(true), "reported": n_reported, "precision": round(len(right) / max(1, n_reported), 4),
        "recall": round(len(named) / max(1, len(true)), 4),
        "wrongly_reported": sorted({new for own in reported for new in own} - {new for _, new in right})[:20],
        "missed": sorted({word for _, word in true - named})[:20],
    }  # fmt: skip


def overlap(word: str, other: str) -> bool:
    """Return True if two words share two neighbouring characters, or one is a character of the other."""
    if min(len(word), len(other)) == 1:
        return word in other or other in word
    return any(pair in other for pair in pairs_of(word))


def pairs_of(word: str) -> list[str]:
    """Return the pairs of neighbouring characters."""
    return [word[i : i + 2] for i in range(len(word) - 1)]


def measure(run: str, train: str, test: str) -> dict[str, Any]:
    """Return the figures of one run and text."""
    bundle = load_bundle(run)
    started = time.perf_counter()
    words = bundle.words or learn(Store.open(Path(run) / "store/train"), bundle.src_tokenizer)
    taken = time.perf_counter() - started
    translator = Translator(bundle)
    plan = translator.plan()
    plan = replace(plan, facts=replace(plan.facts, seen_words=words))
    tests = lines_of(test, MOST)
    judge: Callable[..., dict[str, Any]] = of_characters if is_unspaced(plan.src_lang) else of_words
    started = time.perf_counter()
    reported = [unseen_words(line, plan) for line in tests]
    each = (time.perf_counter() - started) / len(tests)
    return {
        "lines": len(tests), "words_kept": len(words), "bytes": len(words.to_bytes()),
        "chance_that_a_new_word_passes": round(len(words) / 2**32, 8),
        "seconds_to_learn": None if bundle.words else round(taken, 2), "microseconds_a_line": round(1e6 * each, 1),
        **judge(tests, lines_of(train), reported),
    }  # fmt: skip


def main() -> None:
    """Measure all and write the record."""
    inputs = {"rule": f"at most {MOST} lines of each text, drawn by seed", "seed": SEED}
    record_of_tests("unseen_words", __doc__ or "", "NAME=RUN:TRAIN:TEST", measure, inputs)


if __name__ == "__main__":
    main()
