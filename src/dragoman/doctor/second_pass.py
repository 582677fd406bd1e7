"""The second pass over a corpus: checks that need word translations and typical words, learned from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import TextFiles
from dragoman.data.sides import sample
from dragoman.doctor import alignment
from dragoman.doctor.alignment import Lexicon, Shift
from dragoman.doctor.findings import Tally, pair_text
from dragoman.doctor.first_pass import FirstPass, share_no_script
from dragoman.doctor.paired_lines import Reading, Sides, chunks_with_context
from dragoman.doctor.shifts import BLOCK, Segment
from dragoman.doctor.stretches import MARKS, RIGHT_SOURCE, RIGHT_TARGET, RIGHT_WAY_ROUND, joined
from dragoman.languages.codes import primary
from dragoman.languages.known import known
from dragoman.languages.mixups import written_in
from dragoman.languages.scripts import count_classes, in_another_script
from dragoman.languages.stopwords import ambiguous, another_or_own, main_language, words_of

CERTAIN = -6.0
"""Score in nats below which a pair counts as not being a translation."""

POSSIBLE = -3.0
"""The same where many pairs are no translations; below the share of ``MANY_WRONG`` it is ``CERTAIN``."""

MANY_WRONG = 0.045

FOREIGN = 6.0
"""Evidence in nats above which a line counts as being in the language of the other side."""

MOST = 4.0
"""Largest evidence in nats that one word can give about its side."""


N_JUDGED, LEAST_JUDGED = 200, 20
"""Lines of a sample that are looked at to tell its language by its characters, and fewest lines that tell it."""

N_REMEMBERED = 2000
"""Number of pairs whose text is remembered for examples."""

MOST_CONTEXT = 1000
"""Lines before and behind a chunk of text that are read with it."""

MOST_EVIDENCE = 15.0
"""Largest evidence in nats of one line for an offset: enough to tell it from similar neighbours."""


class Knowledge(NamedTuple):
    """Facts about a corpus, learned from a sample of its pairs; source first in each tuple."""

    languages: tuple[str, str]  # primary codes, such as "en"; empty if not known
    lexicon: Lexicon | None  # None: too few pairs
    preferences: dict[str, float]  # by word: log p(word | target side) / p(word | source side)
    ignored: tuple[frozenset[str], frozenset[str]]  # words that are no sign of a foreign language in this corpus
    other_languages: tuple[str | None, str | None]  # language of a whole side, if it is not the one in ``languages``


def learn_from_sample(first: FirstPass) -> Knowledge:
    """Learn word translations, the typical words of each side and its language from the sample of the first pass.

    Pairs whose sides are surely exchanged are exchanged again first: else a text of which they are two fifths would
    teach that most words belong to both sides.
    """
    (src, tgt, src_words, tgt_words), corpus = first.sample.sides(), first.corpus
    languages = primary(corpus.src_lang), primary(corpus.tgt_lang)
    ignored = ambiguous(src_words, corpus.src_lang), ambiguous(tgt_words, corpus.tgt_lang)
    others = (
        main_language(src_words, corpus.src_lang, ignored[0]) or _language_by_characters(src, corpus.src_lang),
        main_language(tgt_words, corpus.tgt_lang, ignored[1]) or _language_by_characters(tgt, corpus.tgt_lang),
    )
    exchanged = _exchanged((src_words, tgt_words), languages, ignored)
    if share_no_script(first.scripts):
        wrong = [in_another_script(count_classes(side), first.scripts[i]) for i, side in enumerate((src, tgt))]
        exchanged |= wrong[0] & wrong[1]
    for row in np.flatnonzero(exchanged).tolist():
        src[row], tgt[row] = tgt[row], src[row]
        src_words[row], tgt_words[row] = tgt_words[row], src_words[row]
    lexicon = alignment.learn_lexicon(src, tgt, src_words, tgt_words)
    preferences = {} if lexicon is None else side_preferences(src_words, tgt_words)
    return Knowledge(languages, lexicon, preferences, ignored, others)


def _language_by_characters(lines: Sequence[str], lang: str | None) -> str | None:
    """Return the language that a sample is surely in, if it is not ``lang`` but shares a script with it; else None.

    Stop words are not known of all languages: Japanese passed for Chinese. Lines in another script are left out, as
    they are findings of their own, and they must be fewer than half.

    Args:
        lines: A sample of one side, in random order.
        lang: Its language.
    """
    scripts, some = known(lang).scripts, lines[:N_JUDGED]
    if not scripts or len(some) < LEAST_JUDGED:
        return None
    is_other = in_another_script(count_classes(some), scripts)
    in_script = [line for line, other in zip(some, is_other.tolist(), strict=True) if not other]
    if 2 * len(in_script) < len(some):
        return None
    other = written_in(sample(in_script), lang)
    return other if other is not None and set(known(other).scripts) & set(scripts) else None


def _exchanged(
    words: Sequence[Sequence[Sequence[str]]], languages: tuple[str, str], ignored: tuple[frozenset[str], frozenset[str]]
) -> NDArray[np.bool_]:
    """Return True for each pair whose sides seem to be exchanged by their stop words, ``(pairs,)``.

    One side tells it if the other shows no word of its own language. Where that is most pairs of which stop words tell
    anything, the others are taken to be like them.
    """
    directions = np.zeros(len(words[0]), np.int8)  # 1 exchanged, -1 not
    for i, (src, tgt) in enumerate(zip(*words, strict=True)):
        src_other, src_own = another_or_own(src, languages[0], ignored[0])
        tgt_other, tgt_own = another_or_own(tgt, languages[1], ignored[1])
        is_exchanged = (src_other == languages[1] and not tgt_own) or (tgt_other == languages[0] and not src_own)
        directions[i] = is_exchanged or -(src_own or tgt_own)
    directions[directions == 0] = int(np.sign(directions.sum()))
    return directions > 0


def side_preferences(src_words: Sequence[Sequence[str]], tgt_words: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return for each frequent word how much it prefers the target side to the source side, in nats up to ``MOST``."""
    src, tgt = (Counter(word for line in lines for word in set(line)) for lines in (src_words, tgt_words))
    frequent = [word for word in src | tgt if src[word] + tgt[word] >= 5]
    ratio = np.log([(tgt[word] + 0.5) / (src[word] + 0.5) for word in frequent]) if frequent else np.zeros(0)
    return dict(zip(frequent, np.clip(ratio, -MOST, MOST).tolist(), strict=True))


