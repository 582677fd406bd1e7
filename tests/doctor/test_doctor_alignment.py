"""Word translations, scores and offsets computed at once, each held to a plain computation."""

from __future__ import annotations

import itertools
import math
import tracemalloc
import unicodedata
from collections import Counter, defaultdict

import numpy as np
import pytest

from dragoman.data import phrasebook
from dragoman.doctor import alignment
from dragoman.doctor.alignment import (
    CLIP,
    COPY,
    PAD,
    REACH,
    SMOOTHING,
    SWITCH,
    UNKNOWN,
    best_offsets,
    find_shifts,
    last_mark,
    learn_lexicon,
)
from dragoman.doctor.paired_lines import Sample
from dragoman.doctor.shifts import Segment, Surface, along, by_lengths, winners
from dragoman.languages.scripts import CLASSES, SCRIPTS, count_classes
from dragoman.languages.stopwords import words_of

PAIRS = list(dict.fromkeys(phrasebook.pairs(600)))
TEXTS = [src for src, _ in PAIRS], [tgt for _, tgt in PAIRS]
WORDS = [words_of(text) for text in TEXTS[0]], [words_of(text) for text in TEXTS[1]]


@pytest.fixture(scope="module")
def lexicon() -> alignment.Lexicon:
    lexicon = learn_lexicon(*TEXTS, *WORDS)
    assert lexicon is not None
    return lexicon


def test_model_1_is_em_as_in_the_textbook(lexicon: alignment.Lexicon) -> None:
    sentences = []
    for src, tgt in zip(*WORDS, strict=True):
        s = {alignment.stem(word) for word in src[: alignment.LEARN_WORDS]} & lexicon.src_ids.keys()
        t = {alignment.stem(word) for word in tgt[: alignment.LEARN_WORDS]} & lexicon.tgt_ids.keys()
        sentences.append((["", *s], list(t)))
    p: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    together = Counter((s, t) for src, tgt in sentences for s in src for t in tgt)
    for _ in range(alignment.ROUNDS):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for src, tgt in sentences:
            for t in tgt:
                z = sum(p[s, t] for s in src)
                for s in src:
                    counts[s, t] += p[s, t] / z
                    totals[s] += p[s, t] / z
        p = defaultdict(float, {(s, t): count / totals[s] for (s, t), count in counts.items()})
    ids = {"": PAD, **lexicon.src_ids}
    for (s, t), n in together.items():
        wanted = p[s, t] if n >= alignment.MIN_LINKS else 0.0
        assert lexicon.table[ids[s], lexicon.tgt_ids[t]] == pytest.approx(wanted, rel=1e-4, abs=1e-7)
    assert np.count_nonzero(lexicon.table) == sum(n >= alignment.MIN_LINKS for n in together.values())


def plain_score(lexicon: alignment.Lexicon, i: int, j: int) -> float:
    """The words' part of the score of source i and target j."""
    src = [lexicon.src_ids.get(alignment.stem(w), UNKNOWN) for w in WORDS[0][i]]
    rare = {w for w, k in zip(WORDS[0][i], src, strict=True) if k == UNKNOWN}
    total = 0.0
    for word in WORDS[1][j]:
        t = lexicon.tgt_ids.get(alignment.stem(word), UNKNOWN)
        if t == UNKNOWN:
            total += COPY if word in rare else 0.0
        else:
            p = sum(float(lexicon.table[s, t]) for s in [PAD, *src]) / (len(src) + 1)
            total += math.log((1 - SMOOTHING) * p / float(lexicon.frequency[t]) + SMOOTHING)
    return total


def test_scores_of_many_pairs_are_those_of_single_ones(lexicon: alignment.Lexicon) -> None:
    src, tgt = lexicon.encode_src(TEXTS[0], WORDS[0]), lexicon.encode_tgt(TEXTS[1], WORDS[1])
    i = np.arange(0, 500, 7)
    j = (i * 3) % 500
    together = lexicon.scores(src, tgt, i, j)
    for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        alone = lexicon.scores(src, tgt, i[k : k + 1], j[k : k + 1])[0]
        assert together[k] == pytest.approx(alone, abs=1e-3)
        surface = lexicon.surface_scores(src, tgt, i[k : k + 1], j[k : k + 1])[0]
        assert together[k] == pytest.approx(plain_score(lexicon, a, b) + surface, abs=1e-3)


