"""Does line i of the source belong to line i of the target, or to line i + k?

What words mean each other is learned from a sample of the corpus itself by IBM model 1 (Brown et al., 1993,
https://aclanthology.org/J93-2003); length, numbers and the last mark of a line are weighed as they agree in pairs of
the sample and in pairs put together by chance. The sum is a log-likelihood ratio in nats: above 0 the two lines belong
together, below 0 they met by chance. Runs of lines that belong to other lines are found by Viterbi's algorithm over
offsets.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

N_WORDS = 4000  # the commonest words of each side, cut to stems, take part; a table of 64 MB
STEM = 6  # characters of a word that count: most endings fall off
MAX_WORDS = 40  # of each side that are looked at
LEARN_WORDS = 25  # of each side that are learned from
MAX_LINKS = 4_000_000  # word pairs that are learned from; bounds memory and time
MIN_LINKS = 3  # sentences that must have both words: one alone proves nothing
ROUNDS = 5
SMOOTHING = 0.1  # weight of the plain frequency of a word beside its translation probability
COPY = 4.0  # nats for a rare word or number that stands on both sides
MIN_PAIRS = 500  # fewer teach nothing

REACH = 5  # offsets of -REACH to REACH are tried
SWITCH = 24.0  # nats that a change of offset must be worth: in a sorted corpus neighbours are alike
CLIP = 8.0  # nats that one line may say at most in this
WINDOW = 5

PAD, UNKNOWN, FIRST = 0, 1, 2


class Lines(NamedTuple):
    """One side of some lines, ready to be compared."""

    words: Ints  # (n, MAX_WORDS): ids, PAD behind the last
    copies: Ints  # (n, MAX_WORDS): a sum of each word, the same on both sides
    lengths: Floats  # (n,): log of 1 + characters
    numbers: Ints  # (n,): a sum of the numbers in the line; 0: none
    marks: Ints  # (n,): the kind of mark that the line ends in


def stem(word: str) -> str:
    """The part of a lower-case word that counts."""
    return word[:STEM]


_MARKS = {**dict.fromkeys(".。．", 1), **dict.fromkeys("?？؟", 2), **dict.fromkeys("!！", 3), **dict.fromkeys(":：", 4)}
_AFTER_MARKS = " \t\"'”’»«“)）」』\u3000"


def last_mark(text: str) -> int:
    """1 ``.``, 2 ``?``, 3 ``!``, 4 ``:``, 0 something else; quotes and brackets behind it are passed over."""
    return _MARKS.get(text.rstrip(_AFTER_MARKS)[-1:], 0)


def as_lines(texts: Sequence[str], words: Sequence[Sequence[str]], ids: dict[str, int]) -> Lines:
    """Make one side of some lines comparable.

    Args:
        words: The lower-case words of each text.
        ids: Of the stems that are known.
    """
    n = len(texts)
    rows, copies = np.zeros((n, MAX_WORDS), np.int32), np.zeros((n, MAX_WORDS), np.uint32)
    numbers, marks = np.zeros(n, np.int64), np.zeros(n, np.int8)
    for i, line in enumerate(words):
        cut = line[:MAX_WORDS]
        rows[i, : len(cut)] = [ids.get(word[:STEM], UNKNOWN) for word in cut]
        copies[i, : len(cut)] = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in cut]
        numbers[i] = sum(zlib.crc32(word.encode()) for word in line if word.isdigit())
        marks[i] = last_mark(texts[i])
    lengths = np.log1p(np.fromiter(map(len, texts), np.float64, n))
    return Lines(rows, copies, lengths, numbers, marks)


class Lexicon(NamedTuple):
    """What a corpus says about which words and lines belong together."""

    src_ids: dict[str, int]
    tgt_ids: dict[str, int]
    table: NDArray[np.float32]  # (source words, target words): p(t | s); row PAD: p(t | nothing)
    frequency: NDArray[np.float32]  # (target words,): p(t)
    length: tuple[float, float, float, float]  # of log(target / source) of pairs: centre, spread; of chance: the same
    same_number: tuple[float, float]  # nats if the numbers agree, if not
    same_mark: tuple[float, float]
    usual: float  # median score of a pair

    def src_lines(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> Lines:
        return as_lines(texts, words, self.src_ids)

    def tgt_lines(self, texts: Sequence[str], words: Sequence[Sequence[str]]) -> Lines:
        return as_lines(texts, words, self.tgt_ids)

    def scores(self, src: Lines, tgt: Lines, i: Ints, j: Ints) -> NDArray[np.float32]:
        """How much likelier source lines ``i`` and target lines ``j`` are as pairs than by chance: nats, ``(n,)``."""
        found = np.zeros(len(i), np.float32)
        n_src, n_tgt = (src.words != PAD).sum(1), (tgt.words != PAD).sum(1)
        order = np.argsort(n_src[i] * 64 + n_tgt[j])
        for start in range(0, len(order), 1024):
            rows = order[start : start + 1024]
            found[rows] = self._words(
                src, tgt, i[rows], j[rows], max(1, n_src[i[rows]].max()), max(1, n_tgt[j[rows]].max())
            )
        return (found + self._rest(src, tgt, i, j)).astype(np.float32)

    def _words(self, src: Lines, tgt: Lines, i: Ints, j: Ints, S: int, T: int) -> Floats:
        s, t = src.words[i, :S], tgt.words[j, :T]  # (B, S), (B, T)
        links = self.table[s[:, :, None], t[:, None, :]]  # (B, S, T)
        links *= (s != PAD)[:, :, None]
        p_nothing = self.table[PAD][t]
        p_given = (links.sum(1) + p_nothing) / (1 + (s != PAD).sum(1))[:, None]  # (B, T)
        p_alone = np.maximum(self.frequency[t], 1e-9)
        gain = np.log((1 - SMOOTHING) * p_given / p_alone + SMOOTHING)
        copied = ((src.copies[i, :S, None] == tgt.copies[j, None, :T]) & (s == UNKNOWN)[:, :, None]).any(1)
        gain = np.where(t == UNKNOWN, np.where(copied, COPY, 0.0), gain)
        return (gain * (t != PAD)).sum(1)

    def _rest(self, src: Lines, tgt: Lines, i: Ints, j: Ints) -> Floats:
        return (
            length_gain(tgt.lengths[j] - src.lengths[i], self.length)
            + agreement_gain(src.numbers[i], tgt.numbers[j], self.same_number)
            + np.where(src.marks[i] == tgt.marks[j], *self.same_mark)
        )


def length_gain(ratio: Floats, length: tuple[float, float, float, float]) -> Floats:
    """Log of two normal densities' ratio, never above 3 nor below -8."""
    centre, spread, chance_centre, chance_spread = length
    gain = ((ratio - chance_centre) / chance_spread) ** 2 / 2 - ((ratio - centre) / spread) ** 2 / 2
    return np.clip(gain + np.log(chance_spread / spread), -8.0, 3.0)


