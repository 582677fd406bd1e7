"""Score how well a source line and a target line fit, and find runs of lines that fit other lines better.

    lexicon = learn_lexicon(src_texts, tgt_texts, src_words, tgt_words)
    src, tgt = lexicon.encode_src(texts, words), lexicon.encode_tgt(other_texts, other_words)
    lexicon.scores(src, tgt, np.array([0, 1]), np.array([0, 1]))      # nats, of lines 0 and 1

Word translations are learned from a sample of the corpus by IBM model 1 (Brown et al., 1993,
https://aclanthology.org/J93-2003). Length, numbers and the last mark of a line count by how often they agree in true
pairs of the sample and in random ones. The score is a log-likelihood ratio in nats: above 0 the two lines are more
likely a pair than not. Viterbi's algorithm over offsets finds the runs of shifted lines.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.languages.sentence_ends import ENDS, is_exclamation, is_question

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

# Learning word translations
N_WORDS = 4000  # most frequent stems of each side in the lexicon: a table of 64 MB
STEM = 6  # characters of a word that are compared, which drops most inflections
MAX_WORDS = 40  # words of a line that are scored
LEARN_WORDS = 25  # words of a line that are learned from
MAX_LINKS = 4_000_000  # word pairs that are learned from; bounds memory and time
MIN_LINKS = 3  # sentences that must have both words: fewer may be chance
ROUNDS = 5  # iterations of EM
SMOOTHING = 0.1  # weight of a word's frequency against its translation probability
COPY = 4.0  # nats for a rare word or number that occurs on both sides
MIN_PAIRS = 500  # pairs below which nothing is learned

# Finding shifted lines
REACH = 5  # offsets from -REACH to REACH are tried
SWITCH = 24.0  # nats that a change of offset costs; high, because neighbours are alike in a sorted corpus
CLIP = 8.0  # largest evidence in nats that one line can give for an offset
WINDOW = 5  # lines that are averaged

# Word ids; those of the lexicon begin at FIRST
PAD, UNKNOWN, FIRST = 0, 1, 2


class Lines(NamedTuple):
    """One side of some lines as arrays."""

    words: Ints  # (n, MAX_WORDS): ids in the lexicon, padded with PAD
    copies: Ints  # (n, MAX_WORDS): a checksum of each word, by which equal words of both sides are found
    lengths: Floats  # (n,): log of 1 + characters
    numbers: Ints  # (n,): a checksum of the numbers in the line; 0: there is no number
    marks: Ints  # (n,): the kind of mark that the line ends in, see ``last_mark``


def stem(word: str) -> str:
    """Return the first characters of a lower-case word, which stand for all its inflections."""
    return word[:STEM]


_MARKS = {
    **{mark: 2 if is_question(mark) else 3 if is_exclamation(mark) else 1 for mark in ENDS},
    **dict.fromkeys(":：", 4),
}
_AFTER_MARKS = " \t\"'”’»«“)）」』\u3000"


def last_mark(text: str) -> int:
    """Return the kind of the last mark: 1 ``.``, 2 ``?``, 3 ``!``, 4 ``:``, 0 other; closing quotes do not count."""
    return _MARKS.get(text.rstrip(_AFTER_MARKS)[-1:], 0)


def encode_lines(texts: Sequence[str], words: Sequence[Sequence[str]], ids: dict[str, int]) -> Lines:
    """Turn one side of some lines into arrays.

    Args:
        texts: The lines.
        words: The lower-case words of each line.
        ids: The id of each stem in the lexicon.
    """
    n = len(texts)
    rows, copies = np.zeros((n, MAX_WORDS), np.int32), np.zeros((n, MAX_WORDS), np.uint32)
    numbers, marks = np.zeros(n, np.int64), np.zeros(n, np.int8)
    for i, line in enumerate(words):
        first_words = line[:MAX_WORDS]
        rows[i, : len(first_words)] = [ids.get(word[:STEM], UNKNOWN) for word in first_words]
        copies[i, : len(first_words)] = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in first_words]
        numbers[i] = sum(zlib.crc32(word.encode()) for word in line if word.isdigit())
        marks[i] = last_mark(texts[i])
    lengths = np.log1p(np.fromiter(map(len, texts), np.float64, n))
    return Lines(rows, copies, lengths, numbers, marks)


class Lexicon(NamedTuple):
    """Word translations and other statistics of true pairs, learned from a sample by ``learn_lexicon``."""

    src_ids: dict[str, int]
    tgt_ids: dict[str, int]
    table: NDArray[np.float32]  # (source words, target words): p(t | s); row PAD: p(t | nothing)
    frequency: NDArray[np.float32]  # (target words,): p(t)
    length: tuple[float, float, float, float]  # centre and spread of log(target / source): true pairs, random ones
    same_number: tuple[float, float]  # nats if the numbers of both lines agree; if not
    same_mark: tuple[float, float]  # nats if both lines end in the same mark; if not
    median_score: float  # of the pairs in the sample

    def encode_src(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> Lines:
        """Turn source lines, with their lower-case words, into arrays."""
        return encode_lines(texts, words, self.src_ids)

    def encode_tgt(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> Lines:
        """Turn target lines, with their lower-case words, into arrays."""
        return encode_lines(texts, words, self.tgt_ids)

    def scores(self, src: Lines, tgt: Lines, i: Ints, j: Ints) -> NDArray[np.float32]:
        """Return how much likelier a true pair is than a random one, in nats, ``(n,)``.

        Args:
            src, tgt: Source and target lines.
            i, j: Numbers of the lines to compare, ``(n,)`` each: source line ``i[0]`` with target line ``j[0]``.
        """
        word_scores = np.zeros(len(i), np.float32)
        n_src, n_tgt = (src.words != PAD).sum(1), (tgt.words != PAD).sum(1)
        # Pairs of similar lengths are scored together, so that little of each block is padding.
        order = np.argsort(n_src[i] * 64 + n_tgt[j])
        for start in range(0, len(order), 1024):
            rows = order[start : start + 1024]
            longest = max(1, n_src[i[rows]].max()), max(1, n_tgt[j[rows]].max())
            src_words, tgt_words = src.words[i[rows], : longest[0]], tgt.words[j[rows], : longest[1]]
            src_copies, tgt_copies = src.copies[i[rows], : longest[0]], tgt.copies[j[rows], : longest[1]]
            copied = ((src_copies[:, :, None] == tgt_copies[:, None]) & (src_words == UNKNOWN)[:, :, None]).any(1)
            word_scores[rows] = self._word_scores(src_words, tgt_words, copied)
        return (word_scores + self.surface_scores(src, tgt, i, j)).astype(np.float32)

    def _word_scores(self, src_words: Ints, tgt_words: Ints, copied: NDArray[np.bool_]) -> Floats:
        """Return the part of the score that the words give, ``(B,)``.

        Args:
            src_words: Ids ``(B, S)``.
            tgt_words: Ids ``(B, T)``.
            copied: True for each target word that is also a rare word of the source, ``(B, T)``.
        """
        links = self.table[src_words[:, :, None], tgt_words[:, None, :]]  # (B, S, T)
        links *= (src_words != PAD)[:, :, None]
        p_nothing = self.table[PAD][tgt_words]
        p_given_src = (links.sum(1) + p_nothing) / (1 + (src_words != PAD).sum(1))[:, None]  # (B, T)
        p_alone = np.maximum(self.frequency[tgt_words], 1e-9)
        gain = np.log((1 - SMOOTHING) * p_given_src / p_alone + SMOOTHING)
        gain = np.where(tgt_words == UNKNOWN, np.where(copied, COPY, 0.0), gain)
        return (gain * (tgt_words != PAD)).sum(1)

    def surface_scores(self, src: Lines, tgt: Lines, i: Ints, j: Ints) -> Floats:
        """Return the part of the score that lengths, numbers and last marks give, ``(n,)``."""
        return (
            length_gain(tgt.lengths[j] - src.lengths[i], self.length)
            + agreement_gain(src.numbers[i], tgt.numbers[j], self.same_number)
            + np.where(src.marks[i] == tgt.marks[j], *self.same_mark)
        )


def length_gain(ratio: Floats, length: tuple[float, float, float, float]) -> Floats:
    """Return the log-likelihood ratio of a length ratio in true and in random pairs, clipped to -8 to 3 nats.

    Args:
        ratio: log(target length / source length), of any shape.
        length: Centre and spread of normal distributions: true pairs, then random ones.
    """
    centre, spread, chance_centre, chance_spread = length
    gain = ((ratio - chance_centre) / chance_spread) ** 2 / 2 - ((ratio - centre) / spread) ** 2 / 2
    return np.clip(gain + np.log(chance_spread / spread), -8.0, 3.0)


def agreement_gain(a: Ints, b: Ints, gains: tuple[float, float]) -> Floats:
    """Return the first gain where ``a`` and ``b`` are equal, the second where not, and 0 where both are 0."""
    return np.where((a == 0) & (b == 0), 0.0, np.where(a == b, *gains))


def learn_lexicon(
    src_texts: Sequence[str],
    tgt_texts: Sequence[str],
    src_words: Sequence[Sequence[str]],
    tgt_words: Sequence[Sequence[str]],
) -> Lexicon | None:
    """Learn a lexicon from a sample of pairs; None if there are fewer than ``MIN_PAIRS``.

    Args:
        src_texts, tgt_texts: The lines, in random order.
        src_words, tgt_words: The lower-case words of each line.
    """
    n = len(src_texts)
    if n < MIN_PAIRS:
        return None
    src_ids, tgt_ids = _frequent_stems(src_words), _frequent_stems(tgt_words)
    src, tgt = encode_lines(src_texts, src_words, src_ids), encode_lines(tgt_texts, tgt_words, tgt_ids)
    table = _model_1(src.words, tgt.words, len(src_ids) + FIRST, len(tgt_ids) + FIRST)
    counts = np.bincount(tgt.words[tgt.words != PAD], minlength=len(tgt_ids) + FIRST)
    frequency = (counts / max(counts.sum(), 1)).astype(np.float32)
    # Each source with a target half a sample away is a random pair.
    far = np.roll(np.arange(n), n // 2 + 1)
    length = (*_centre(tgt.lengths - src.lengths), *_centre(tgt.lengths[far] - src.lengths))
    has_number = (src.numbers != 0) | (tgt.numbers != 0)
    has_number_by_chance = (src.numbers != 0) | (tgt.numbers[far] != 0)
    same_number = _log_odds(
        (src.numbers == tgt.numbers)[has_number], (src.numbers == tgt.numbers[far])[has_number_by_chance]
    )
    same_mark = _log_odds(src.marks == tgt.marks, src.marks == tgt.marks[far])
    lexicon = Lexicon(src_ids, tgt_ids, table, frequency, length, same_number, same_mark, 0.0)
    some = np.arange(n)[:: max(1, n // 5000)]
    return lexicon._replace(median_score=float(np.median(lexicon.scores(src, tgt, some, some))))


def _frequent_stems(lines: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return an id for each of the ``N_WORDS`` most frequent stems of one side, from ``FIRST``."""
    counts = Counter(stem(word) for line in lines for word in line)
    common = [word for word, count in counts.most_common(N_WORDS) if count >= MIN_LINKS]
    return {word: i for i, word in enumerate(common, start=FIRST)}