def test_pairs_score_above_chance(lexicon: alignment.Lexicon) -> None:
    src, tgt = lexicon.encode_src(TEXTS[0], WORDS[0]), lexicon.encode_tgt(TEXTS[1], WORDS[1])
    here = np.arange(len(PAIRS) - 50)
    assert np.mean(lexicon.scores(src, tgt, here, here) > 0) > 0.99
    assert np.mean(lexicon.scores(src, tgt, here, here + 50) < 0) > 0.9


def test_too_few_pairs_teach_nothing() -> None:
    assert learn_lexicon(*(side[:499] for side in TEXTS), *(side[:499] for side in WORDS)) is None


def plain_best_offsets(scores: np.ndarray) -> float:
    """The best total over all paths, by trying them all."""
    n, width = scores.shape
    best = -math.inf
    for path in itertools.product(range(width), repeat=n):
        changes = sum(a != b for a, b in itertools.pairwise((REACH, *path)))
        best = max(best, sum(np.clip(scores[i, k], -CLIP, CLIP) for i, k in enumerate(path)) - SWITCH * changes)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_viterbi_finds_the_best_of_all_paths(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(alignment, "REACH", 1)
    monkeypatch.setattr(alignment, "SWITCH", 5.0)
    monkeypatch.setitem(globals(), "REACH", 1)
    monkeypatch.setitem(globals(), "SWITCH", 5.0)
    scores = np.random.default_rng(seed).normal(0, 6, (7, 3))
    path = best_offsets(scores) + 1
    changes = int(np.count_nonzero(np.diff([1, *path])))
    total = float(np.clip(scores, -CLIP, CLIP)[np.arange(7), path].sum()) - 5.0 * changes
    assert total == pytest.approx(plain_best_offsets(scores))


def test_runs_are_cut_where_lines_or_offsets_part() -> None:
    width = 2 * REACH + 1
    scores = np.full((30, width), -CLIP)
    scores[:10, REACH + 2] = scores[10:20, REACH - 1] = scores[20:, REACH] = CLIP
    lines = np.array([*range(100, 115), *range(200, 215)])
    assert find_shifts(lines, scores) == [(101, 110, 2), (111, 115, -1), (201, 205, -1)]
    assert find_shifts(np.zeros(0, np.int64), np.zeros((0, width))) == []


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("A.", 1),
        ("他来了。", 1),
        ("Who?", 2),
        ("谁？", 2),
        ("Oh!”", 3),
        ("(So!)", 3),
        ("thus:", 4),
        ("none", 0),
        ("", 0),
        (' "', 0),
    ],
)
def test_last_marks(text: str, mark: int) -> None:
    assert last_mark(text) == mark


def test_characters_are_classed_as_one_by_one() -> None:
    lines = ["", "a\u00a0Ж9,", "\U0001f600漢かアहแע한λ\ud800", *map(chr, range(0x20, 0x3000, 7))]
    counts = count_classes(lines)
    assert counts.sum(1).tolist() == [len(line) for line in lines]
    for line, row in zip(lines, counts, strict=True):
        for character in set(line):
            alone = CLASSES[int(count_classes([character])[0].argmax())]
            is_letter = unicodedata.category(character)[0] in "L"
            assert row[CLASSES.index(alone)] >= line.count(character)
            assert not is_letter or alone in SCRIPTS