def target_likeness(words: Sequence[str], preferences: dict[str, float]) -> float:
    """Return the evidence in nats that a line is in the target language; below 0 it is in the source language."""
    return sum(preferences.get(word, 0.0) for word in set(words))


def second_pass(
    corpus: TextFiles, known: Knowledge, tallies: dict[str, Tally], first: FirstPass
) -> tuple[NDArray[np.float32], list[Shift], NDArray[np.int8]]:
    """Count foreign lines, swapped sides and wrong pairs in ``tallies``, and find runs of shifted lines.

    Args:
        corpus: The text.
        known: Facts learned from a sample of it.
        tallies: Counts by kind.
        first: The first pass, which says how the text is read and of which pairs it has said what is wrong.

    Returns:
        The score of each pair in nats, ``(pairs,)``, empty without a lexicon; the runs of shifted lines; and what was
        seen of each pair, as a number of ``MARKS``.
    """
    lexicon, reading, exchanged = known.lexicon, first.reading, first.exchanged_scripts()
    scores, numbers, grids, marks, rights = [], [], [], [], []
    examples: dict[int, str] = {}
    n_done = 0
    # Each chunk comes with the lines around it: a line may belong to one that is REACH lines away.
    for before, chunk, after in chunks_with_context(corpus, alignment.REACH + 3, reading):
        texts = [a + b + c for a, b, c in zip(before, chunk, after, strict=True)]
        words = [[words_of(text) for text in side] for side in texts]
        own = slice(len(before[0]), len(before[0]) + len(chunk[0]))
        chunk_marks = np.zeros(len(chunk[0]), np.int8)
        here = frozenset(i for i in range(len(chunk[0])) if n_done + i in exchanged) if exchanged else exchanged
        foreign, chunk_rights = foreign_lines(known, chunk, (words[0][own], words[1][own]), here)
        for i, (name, example) in foreign.items():
            chunk_marks[i] = MARKS.index(name)
            if len(examples) < N_REMEMBERED:
                examples[n_done + i] = example
        if lexicon is not None:
            src, tgt = lexicon.encode_src(texts[0], words[0]), lexicon.encode_tgt(texts[1], words[1])
            same = np.arange(len(texts[0]))
            all_scores = lexicon.scores(src, tgt, same, same)
            suspects = np.flatnonzero(alignment.suspicious(all_scores, lexicon.median_score)[own]) + own.start
            grids.append(neighbour_scores(lexicon, src, tgt, suspects))
            numbers.append(suspects - own.start + n_done)
            scores.append(all_scores[own])
            for i in np.flatnonzero(scores[-1] < POSSIBLE).tolist():
                if i in foreign:
                    scores[-1][i] = 0.0  # counted already, as foreign
                else:
                    chunk_marks[i] = MARKS.index("misaligned")
                    if scores[-1][i] < CERTAIN and len(examples) < N_REMEMBERED:
                        examples[n_done + i] = pair_text(chunk[0][i], chunk[1][i])
        marks.append(chunk_marks)
        rights.append(chunk_rights)
        n_done += len(chunk[0])
    all_marks = np.concatenate(marks) if marks else np.zeros(0, np.int8)
    of_pairs = np.concatenate(scores) if scores else np.zeros(0, np.float32)
    rows = first.explained
    if lexicon is not None:
        of_pairs[rows] = 0.0
        wrong = all_marks == MARKS.index("misaligned")
        all_marks[wrong & (of_pairs >= _limit(of_pairs))] = 0
    all_marks[rows] = 0  # neither do they count for a stretch, nor does one take them in
    all_marks = joined(all_marks, np.concatenate(rights) if rights else all_marks)
    all_marks[rows] = 0
    shifts = [] if lexicon is None else alignment.find_shifts(np.concatenate(numbers), np.concatenate(grids))
    # Lines of a shifted run are reported as such, and not a second time as wrong pairs.
    for shift in shifts:
        run = all_marks[shift.first - 1 : shift.last]
        run[run == MARKS.index("misaligned")] = 0
    _count(all_marks, examples, tallies, reading)
    return of_pairs, shifts, all_marks


