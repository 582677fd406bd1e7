"""Duplicates within a corpus, and pairs shared by training and test text, by 64-bit digests of each side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.config import PairOfFiles, TextFiles
from dragoman.doctor.findings import N_EXAMPLES, Finding, Kind, Tally, findings_of, pair_text
from dragoman.doctor.paired_lines import AS_IT_IS, Pairs, Reading, chunks
from dragoman.languages.stopwords import words_of

OFTEN = 20
"""Times that a text occurs from which it may be boilerplate or a placeholder."""

OFTEN_SHARE = 0.002
"""Share of the pairs from which one pair is boilerplate."""

STAND_IN_SHARE = 0.01
"""Share of the pairs from which one text may stand in place of translations."""

STAND_IN_SPREAD = 0.3
"""Spread of the logarithms of the lengths of the other sides, from which they are not translations of one text."""

Digests = NDArray[np.int64]
"""Digests ``(pairs, 4)`` of the source, of the target, of the source's words, of the target's words."""


def digests_of(text: str, words: Sequence[str]) -> tuple[int, int]:
    """Return 64-bit digests of a text and of its words alone; they can be compared within this process only."""
    return hash(text), hash(" ".join(words)) if words else hash(text)


def count_repeats(
    digests: Digests,
    tallies: dict[str, Tally],
    reading: Reading,
    characters: NDArray[np.uint32],
    has_blank: NDArray[np.bool_],
) -> None:
    """Add to ``tallies`` the pairs, sources and targets that repeat an earlier one.

    Args:
        digests: Digests of all pairs.
        tallies: Counts by kind.
        reading: How the text was read.
        characters: Lengths of source and target, ``(pairs, 2)``.
        has_blank: True for each pair with a blank side, ``(pairs,)``: it is a finding of its own, and no repeat.
    """
    pairs, word_pairs = _combined(digests[:, 0], digests[:, 1]), _combined(digests[:, 2], digests[:, 3])
    repeated_pair, repeated_words = _seen_before(pairs) & ~has_blank, _seen_before(word_pairs) & ~has_blank
    often = repeated_pair & _repeated_often(pairs, max(OFTEN, len(pairs) * OFTEN_SHARE))
    stand_in = _stands_for_many(digests, characters)
    counted = repeated_words | stand_in | has_blank
    repeats = {
        "boilerplate": (pairs, often),
        "duplicate": (pairs, repeated_pair & ~often),
        "near-duplicate": (word_pairs, repeated_words & ~repeated_pair),
        "source-repeated": (digests[:, 0], _seen_before(digests[:, 0]) & ~counted),
        "target-repeated": (digests[:, 1], _seen_before(digests[:, 1]) & ~counted),
    }
    for name, (column, is_repeat) in repeats.items():
        for k, i in enumerate(np.flatnonzero(is_repeat).tolist()):
            example = f"repeats line {reading.line(int((column == column[i]).argmax())):,}" if k < N_EXAMPLES else ""
            tallies.setdefault(name, Tally()).add(reading.line(i), example)
    add_sorted(tallies, "placeholder", [reading.line(i) for i in np.flatnonzero(stand_in).tolist()])


def add_sorted(tallies: dict[str, Tally], name: str, lines: Sequence[int]) -> None:
    """Add lines to a tally that may have some of them, and others before and behind them."""
    if not lines:
        return
    old = tallies.get(name, Tally())
    examples = dict(zip(old.lines, old.examples, strict=True))
    known = {line for runs in old.runs.values() for line in runs.lines()}
    tallies[name] = Tally()
    for line in sorted(known | set(lines)):
        tallies[name].add(line, examples.get(line, ""))


def _repeated_often(digests: NDArray[np.int64], least: float) -> NDArray[np.bool_]:
    """Return for each digest True if it occurs at least ``least`` times."""
    _, inverse, counts = np.unique(digests, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] >= least)


def _stands_for_many(digests: Digests, characters: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for each pair True if one of its sides is a text that stands beside many others of any length."""
    result = np.zeros(len(digests), dtype=bool)
    least = max(OFTEN, len(digests) * STAND_IN_SHARE)
    for side in (0, 1):
        _, inverse, counts = np.unique(digests[:, side], return_inverse=True, return_counts=True)
        for text in np.flatnonzero(counts >= least).tolist():
            rows = np.flatnonzero(inverse == text)
            if not characters[rows[0], side]:
                continue  # blank lines are a finding of their own
            others = digests[rows, 1 - side]
            spread = float(np.log(characters[rows, 1 - side] + 1.0).std())
            if len(np.unique(others)) > 0.5 * len(rows) and spread > STAND_IN_SPREAD:
                result[rows] = True
    return result