def test_a_sample_is_drawn_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.doctor import paired_lines

    monkeypatch.setattr(paired_lines, "SAMPLE_PAIRS", 50)
    drawn = Counter[int]()
    for seed in range(40):
        sample = Sample(seed)
        for start in range(0, 1000, 40):
            texts = [str(i) for i in range(start, start + 40)]
            sample.add(texts, texts)
        src, tgt, *_ = sample.sides()
        assert src == tgt
        assert len(set(src)) == 50
        drawn.update(int(text) // 250 for text in src)
    assert all(400 < drawn[quarter] < 600 for quarter in range(4))  # 500 each, give or take five standard deviations


def test_the_offset_with_the_most_votes_is_the_first_of_the_greatest() -> None:
    chance = np.random.default_rng(5)
    for n_offsets, n_blocks in ((1, 3), (2, 5), (31, 101)):
        votes = chance.integers(-3, 4, (n_offsets, n_blocks)) / 2  # many are equal
        best, most = winners(iter(votes))
        np.testing.assert_array_equal(best, votes.argmax(0))
        np.testing.assert_array_equal(most, votes.max(0))


def test_files_of_unequal_length_are_put_side_by_side_in_little_memory() -> None:
    """The votes of 3,001 offsets stood in memory together, twice: 2,000 bytes a line."""
    n, missing, place = 12_000, 750, 5_000
    lengths = np.random.default_rng(3).integers(5, 200, n)
    src = np.stack([lengths, np.zeros(n, np.int64), np.ones(n, np.int64)], 1).astype(np.uint32)
    tgt = np.insert(src[:-missing], place, src[7], 0)
    tracemalloc.start()
    segments = by_lengths(src, tgt)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert segments == [Segment(0, 0, place), Segment(place, place + 1, n - missing - place)]
    assert peak < 200 * n


@pytest.mark.parametrize(
    ("lost_src", "lost_tgt"),
    [
        (None, (4_000, 750)),
        ((4_000, 750), None),
        (None, (4_000, 5_000)),
        ((4_000, 5_000), None),
        (None, (0, 3_000)),
        ((3_000, 1_500), (7_000, 2_500)),
        ((3_000, 2_000), (7_000, 2_000)),
        (None, (9_000, 3_000)),
    ],
)
def test_pairs_around_a_block_of_lost_lines_are_kept(
    lost_src: tuple[int, int] | None, lost_tgt: tuple[int, int] | None
) -> None:
    """Behind 750 lost lines as many good pairs were dropped, and behind 2,000 all were paired with wrong lines."""
    pairs = list(itertools.islice(phrasebook.pairs(12_000), 12_000))
    kept = [list(range(len(pairs))), list(range(len(pairs)))]
    tables = []
    for side, lost in enumerate((lost_src, lost_tgt)):
        if lost is not None:
            del kept[side][lost[0] : sum(lost)]
        surface = Surface()
        surface.add([pairs[i][side] for i in kept[side]])
        tables.append(surface.table())
    found = [
        (kept[0][segment.src + i], kept[1][segment.tgt + i])
        for segment in by_lengths(*tables)
        for i in range(segment.n)
    ]
    right = sum(src == tgt for src, tgt in found)
    # The lines beside a gap may look alike: a few of them are left to word translations.
    assert right >= len(set(kept[0]) & set(kept[1])) - 5
    assert len(found) - right <= 5


def test_bad_pairs_are_not_skipped() -> None:
    """A stretch of pairs that are no translations stays where it is: no lines of it are said to be missing."""

    def scores(offset: int, first: int, last: int) -> np.ndarray:
        lines = np.arange(first, last)
        good = ((lines < 3_000) | (lines >= 5_000)) & (lines < 9_000) if offset == 0 else lines >= 9_700
        return np.where(good, 1.0, -1.0)

    assert along([0, -700], 12_000, 11_300, scores) == [Segment(0, 0, 9_000), Segment(9_700, 9_000, 2_300)]


@pytest.mark.parametrize("ratio", [1.5, 2, 3, 5, 10])
@pytest.mark.parametrize("long_side", [0, 1])
def test_a_side_may_be_much_longer_than_the_other(ratio: float, long_side: int) -> None:
    """Offsets larger than the shorter side has lines led out of a table: 500 lines against 2,500 crashed."""
    pairs = list(itertools.islice(phrasebook.pairs(5_000), 5_000))
    chance = np.random.default_rng(7)
    for n in (60, 100, 200, 500):
        n_long = int(n * ratio)
        start = int(chance.integers(len(pairs) - n_long + 1))
        inner = start + int(chance.integers(n_long - n + 1))
        rows = [range(inner, inner + n), range(inner, inner + n)]
        rows[long_side] = range(start, start + n_long)
        tables = []
        for side in (0, 1):
            surface = Surface()
            surface.add([pairs[i][side] for i in rows[side]])
            tables.append(surface.table())
        end = [0, 0]
        for segment in by_lengths(*tables):
            assert segment.n > 0
            assert segment.src >= end[0]
            assert segment.tgt >= end[1]
            end = [segment.src + segment.n, segment.tgt + segment.n]
        assert end[0] <= len(rows[0])
        assert end[1] <= len(rows[1])
