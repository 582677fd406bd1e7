"""Duplicates: within a corpus, and between training and test text. 64 bits of each side are remembered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.config import PairOfFiles, TextFiles
from dragoman.doctor.findings import N_EXAMPLES, Finding, Kind, Tally, findings_of, pair_text
from dragoman.doctor.paired_lines import Pairs, chunks
from dragoman.languages.stopwords import words_of

Digests = NDArray[np.int64]
"""``(pairs, 4)``: of source, target, and of the words of both."""


def digests_of(text: str, words: Sequence[str]) -> tuple[int, int]:
    """64 bits of a text, and of its words alone; good within this process."""
    return hash(text), hash(" ".join(words)) if words else hash(text)


def count_repeats(digests: Digests, tallies: dict[str, Tally]) -> None:
    """Duplicates of pairs and of one side."""
    pairs, normal = _combined(digests[:, 0], digests[:, 1]), _combined(digests[:, 2], digests[:, 3])
    seen_pair, seen_normal = _seen_before(pairs), _seen_before(normal)
    found = {
        "duplicate": (pairs, seen_pair),
        "near-duplicate": (normal, seen_normal & ~seen_pair),
        "source-repeated": (digests[:, 0], _seen_before(digests[:, 0]) & ~seen_normal),
        "target-repeated": (digests[:, 1], _seen_before(digests[:, 1]) & ~seen_normal),
    }
    for name, (column, mask) in found.items():
        tally = Tally()
        for i in np.flatnonzero(mask)[:N_EXAMPLES].tolist():
            tally.add(i + 1, f"repeats line {int((column == column[i]).argmax()) + 1:,}")
        tally.count = int(mask.sum())
        if tally.count:
            tallies[name] = tally


def _combined(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """64 bits for two of them, of which the order counts."""
    return a * np.int64(-7046029254386353131) + b  # odd, so no bit is lost; overflow is wanted


def _seen_before(digests: NDArray[np.int64]) -> NDArray[np.bool_]:
    repeated = np.ones(len(digests), dtype=bool)
    repeated[np.unique(digests, return_index=True)[1]] = False
    return repeated


def repeated_elsewhere(digests: Digests, others: Sequence[Digests]) -> int:
    """How many pairs are in one of the others."""
    pairs = [_combined(one[:, 0], one[:, 1]) for one in (digests, *others)]
    return int(np.isin(pairs[0], np.concatenate(pairs[1:])).sum()) if others else 0


def overlap(train: Digests, other: TextFiles, name: str) -> Iterator[Finding]:
    """Pairs of a validation or test set that the training text has too.

    Args:
        train: Of the training text.
        name: How to call the set.

    Raises:
        DataError: A file cannot be read.
    """
    tallies = {kind: Tally() for kind in ("pair", "near-pair", "source", "target")}
    known = [np.unique(column) for column in (
        _combined(train[:, 0], train[:, 1]), _combined(train[:, 2], train[:, 3]),
        train[:, 2], train[:, 3],
    )]  # fmt: skip
    n = 0
    pairs = Pairs(other)
    for src, tgt in chunks(pairs):
        words = [words_of(text) for text in src], [words_of(text) for text in tgt]
        s = np.array([digests_of(text, w) for text, w in zip(src, words[0], strict=True)])
        t = np.array([digests_of(text, w) for text, w in zip(tgt, words[1], strict=True)])
        wanted = _combined(s[:, 0], t[:, 0]), _combined(s[:, 1], t[:, 1]), s[:, 1], t[:, 1]
        hits = np.array([np.isin(w, k) for w, k in zip(wanted, known, strict=True)])
        for i in np.flatnonzero(hits.any(0)).tolist():
            if src[i].strip() and tgt[i].strip():
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
    of_set = f"of the {name} set"
    kinds = {
        "pair": Kind(f"{of_set} are in the training text", advice, 0, 0.1),
        "near-pair": Kind(f"{of_set} are in the training text except for case and punctuation", advice, 0, 0.1),
        "source": Kind(f"{of_set} have a source of the training text, with another target", one_side, 0.05),
        "target": Kind(f"{of_set} have a target of the training text, with another source", one_side, 0.05),
    }
    for finding in findings_of(tallies, kinds, n):
        yield finding._replace(name=f"{name}-overlap-{finding.name}")
