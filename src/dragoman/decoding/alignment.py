"""From cross-attention to links between words.

The attention is that of the decoder's last layer but one, averaged over its heads, for that layer follows the source
most closely (Garg et al., 2019, https://arxiv.org/abs/1909.02074); a decoder of one layer has only that one. Each
target word is linked to the source word that its subwords, taken together, attend to most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dragoman.decoding.words import Links

Attention = NDArray[np.float32]
"""``(T, S)``: how much each token of a translation attends to each of its source, eos last; see ``scoring``."""


UNREAD = 0.15
"""A source token that gets less attention than this, at every step, was left out."""


def longest_unread(attention: ArrayLike) -> int:
    """Return the length of the longest run of source tokens to which no step pays attention.

    Args:
        attention: ``(T, S)``, as ``Attention``.
    """
    longest = here = 0
    for most in np.asarray(attention).max(axis=0).tolist():
        here = here + 1 if most < UNREAD else 0
        longest = max(longest, here)
    return longest


def links(attention: ArrayLike, src_words: Sequence[Sequence[int]], tgt_words: Sequence[Sequence[int]]) -> Links:
    """Link each target word to a source word; to several where they share the subword most attended to.

    Args:
        attention: ``(T, S)`` or larger: rows and columns after the tokens, those of eos, are left out.
        src_words, tgt_words: The words that each token is a part of.
    """
    src_numbers, to_src = _membership(src_words)
    tgt_numbers, to_tgt = _membership(tgt_words)
    if not src_numbers or not tgt_numbers:
        return ()
    own = np.asarray(attention, np.float64)[: len(tgt_words), : len(src_words)]
    seen = to_tgt.T @ own @ to_src  # (target words, source words)
    best = seen.max(axis=1, keepdims=True)
    linked = np.argwhere(seen >= best * (1 - 1e-6)).tolist()
    return tuple(sorted((src_numbers[src], tgt_numbers[tgt]) for tgt, src in linked))


def attention_to(attention: ArrayLike, of_term: Sequence[bool], tgt_words: Sequence[Sequence[int]]) -> list[float]:
    """Return the share of each target word's attention, the mean of its subwords, that goes to some source tokens.

    That of a word of which there is no token, up to the last one, is 0.

    Args:
        attention: ``(T, S)`` or larger, as for ``links``.
        of_term: True for each source token that is one of them.
        tgt_words: The words that each target token is a part of.
    """
    own = np.asarray(attention, np.float64)[: len(tgt_words), : len(of_term)]
    shares = own @ np.array(of_term, np.float64)  # (T,)
    tgt_numbers, to_tgt = _membership(tgt_words)
    attended = [0.0] * (1 + max(tgt_numbers, default=-1))
    for number, share in zip(tgt_numbers, ((to_tgt.T @ shares) / to_tgt.sum(axis=0)).tolist(), strict=True):
        attended[number] = share
    return attended


def _membership(words: Sequence[Sequence[int]]) -> tuple[list[int], NDArray[np.float64]]:
    """Return the words that have tokens, and ``(tokens, words)``: the share of each token that belongs to each of them.

    A part of a long line has few of the line's words.
    """
    present = sorted({number for numbers in words for number in numbers})
    column = {number: place for place, number in enumerate(present)}
    shares = np.zeros((len(words), len(present)))
    for token, numbers in enumerate(words):
        shares[token, [column[number] for number in numbers]] = 1 / max(1, len(numbers))
    return present, shares
