"""A lexical shortlist: the few target subwords that a translation of a source may consist of.

    shortlist = learn(store, src_tokenizer, tgt_tokenizer)
    shortlist.of(src_ids)  # ids of target subwords, ascending

A decoder's last product is with every subword of the vocabulary, but a sentence needs a few dozen. The shortlist of a
source is the union of the lists of its subwords and of the subwords frequent in any text
(https://arxiv.org/abs/1412.2007, section 3.3). The lists are learned from the training text by IBM model 1
(https://aclanthology.org/J93-2003) on subwords. A subword of both vocabularies is in its own list, so that names and
numbers can be copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.store import Store, id_dtype
from dragoman.data.tokenizer import EOS_ID, PAD_ID, Tokenizer
from dragoman.errors import BundleError

FILE = "shortlist.ids"

USUAL = 100
"""Number of the most frequent target subwords that are in every shortlist."""

EACH = 40
"""Largest number of target subwords in the list of a source subword."""

LEAST = 1e-3
"""Smallest translation probability of a target subword in a list."""

MAX_LINKS = 12_000_000
"""Largest number of pairs of subwords to learn from; bounds memory and time. The sentences are spread over the text."""

MAX_TOKENS = 64
"""Number of subwords of each side of a pair that are learned from."""

ROUNDS = 4
"""Number of iterations of expectation maximisation."""

MULTIPLE = 64
"""The shortlist of a batch is padded to a multiple of this, so that matrix products have few shapes."""

N_SPECIALS = EOS_ID + 1
"""Number of special subwords: pad, unk, bos and eos come first in every shortlist, so they keep their ids in it."""

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Lists of target subwords: one for every text, and one for each source subword."""

    usual: Ids  # list for every text, ascending, the special subwords first
    starts: Ids  # (source vocabulary + 1,): start of the list of each source subword in ``ids``
    ids: Ids  # the lists of all source subwords, one after the other

    def of(self, src_ids: Sequence[int]) -> Ids:
        """Return the shortlist of a source, ascending; its ids come without eos."""
        lists = [self.ids[self.starts[i] : self.starts[i + 1]] for i in set(src_ids)]
        return np.unique(np.concatenate([self.usual, *lists]))

    def of_batch(self, sources: Sequence[Sequence[int]]) -> tuple[Ids, NDArray[np.bool_]]:
        """Return the union of several sources' shortlists, and which of its ids each source may use.

        Returns:
            ``(U,)`` ids, ascending, then pad up to a multiple of ``MULTIPLE``; and ``(B, U)`` booleans.
        """
        lists = [self.of(ids) for ids in sources]
        union = np.unique(np.concatenate([self.usual, *lists]))
        allowed = np.zeros((len(lists), -(-len(union) // MULTIPLE) * MULTIPLE), np.bool_)
        for row, ids in zip(allowed, lists, strict=True):
            row[np.searchsorted(union, ids)] = True
        return np.pad(union, (0, allowed.shape[1] - len(union)), constant_values=PAD_ID), allowed

    def rows(self) -> list[Ids]:
        """Return the list of each source subword."""
        return np.split(self.ids, self.starts[1:-1])

    def write(self, path: Path, tgt_vocab_size: int) -> None:
        """Write a file of little-endian integers: the lengths of all lists, that of ``usual`` first; then the lists.

        Raises:
            OSError: The file cannot be written.
        """
        lengths = np.concatenate([[len(self.usual)], np.diff(self.starts)])
        whole = np.concatenate([lengths, self.usual, self.ids])
        path.write_bytes(whole.astype(id_dtype(tgt_vocab_size + 1)).tobytes())

    @classmethod
    def read(cls, path: Path, src_vocab_size: int, tgt_vocab_size: int) -> Shortlist:
        """Read a file of ``write``.

        Raises:
            BundleError: The file is damaged, or belongs to other vocabularies.
        """
        dtype = id_dtype(tgt_vocab_size + 1)  # the length of a list may equal the size of the vocabulary
        raw = path.read_bytes()
        whole = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], dtype).astype(np.int64)
        n = src_vocab_size + 1
        lengths, ids = whole[:n], whole[n:]
        fits = len(raw) % dtype.itemsize == 0 and len(lengths) == n and lengths.min() >= 0 and lengths.sum() == len(ids)
        if not fits or lengths[0] < N_SPECIALS or not ((ids >= 0) & (ids < tgt_vocab_size)).all():
            raise BundleError(f"{path}: not a shortlist of this bundle's subwords; copy it again or use another bundle")
        usual, lists = np.split(ids, lengths[:1])
        if not np.array_equal(usual[:N_SPECIALS], np.arange(N_SPECIALS)) or (np.diff(usual) <= 0).any():
            raise BundleError(f"{path}: its first list must hold the special subwords, and ascend; copy it again")
        return cls(usual, np.concatenate([[0], np.cumsum(lengths[1:])]), lists)


def learn(store: Store, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> Shortlist:
    """Learn the lists from the text of a store."""
    src, tgt = _sample(store)
    n_src, n_tgt = store.vocab_sizes
    counts = np.bincount(np.concatenate(tgt), minlength=n_tgt)
    counts[:N_SPECIALS] = 0
    frequent = np.argsort(-counts, kind="stable")[:USUAL]
    usual = np.concatenate([np.arange(N_SPECIALS), np.sort(frequent[counts[frequent] > 0])])
    sources, targets = _aligned(src, tgt, n_tgt)
    copied = _copied(src_tokenizer, tgt_tokenizer)
    sources, targets = np.concatenate([sources, copied[0]]), np.concatenate([targets, copied[1]])
    links = np.unique(sources * n_tgt + targets)
    links = links[~np.isin(links % n_tgt, usual)]
    starts = np.searchsorted(links, np.arange(n_src + 1) * n_tgt)
    return Shortlist(usual.astype(np.int64), starts.astype(np.int64), links % n_tgt)


def _sample(store: Store) -> tuple[list[Any], list[Any]]:
    """Return the sources and the targets of pairs spread over the corpus, as sorted ids without repetition."""
    lengths = np.minimum(store.src_lengths(), MAX_TOKENS).astype(np.int64)
    lengths = (lengths + 1) * np.minimum(store.tgt_lengths(), MAX_TOKENS)
    step = max(1, -(-int(lengths.sum()) // MAX_LINKS))
    pairs = [store.pair(i) for i in range(0, len(store), step)]
    return [np.unique(src[:MAX_TOKENS]) for src, _ in pairs], [np.unique(tgt[:MAX_TOKENS]) for _, tgt in pairs]


def _aligned(src: Sequence[Any], tgt: Sequence[Any], n_tgt: int) -> tuple[Ids, Ids]:
    """Return the most probable target subwords of each source subword, by IBM model 1.

    Pad is added to every source as the empty word, which explains target subwords without a source.

    Returns:
        Source ids ``(n,)`` and the target ids linked to them ``(n,)``.
    """
    # A link is a source and a target subword of one sentence; ``keys`` numbers the pair, ``heads`` the target subword.
    keys, heads, n_heads = [], [], 0
    for s, t in zip(src, tgt, strict=True):
        s = np.concatenate([[PAD_ID], s]).astype(np.int64)
        keys.append((s[:, None] * n_tgt + t).ravel())
        heads.append(np.tile(np.arange(n_heads, n_heads + len(t), dtype=np.int32), len(s)))
        n_heads += len(t)
    head = np.concatenate(heads)
    pairs, link = np.unique(np.concatenate(keys), return_inverse=True)
    del keys, heads
    link = link.astype(np.int32)
    words = pairs // n_tgt
    p: NDArray[np.float64] = np.ones(len(pairs))
    for _ in range(ROUNDS):
        # Expectation: share each target subword among the sources of its sentence. Maximisation: sum and normalise.
        share = p[link]
        share /= np.bincount(head, share)[head]
        p = np.bincount(link, share, minlength=len(pairs)).astype(np.float64)
        p /= np.bincount(words, p)[words]
    order = np.lexsort((-p, words))
    rank = np.arange(len(order)) - np.searchsorted(words[order], words[order])
    best = order[(rank < EACH) & (p[order] >= LEAST) & (words[order] != PAD_ID)]
    return words[best], pairs[best] % n_tgt


def _copied(src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    """Return the ids of the subwords that both vocabularies have: in the source ``(n,)``, in the target ``(n,)``."""
    sides = [tokenizer.pieces(range(tokenizer.vocab_size)) for tokenizer in (src_tokenizer, tgt_tokenizer)]
    ids = {piece: i for i, piece in enumerate(sides[1]) if i >= N_SPECIALS}
    both = [(i, ids[piece]) for i, piece in enumerate(sides[0]) if i >= N_SPECIALS and piece in ids]
    return tuple(np.array([pair[side] for pair in both], np.int64) for side in (0, 1))  # type: ignore[return-value]