def _limit(scores: NDArray[np.float32]) -> float:
    """Return the score below which a pair is more likely wrong than right, given how many surely are."""
    share = float((scores < CERTAIN).mean())
    return CERTAIN if share < MANY_WRONG else max(CERTAIN, min(POSSIBLE, float(np.log(share / (1 - share)))))


def _count(marks: NDArray[np.int8], examples: dict[int, str], tallies: dict[str, Tally], reading: Reading) -> None:
    """Add the pairs with a mark to the tallies, with the examples of some."""
    for pair in np.flatnonzero(marks).tolist():
        name = MARKS[marks[pair]]
        side = {"source-language": 0, "target-language": 1}.get(name, 2)
        tallies.setdefault(name, Tally()).add(reading.line(pair, side), examples.get(pair, ""), side)


def scores_at(
    corpus: TextFiles, reading: Reading, lexicon: Lexicon, offsets: Sequence[int], n_src: int
) -> NDArray[np.float32]:
    """Return the scores of every source line with the target line at each offset from it, ``(lines, offsets)``.

    Args:
        corpus: The text.
        reading: How it is read; its segments do not count, so offsets are those of the files.
        lexicon: Word translations.
        offsets: Offsets to score. The text is read once for all that are near one another.
        n_src: Number of source lines.
    """
    table = np.full((n_src, len(offsets)), -alignment.CLIP, np.float32)
    columns = {offset: table[:, column] for column, offset in enumerate(offsets)}
    for base, group in _near_one_another(offsets):
        done = max(0, -base)
        shifted = replace(reading, segments=(Segment(done, done + base, n_src),) if base else ())
        reach = max(1, *(abs(offset - base) for offset in group))
        for before, chunk, after in chunks_with_context(corpus, reach, shifted, fill=True):
            texts = [a + b + c for a, b, c in zip(before, chunk, after, strict=True)]
            src = lexicon.encode_src(texts[0], [words_of(text) for text in texts[0]])
            tgt = lexicon.encode_tgt(texts[1], [words_of(text) for text in texts[1]])
            rows = len(before[0]) + np.arange(min(len(chunk[0]), n_src - done))
            for offset in group:
                partners = rows + offset - base
                inside = (partners >= 0) & (partners < len(tgt.lengths))
                scores = lexicon.scores(src, tgt, rows[inside], partners[inside])
                columns[offset][done : done + len(rows)][inside] = scores
            done += len(rows)
    return table


