"""The second pass knows the corpus: which words belong together, and which words each side is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import TextFiles
from dragoman.doctor import alignment
from dragoman.doctor.alignment import Lexicon, Shift
from dragoman.doctor.findings import Tally, pair_text
from dragoman.doctor.paired_lines import Pairs, Sample, Sides, chunks, with_context
from dragoman.languages.codes import primary
from dragoman.languages.stopwords import ambiguous, another_language, main_language, words_of

CERTAIN = -6.0  # nats: a pair below this did not come together as a pair
FOREIGN = 6.0  # nats: the words of a line are those of the other side
MOST = 4.0  # nats that one word may say of its side


class Knowledge(NamedTuple):
    """What a sample teaches about a corpus."""

    lexicon: Lexicon | None  # None: too few pairs
    sides: dict[str, float]  # of each word: log p(word | target side) / p(word | source side)
    ignored: tuple[frozenset[str], frozenset[str]]  # words that do not betray a foreign language after all
    other_languages: tuple[str | None, str | None]  # what the sides as a whole are in, if not in what was said


def learn(sample: Sample, corpus: TextFiles) -> Knowledge:
    """Learn from a sample."""
    src, tgt, src_words, tgt_words = sample.sides()
    lexicon = alignment.learn(src, tgt, src_words, tgt_words)
    sides = {} if lexicon is None else sides_of(src_words, tgt_words)
    return Knowledge(
        lexicon,
        sides,
        (ambiguous(src_words, corpus.src_lang), ambiguous(tgt_words, corpus.tgt_lang)),
        (main_language(src_words, corpus.src_lang), main_language(tgt_words, corpus.tgt_lang)),
    )


def sides_of(src_words: Sequence[Sequence[str]], tgt_words: Sequence[Sequence[str]]) -> dict[str, float]:
    """How much more a word belongs to the target side than to the source side, in nats within ``MOST``."""
    src, tgt = (Counter(word for line in lines for word in set(line)) for lines in (src_words, tgt_words))
    known = [word for word in src | tgt if src[word] + tgt[word] >= 5]
    ratio = np.log([(tgt[word] + 0.5) / (src[word] + 0.5) for word in known]) if known else np.zeros(0)
    return dict(zip(known, np.clip(ratio, -MOST, MOST).tolist(), strict=True))


def leaning(words: Sequence[str], sides: dict[str, float]) -> float:
    """Above 0: the line is more like the target side; in nats."""
    return sum(sides.get(word, 0.0) for word in set(words))


def second_pass(
    corpus: TextFiles, known: Knowledge, tallies: dict[str, Tally]
) -> tuple[NDArray[np.float32], list[Shift]]:
    """Find foreign lines, swapped sides, and lines that belong to other lines.

    Returns:
        The score of each pair in nats, ``(pairs,)``, empty without a lexicon; and the runs of shifted lines.
    """
    if known.lexicon is None:
        done = 0
        for src, tgt in chunks(Pairs(corpus)):
            words = [words_of(text) for text in src], [words_of(text) for text in tgt]
            _languages(corpus, known, (src, tgt), words, done, tallies)
            done += len(src)
        return np.zeros(0, np.float32), []
    return _with_lexicon(corpus, known, known.lexicon, tallies)


def _with_lexicon(
    corpus: TextFiles, known: Knowledge, lexicon: Lexicon, tallies: dict[str, Tally]
) -> tuple[NDArray[np.float32], list[Shift]]:
    scores, numbers, grids = [], [], []
    unlikely: list[tuple[int, str]] = []
    done = 0  # pairs before the chunk
    for before, now, after in with_context(corpus, alignment.REACH + 3):
        n_before, n = len(before[0]), len(now[0])
        texts = [a + b + c for a, b, c in zip(before, now, after, strict=True)]
        words = [[words_of(text) for text in side] for side in texts]
        mine = slice(n_before, n_before + n)
        foreign = _languages(corpus, known, now, (words[0][mine], words[1][mine]), done, tallies)
        src, tgt = lexicon.src_lines(texts[0], words[0]), lexicon.tgt_lines(texts[1], words[1])
        here = np.arange(len(texts[0]))
        own = lexicon.scores(src, tgt, here, here)
        bad = np.flatnonzero(alignment.suspicious(own, lexicon.usual)[mine]) + n_before
        grids.append(neighbours(lexicon, src, tgt, bad))
        numbers.append(bad - n_before + done)
        scores.append(own[mine])
        for i in np.flatnonzero(own[mine] < CERTAIN).tolist():
            if i in foreign:
                scores[-1][i] = 0.0  # it has been said what is wrong with it
            else:
                unlikely.append((done + i + 1, pair_text(now[0][i], now[1][i]) if len(unlikely) < 1000 else ""))
        done += n
    shifted = alignment.shifts(np.concatenate(numbers), np.concatenate(grids))
    _count_unlikely(unlikely, shifted, tallies)
    return np.concatenate(scores), shifted


def neighbours(
    lexicon: Lexicon, src: alignment.Lines, tgt: alignment.Lines, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Scores of source line i and target line i + k for k from -REACH to REACH, ``(rows, 2 * REACH + 1)``."""
    reach = alignment.REACH
    grid = np.full((len(rows), 2 * reach + 1), -alignment.CLIP, np.float32)
    at, column = np.indices(grid.shape)
    other = rows[at] + column - reach
    inside = (other >= 0) & (other < len(tgt.lengths))
    grid[inside] = lexicon.scores(src, tgt, rows[at[inside]], other[inside])
    return grid


def _count_unlikely(unlikely: list[tuple[int, str]], shifted: list[Shift], tallies: dict[str, Tally]) -> None:
    """Pairs that do not belong together, those of shifted runs left out."""
    in_runs = {line for shift in shifted for line in range(shift.first, shift.last + 1)}
    for line, text in unlikely:
        if line not in in_runs:
            tallies.setdefault("misaligned", Tally()).add(line, text)


def _languages(
    corpus: TextFiles, known: Knowledge, sides: Sides, words: tuple[list[list[str]], list[list[str]]], done: int,
    tallies: dict[str, Tally],
) -> set[int]:  # fmt: skip
    """Count lines in another language; returns which of the chunk they were."""
    src_lang, tgt_lang = primary(corpus.src_lang), primary(corpus.tgt_lang)
    found = set()
    for i, (src_words, tgt_words) in enumerate(zip(*words, strict=True)):
        if src_words == tgt_words:
            continue  # not translated: that has been counted
        src_found = another_language(src_words, src_lang, known.ignored[0])
        tgt_found = another_language(tgt_words, tgt_lang, known.ignored[1])
        src_like_tgt, tgt_like_src = leaning(src_words, known.sides), -leaning(tgt_words, known.sides)
        changed_places = src_like_tgt + tgt_like_src > FOREIGN and min(src_like_tgt, tgt_like_src) > 0
        if changed_places or (src_found and tgt_found and (src_found, tgt_found) == (tgt_lang, src_lang)):
            name, text = "swapped-sides", pair_text(sides[0][i], sides[1][i])
        elif src_found or src_like_tgt > FOREIGN:
            name, text = "source-language", f"{src_found or tgt_lang or 'the target language'}? {sides[0][i]}"
        elif tgt_found or tgt_like_src > FOREIGN:
            name, text = "target-language", f"{tgt_found or src_lang or 'the source language'}? {sides[1][i]}"
        else:
            continue
        found.add(i)
        tallies.setdefault(name, Tally()).add(done + i + 1, text)
    return found
