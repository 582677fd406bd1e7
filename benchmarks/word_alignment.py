"""Word alignment of a corpus by IBM Model 1 with a prior for the diagonal, in both directions: a judge of translations.

    aligned = align(src, tgt)                # lists of words; as fast_align, https://aclanthology.org/N13-1073
    aligned.links[0]                         # {(0, 0), (1, 2)}: source word, target word
    span_of(aligned.links[0], 1, 3)          # the target words that render the source words 1 and 2

It reads text only, so it is independent of the model that is judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ITERATIONS = 6
DIAGONAL = 4.0
NULL = 0.08  # probability that a word is linked to none

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|\d+")
_CHARACTER = re.compile(r"[a-zA-Z]+|\d+|\w")

Pairs = set[tuple[int, int]]


def words_of(text: str, unspaced: bool = False) -> list[tuple[int, int]]:
    """Return start and end of each word; of each character in a language without spaces."""
    return [match.span() for match in (_CHARACTER if unspaced else _WORD).finditer(text)]


@dataclass(frozen=True)
class Aligned:
    """Links of each pair, and the probability of each target word for a source word, both in lower case."""

    links: list[Pairs]
    table: dict[str, dict[str, float]]


def align(src: Sequence[Sequence[str]], tgt: Sequence[Sequence[str]]) -> Aligned:
    """Align pairs of lists of words."""
    forward, table = _one_way(src, tgt)
    backward, _ = _one_way(tgt, src)
    links = [_symmetrised(one, {(s, t) for t, s in other}) for one, other in zip(forward, backward, strict=True)]
    return Aligned(links, table)


def _numbered(texts: Sequence[Sequence[str]]) -> tuple[list[NDArray[np.int64]], list[str]]:
    names: dict[str, int] = {"": 0}  # the word that links to none
    numbers = [
        np.array([names.setdefault(word.lower(), len(names)) for word in words], dtype=np.int64) for words in texts
    ]
    return numbers, list(names)


def _one_way(
    src: Sequence[Sequence[str]], tgt: Sequence[Sequence[str]]
) -> tuple[list[Pairs], dict[str, dict[str, float]]]:
    """Return the best source word of each target word as (source, target), and the table of probabilities."""
    (src_ids, src_names), (tgt_ids, tgt_names) = _numbered(src), _numbered(tgt)
    keys, priors, owners, n_owners = [], [], [], 0
    for one, other in zip(src_ids, tgt_ids, strict=True):
        n, m = len(one), len(other)
        near = np.exp(
            -DIAGONAL * np.abs((np.arange(n) + 0.5)[None] / max(1, n) - (np.arange(m) + 0.5)[:, None] / max(1, m))
        )
        near *= (1 - NULL) / np.maximum(1e-9, near.sum(axis=1, keepdims=True))
        keys.append((np.append(0, one)[None] * len(tgt_names) + other[:, None]).ravel())
        priors.append(np.hstack([np.full((m, 1), NULL), near]).astype(np.float32).ravel())
        owners.append(np.repeat(np.arange(n_owners, n_owners + m), n + 1))
        n_owners += m
    entries, where = np.unique(np.concatenate(keys), return_inverse=True)
    prior, owner = np.concatenate(priors), np.concatenate(owners)
    rows = entries // len(tgt_names)
    probability = np.full(len(entries), 1.0)
    for _ in range(ITERATIONS):
        weight = prior * probability[where]
        share = weight / np.maximum(1e-30, np.bincount(owner, weight, n_owners))[owner]
        counts = np.bincount(where, share, len(entries))
        probability = counts / np.maximum(1e-30, np.bincount(rows, counts))[rows]
    weight, links, at = prior * probability[where], [], 0
    for one, other in zip(src_ids, tgt_ids, strict=True):
        n, m = len(one), len(other)
        best = weight[at : at + m * (n + 1)].reshape(m, n + 1).argmax(axis=1) if m else []
        links.append({(int(s) - 1, t) for t, s in enumerate(best) if s})
        at += m * (n + 1)
    table: dict[str, dict[str, float]] = {}
    for k in np.flatnonzero(probability > 0.02):
        s, t = divmod(int(entries[k]), len(tgt_names))
        table.setdefault(src_names[s], {})[tgt_names[t]] = float(probability[k])
    return links, table


def _symmetrised(forward: Pairs, backward: Pairs) -> Pairs:
    """Return the links of both directions, grown by those of one direction (grow-diag-final-and)."""
    links, union = forward & backward, forward | backward
    grown = True
    while grown:
        grown = False
        for s, t in sorted(union - links):
            free = all(s != other for other, _ in links) or all(t != other for _, other in links)
            if free and any(abs(s - a) <= 1 and abs(t - b) <= 1 for a, b in links):
                links, grown = links | {(s, t)}, True
    for s, t in sorted(union - links):
        if all(s != other for other, _ in links) and all(t != other for _, other in links):
            links = links | {(s, t)}
    return links


def span_of(links: Pairs, first: int, end: int) -> tuple[int, int] | None:
    """Return the smallest run of target words that is linked to these source words and to no others; None: no such."""
    of_term = [t for s, t in links if first <= s < end]
    if not of_term or any(all(s != other for other, _ in links) for s in range(first, end)):
        return None
    low, high = min(of_term), max(of_term) + 1
    if any(low <= t < high and not first <= s < end for s, t in links):
        return None
    return low, high