def agreement_gain(a: Ints, b: Ints, gains: tuple[float, float]) -> Floats:
    """The first gain where both are equal, the second where not, 0 where neither has anything."""
    return np.where((a == 0) & (b == 0), 0.0, np.where(a == b, *gains))


def learn(src_texts: Sequence[str], tgt_texts: Sequence[str], src_words: Sequence[Sequence[str]],
          tgt_words: Sequence[Sequence[str]]) -> Lexicon | None:  # fmt: skip
    """Learn a lexicon from a sample of pairs; None where there are too few.

    Args:
        src_words, tgt_words: The lower-case words of each line.
    """
    n = len(src_texts)
    if n < MIN_PAIRS:
        return None
    src_ids, tgt_ids = _commonest(src_words), _commonest(tgt_words)
    src, tgt = as_lines(src_texts, src_words, src_ids), as_lines(tgt_texts, tgt_words, tgt_ids)
    table = _model_1(src.words, tgt.words, len(src_ids) + FIRST, len(tgt_ids) + FIRST)
    counts = np.bincount(tgt.words[tgt.words != PAD], minlength=len(tgt_ids) + FIRST)
    frequency = (counts / max(counts.sum(), 1)).astype(np.float32)
    same, chance = np.arange(n), np.roll(np.arange(n), n // 2 + 1)  # chance: each source beside a far target
    length = (*_centre(tgt.lengths - src.lengths), *_centre(tgt.lengths[chance] - src.lengths))
    has_number = (src.numbers != 0) | (tgt.numbers != 0)
    has_number_by_chance = (src.numbers != 0) | (tgt.numbers[chance] != 0)
    same_number = _log_odds(
        (src.numbers == tgt.numbers)[has_number], (src.numbers == tgt.numbers[chance])[has_number_by_chance]
    )
    same_mark = _log_odds(src.marks == tgt.marks, src.marks == tgt.marks[chance])
    lexicon = Lexicon(src_ids, tgt_ids, table, frequency, length, same_number, same_mark, 0.0)
    some = same[:: max(1, n // 5000)]
    return lexicon._replace(usual=float(np.median(lexicon.scores(src, tgt, some, some))))


def _commonest(lines: Sequence[Sequence[str]]) -> dict[str, int]:
    counts = Counter(stem(word) for line in lines for word in line)
    common = [word for word, count in counts.most_common(N_WORDS) if count >= MIN_LINKS]
    return {word: i for i, word in enumerate(common, start=FIRST)}


def _centre(values: Floats) -> tuple[float, float]:
    """Median and spread, by which a few wild values change little."""
    low, centre, high = np.quantile(values, (0.16, 0.5, 0.84))
    return float(centre), max(float(high - low) / 2, 0.05)


def _log_odds(of_pairs: NDArray[np.bool_], of_chance: NDArray[np.bool_]) -> tuple[float, float]:
    """Nats for agreeing and for not agreeing."""
    p, q = ((agreed.sum() + 1) / (len(agreed) + 2) for agreed in (of_pairs, of_chance))
    return float(np.log(p / q)), float(np.log((1 - p) / (1 - q)))


def _model_1(src: Ints, tgt: Ints, n_src: int, n_tgt: int) -> NDArray[np.float32]:
    """p(t | s) by EM, ``(n_src, n_tgt)``; links that fewer than ``MIN_LINKS`` sentences have are 0."""
    keys, heads = _links(src, tgt, n_tgt)  # of each link: s * n_tgt + t, and which target word of the sample it is in
    pairs, link, n_sentences = np.unique(keys, return_inverse=True, return_counts=True)
    words = (pairs // n_tgt).astype(np.int64)
    p: Floats = np.ones(len(pairs))
    for _ in range(ROUNDS):
        each: Floats = p[link]
        each /= np.bincount(heads, each)[heads]
        p = np.bincount(link, each, minlength=len(pairs)).astype(np.float64)
        p /= np.bincount(words, p)[words]
    p[n_sentences < MIN_LINKS] = 0.0
    table = np.zeros((n_src, n_tgt), np.float32)
    table[words, pairs % n_tgt] = p
    return table


def _links(src: Ints, tgt: Ints, n_tgt: int) -> tuple[Ints, Ints]:
    """Every known source word, and nothing (PAD), beside every known target word of the same pair."""
    keys, heads, n_heads, n_links = [], [], 0, 0
    for s, t in zip(src[:, :LEARN_WORDS], tgt[:, :LEARN_WORDS], strict=True):
        s, t = np.unique(s[s > UNKNOWN]), np.unique(t[t > UNKNOWN])
        s = np.concatenate(([PAD], s))
        keys.append((s[:, None].astype(np.int64) * n_tgt + t).ravel())
        heads.append(np.tile(np.arange(n_heads, n_heads + len(t), dtype=np.int32), len(s)))
        n_heads += len(t)
        n_links += len(keys[-1])
        if n_links > MAX_LINKS:
            break
    return np.concatenate(keys), np.concatenate(heads)


# --- runs of lines that belong to others ------------------------------------------------------------------------------


class Shift(NamedTuple):
    """Source lines ``first`` to ``last`` (from 1) belong to the target lines ``offset`` further down."""

    first: int
    last: int
    offset: int


def smoothed(scores: Floats) -> Floats:
    """The mean over ``WINDOW`` lines of what each says, ``(n,)``."""
    clipped = np.clip(scores, -CLIP, CLIP)
    padded = np.pad(clipped, WINDOW // 2, mode="edge")
    return np.convolve(padded, np.full(WINDOW, 1 / WINDOW), mode="valid")[: len(scores)]


def suspicious(scores: Floats, usual: float) -> NDArray[np.bool_]:
    """Where neighbouring lines fit badly, ``(n,)``; a few lines around it too."""
    low = smoothed(scores) < min(usual, CLIP) / 2
    return np.convolve(np.pad(low, 3).astype(np.int8), np.ones(7, np.int8), mode="valid") > 0


def best_offsets(scores: Floats) -> Ints:
    """The most likely offset of each line, ``(n,)``, by Viterbi's algorithm: to change it costs ``SWITCH`` nats.

    Args:
        scores: Of source line i and target line i + k for k from -REACH to REACH, ``(n, 2 * REACH + 1)``, in nats.
    """
    gains = np.clip(scores, -CLIP, CLIP)
    n, n_offsets = gains.shape
    came_from = np.zeros((n, n_offsets), np.int8)
    total = np.full(n_offsets, -SWITCH)
    total[REACH] = 0.0  # before the first line all was well
    stay = np.arange(n_offsets)
    for i in range(n):
        best = int(total.argmax())
        moved = total[best] - SWITCH
        came_from[i] = np.where(total >= moved, stay, best)
        total = np.maximum(total, moved) + gains[i]
    path = np.zeros(n, np.int64)
    at = int(total.argmax())
    for i in range(n - 1, -1, -1):
        path[i] = at - REACH
        at = int(came_from[i, at])
    return path


def shifts(lines: Ints, scores: Floats) -> list[Shift]:
    """Runs of lines that belong to other lines.

    Args:
        lines: The numbers, from 0 and ascending, of the lines that are suspicious, ``(n,)``.
        scores: As for ``best_offsets``, of these lines.
    """
    found: list[Shift] = []
    for part in np.split(np.arange(len(lines)), np.flatnonzero(np.diff(lines) > 1) + 1):
        if not len(part):
            continue
        path = best_offsets(scores[part])
        for run in np.split(part, np.flatnonzero(np.diff(path)) + 1):
            offset = int(path[run[0] - part[0]])
            if offset:
                found.append(Shift(int(lines[run[0]]) + 1, int(lines[run[-1]]) + 1, offset))
    return found