def _near_one_another(offsets: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return offsets in groups, each with the one from which the others are no more than ``MOST_CONTEXT`` lines away.

    Those around 0 are together.
    """
    groups: dict[int, list[int]] = {}
    base = 0
    for offset in sorted(offsets, key=lambda offset: (abs(offset) > MOST_CONTEXT, offset)):
        if abs(offset - base) > MOST_CONTEXT:
            base = offset
        groups.setdefault(base, []).append(offset)
    return list(groups.items())


def block_offsets(
    corpus: TextFiles, reading: Reading, lexicon: Lexicon, starts: Sequence[int], reach: int
) -> list[tuple[int, float]]:
    """Return for blocks of lines the offset at which the other side fits best, and by how many nats better than at 0.

    Args:
        corpus, reading, lexicon: As for ``scores_at``.
        starts: The first source line of each block of ``shifts.BLOCK`` lines, from 0 and ascending.
        reach: Offsets from ``-reach`` to ``reach`` are tried.
    """
    best: list[tuple[int, float]] = []
    offsets, done = np.arange(-reach, reach + 1), 0
    for before, chunk, after in chunks_with_context(corpus, reach + BLOCK, reading.as_it_stands(), fill=True):
        texts = [a + b + c for a, b, c in zip(before, chunk, after, strict=True)]
        for start in starts:
            if not done <= start < done + len(chunk[0]):
                continue
            first = start - done + len(before[0])
            low = max(0, first - reach)
            sources, targets = texts[0][first : first + BLOCK], texts[1][low : first + BLOCK + reach]
            src = lexicon.encode_src(sources, [words_of(text) for text in sources])
            tgt = lexicon.encode_tgt(targets, [words_of(text) for text in targets])
            row, column = np.indices((len(sources), len(offsets)))
            partner = row + first - low + offsets[column]
            grid = np.full(row.shape, -alignment.CLIP, np.float32)
            inside = (partner >= 0) & (partner < len(targets))
            grid[inside] = lexicon.scores(src, tgt, row[inside], partner[inside])
            sums = np.clip(grid, -alignment.CLIP, MOST_EVIDENCE).sum(0)
            top = int(sums.argmax())
            best.append((int(offsets[top]), float(sums[top] - sums[reach])))
        done += len(chunk[0])
    return best


def neighbour_scores(
    lexicon: Lexicon, src: alignment.Lines, tgt: alignment.Lines, rows: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the scores of source line i with target line i + k, for k from -REACH to REACH, ``(rows, 2 * REACH + 1)``.

    Args:
        lexicon: Word translations.
        src, tgt: The two sides.
        rows: The source lines i to score.
    """
    reach = alignment.REACH
    grid = np.full((len(rows), 2 * reach + 1), -alignment.CLIP, np.float32)
    row, column = np.indices(grid.shape)
    partner = rows[row] + column - reach
    inside = (partner >= 0) & (partner < len(tgt.lengths))
    grid[inside] = lexicon.scores(src, tgt, rows[row[inside]], partner[inside])
    return grid


def foreign_lines(
    known: Knowledge, sides: Sides, words: tuple[list[list[str]], list[list[str]]], exchanged: frozenset[int]
) -> tuple[dict[int, tuple[str, str]], NDArray[np.int8]]:
    """Find the pairs of a chunk with a side in another language, or with swapped sides.

    Args:
        known: Facts about the corpus.
        sides: Sources and targets.
        words: Their words in lower case.
        exchanged: Pairs, from 0, whose sides are exchanged by their scripts.

    Returns:
        The name of the finding and an example, by the pair's number in the chunk, from 0; and what is right of each
        pair, as sums of ``RIGHT_...``, ``(pairs,)``.
    """
    src_lang, tgt_lang = known.languages
    problems, rights = {}, np.zeros(len(sides[0]), np.int8)
    for i, (src_words, tgt_words) in enumerate(zip(*words, strict=True)):
        if src_words == tgt_words:
            continue  # the first pass has counted it as not translated
        src_other, src_own = another_or_own(src_words, src_lang, known.ignored[0])
        tgt_other, tgt_own = another_or_own(tgt_words, tgt_lang, known.ignored[1])
        src_like_tgt = target_likeness(src_words, known.preferences)
        tgt_like_src = -target_likeness(tgt_words, known.preferences)
        swapped = src_like_tgt + tgt_like_src > FOREIGN and min(src_like_tgt, tgt_like_src) > 0
        if swapped or i in exchanged or (src_other and tgt_other and (src_other, tgt_other) == (tgt_lang, src_lang)):
            problems[i] = "swapped-sides", pair_text(sides[0][i], sides[1][i])
        elif src_other or src_like_tgt > FOREIGN:
            problems[i] = "source-language", f"{src_other or tgt_lang or 'the target language'}? {sides[0][i]}"
        elif tgt_other or tgt_like_src > FOREIGN:
            problems[i] = "target-language", f"{tgt_other or src_lang or 'the source language'}? {sides[1][i]}"
        is_right_way = max(src_like_tgt, tgt_like_src) < 0 and src_like_tgt + tgt_like_src < -FOREIGN / 2
        rights[i] = src_own * RIGHT_SOURCE + tgt_own * RIGHT_TARGET + is_right_way * RIGHT_WAY_ROUND
        if i in problems and problems[i][0] == "swapped-sides":
            rights[i] = 0
    return problems, rights