def _centre(values: Floats) -> tuple[float, float]:
    """Return median and half the range of the middle 68%: centre and spread, hardly moved by a few wild values."""
    low, centre, high = np.quantile(values, (0.16, 0.5, 0.84))
    return float(centre), max(float(high - low) / 2, 0.05)


def _log_odds(true_pairs: NDArray[np.bool_], random_pairs: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the evidence in nats for a true pair if both sides agree, and if not.

    Args:
        true_pairs, random_pairs: For each pair of the kind, True if its sides agree.
    """
    p, q = ((agreed.sum() + 1) / (len(agreed) + 2) for agreed in (true_pairs, random_pairs))
    return float(np.log(p / q)), float(np.log((1 - p) / (1 - q)))


def _model_1(src: Ints, tgt: Ints, n_src: int, n_tgt: int) -> NDArray[np.float32]:
    """Learn p(target word | source word) by EM, ``(n_src, n_tgt)``; pairs in fewer than ``MIN_LINKS`` sentences get 0.

    Args:
        src, tgt: Word ids of both sides, ``(n, MAX_WORDS)``.
        n_src, n_tgt: Number of ids on each side.
    """
    keys, tgt_tokens = _links(src, tgt, n_tgt)
    word_pairs, link, n_sentences = np.unique(keys, return_inverse=True, return_counts=True)
    src_ids = (word_pairs // n_tgt).astype(np.int64)
    p: Floats = np.ones(len(word_pairs))
    for _ in range(ROUNDS):
        # E step: each target token is shared among its links, in proportion to p.
        shares: Floats = p[link]
        shares /= np.bincount(tgt_tokens, shares)[tgt_tokens]
        # M step: p is the sum of shares of a word pair, over that of its source word.
        p = np.bincount(link, shares, minlength=len(word_pairs)).astype(np.float64)
        p /= np.bincount(src_ids, p)[src_ids]
    p[n_sentences < MIN_LINKS] = 0.0
    table = np.zeros((n_src, n_tgt), np.float32)
    table[src_ids, word_pairs % n_tgt] = p
    return table


def _links(src: Ints, tgt: Ints, n_tgt: int) -> tuple[Ints, Ints]:
    """Link every known source word, and the empty word (PAD), to every known target word of the same pair.

    Returns:
        For each link the word pair as ``source id * n_tgt + target id``, and the number of its target token.
    """
    keys, tgt_tokens, n_tokens, n_links = [], [], 0, 0
    for s, t in zip(src[:, :LEARN_WORDS], tgt[:, :LEARN_WORDS], strict=True):
        s, t = np.unique(s[s > UNKNOWN]), np.unique(t[t > UNKNOWN])
        s = np.concatenate(([PAD], s))
        keys.append((s[:, None].astype(np.int64) * n_tgt + t).ravel())
        tgt_tokens.append(np.tile(np.arange(n_tokens, n_tokens + len(t), dtype=np.int32), len(s)))
        n_tokens += len(t)
        n_links += len(keys[-1])
        if n_links > MAX_LINKS:
            break
    return np.concatenate(keys), np.concatenate(tgt_tokens)


# --- runs of shifted lines -------------------------------------------------------------------------------------------


class Shift(NamedTuple):
    """A run of source lines, ``first`` to ``last`` (from 1), whose targets are ``offset`` lines further down."""

    first: int
    last: int
    offset: int


def smoothed(scores: Floats) -> Floats:
    """Return the mean score of the ``WINDOW`` lines around each line, ``(n,)``, each clipped to ``CLIP`` nats."""
    clipped = np.clip(scores, -CLIP, CLIP)
    padded = np.pad(clipped, WINDOW // 2, mode="edge")
    return np.convolve(padded, np.full(WINDOW, 1 / WINDOW), mode="valid")[: len(scores)]


def suspicious(scores: Floats, median_score: float) -> NDArray[np.bool_]:
    """Return True for each line in or near a stretch of low scores, where other offsets are worth trying, ``(n,)``."""
    low = smoothed(scores) < min(median_score, CLIP) / 2
    return np.convolve(np.pad(low, 3).astype(np.int8), np.ones(7, np.int8), mode="valid") > 0


def best_offsets(scores: Floats) -> Ints:
    """Return the most likely offset of each line by Viterbi's algorithm, ``(n,)``; each change costs ``SWITCH`` nats.

    Args:
        scores: Scores of source line i with target line i + k, for k from -REACH to REACH, ``(n, 2 * REACH + 1)``.
    """
    return best_path(np.clip(scores, -CLIP, CLIP), REACH, SWITCH) - REACH


def best_path(gains: Floats, start: int, switch: float) -> Ints:
    """Return the column of each row on the path of the highest sum, by Viterbi's algorithm, ``(n,)``.

    Args:
        gains: What each column adds in each row, ``(n, columns)``.
        start: Column before the first row.
        switch: What each change of column costs.
    """
    n, n_columns = gains.shape
    came_from = np.zeros((n, n_columns), np.min_scalar_type(-n_columns))  # n is the number of lines of a corpus
    total = np.full(n_columns, -switch)
    total[start] = 0.0
    stay = np.arange(n_columns)
    for i in range(n):
        best = int(total.argmax())
        moved = total[best] - switch
        came_from[i] = np.where(total >= moved, stay, best)
        total = np.maximum(total, moved) + gains[i]
    path = np.zeros(n, np.int64)
    column = int(total.argmax())
    for i in range(n - 1, -1, -1):
        path[i] = column
        column = int(came_from[i, column])
    return path


def find_shifts(lines: Ints, scores: Floats) -> list[Shift]:
    """Find runs of lines whose targets are at another offset than 0.

    Args:
        lines: Numbers of the suspicious lines, from 0 and ascending, ``(n,)``.
        scores: Their scores at each offset, see ``best_offsets``.
    """
    shifts: list[Shift] = []
    # Lines that are not consecutive are decided apart; within a stretch, a run ends where the offset changes.
    for part in np.split(np.arange(len(lines)), np.flatnonzero(np.diff(lines) > 1) + 1):
        if not len(part):
            continue
        path = best_offsets(scores[part])
        for run in np.split(part, np.flatnonzero(np.diff(path)) + 1):
            offset = int(path[run[0] - part[0]])
            if offset:
                shifts.append(Shift(int(lines[run[0]]) + 1, int(lines[run[-1]]) + 1, offset))
    return shifts