def _combined(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one digest for each pair of digests ``(a, b)``; ``(b, a)`` gives another one."""
    return a * np.int64(-7046029254386353131) + b  # the factor is odd, so no bit is lost; overflow is intended


def _seen_before(digests: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each digest True if it occurs earlier in the array."""
    repeated = np.ones(len(digests), dtype=bool)
    repeated[np.unique(digests, return_index=True)[1]] = False
    return repeated


def count_shared_pairs(digests: Digests, others: Sequence[Digests]) -> int:
    """Return the number of pairs of a corpus that occur in one of ``others``."""
    pairs, *other_pairs = (_combined(d[:, 0], d[:, 1]) for d in (digests, *others))
    return int(np.isin(pairs, np.concatenate(other_pairs)).sum()) if others else 0


def overlap_findings(train: Digests, other: TextFiles, name: str, reading: Reading = AS_IT_IS) -> Iterator[Finding]:
    """Yield findings about pairs of a validation or test set that the training text has too.

    Args:
        train: Digests of the training text.
        other: The set.
        name: Name of the set in findings, "valid" or "test".
        reading: How to read the set: mended as the training text was, so that both are alike.

    Raises:
        DataError: A file cannot be read.
    """
    tallies = {kind: Tally() for kind in ("pair", "near-pair", "source", "target")}
    known = [np.unique(column) for column in (
        _combined(train[:, 0], train[:, 1]), _combined(train[:, 2], train[:, 3]),
        train[:, 2], train[:, 3],
    )]  # fmt: skip
    n = 0
    pairs = Pairs(other, reading=reading)
    for src, tgt in chunks(pairs):
        s, t = (np.array([digests_of(text, words_of(text)) for text in side]) for side in (src, tgt))
        keys = _combined(s[:, 0], t[:, 0]), _combined(s[:, 1], t[:, 1]), s[:, 1], t[:, 1]
        hits = np.array([np.isin(key, digests) for key, digests in zip(keys, known, strict=True)])
        for i in np.flatnonzero(hits.any(0)).tolist():
            if src[i].strip() and tgt[i].strip():
                # A pair counts once, under the strictest kind that it matches: the kinds are in that order.
                tallies[list(tallies)[int(hits[:, i].argmax())]].add(n + i + 1, pair_text(src[i], tgt[i]))
        n += len(src)
    n_src, n_tgt = pairs.n_lines
    if isinstance(other, PairOfFiles) and n_src != n_tgt:
        yield Finding(
            "error", f"{name}-line-counts", f"{other.src} has {n_src:,} lines but {other.tgt} has {n_tgt:,}",
            "give two files that are aligned",
        )  # fmt: skip
    advice = f"remove them from the training text: scores on the {name} set would be too good"
    one_side = "harmless if few and short; else remove them from the training text"
    in_set = f"of the {name} set"
    kinds = {
        "pair": Kind(f"{in_set} are in the training text", advice, 0, 0.1),
        "near-pair": Kind(f"{in_set} are in the training text except for case and punctuation", advice, 0, 0.1),
        "source": Kind(f"{in_set} have a source of the training text, with another target", one_side, 0.05),
        "target": Kind(f"{in_set} have a target of the training text, with another source", one_side, 0.05),
    }
    for finding in findings_of(tallies, kinds, n):
        yield finding._replace(name=f"{name}-overlap-{finding.name}")
