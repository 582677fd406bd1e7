"""From cross-attention to links between words.

The attention is that of the decoder's last layer but one, averaged over its heads, for that layer follows the source
most closely (Garg et al., 2019, https://arxiv.org/abs/1909.02074); a decoder of one layer has only that one. Each
target word is linked to the source word that its subwords, taken together, attend to most.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.decoding.words import Links
from dragoman.errors import DecodeError


class CrossAttention:
    """Records the cross-attention of each layer while a model runs; pass its ``record``."""

    def __init__(self) -> None:
        self._weights: dict[str, Tensor] = {}

    def record(self, name: str, weights: Tensor) -> None:
        """Take the weights ``(B, H, T, S)`` of one attention."""
        if name.endswith("cross_attn"):
            self._weights[name] = weights.mean(dim=1)

    def mean(self) -> Tensor:
        """Return the attention of the last layer but one, ``(B, T, S)``; of an ensemble the mean of its members'.

        Raises:
            DecodeError: The model attends to no source.
        """
        members: dict[str, list[Tensor]] = {}
        for name, weights in self._weights.items():  # layers come in order
            members.setdefault(name.partition("decoder.")[0], []).append(weights)
        if not members:
            raise DecodeError("this model has no cross-attention, so its words cannot be aligned")
        return torch.stack([layers[-2] if len(layers) > 1 else layers[0] for layers in members.values()]).mean(dim=0)


UNREAD = 0.15
"""A source token that gets less attention than this, at every step, was left out."""


def longest_unread(attention: Tensor) -> int:
    """Return the length of the longest run of source tokens to which no step pays attention.

    Args:
        attention: ``(T, S)``, as ``CrossAttention.mean`` gives it for one pair.
    """
    longest = here = 0
    for most in attention.amax(dim=0).tolist():
        here = here + 1 if most < UNREAD else 0
        longest = max(longest, here)
    return longest


MOST_UNKNOWN = 16
"""Most words of an unknown token: without bytes in a vocabulary it may stand for a whole line of unknown characters."""


def token_words(pieces: Sequence[bytes | None], text: str, numbers: Sequence[int]) -> list[list[int]]:
    """Return for each token the numbers of the words that it is a part of; of an unknown token the first ones.

    Args:
        pieces: The bytes of each token (``Tokenizer.spelled``); None for an unknown token, which may spell anything.
        text: The text that they spell together, without the space before every text.
        numbers: The word of each character of ``text`` (``words.word_numbers``).
    """
    data, owner = b"", []
    for character, number in zip("\u2581" + text, [-1, *numbers], strict=True):
        spelt = character.replace("\u2581", " ").encode("utf-8", "surrogateescape")  # as SentencePiece reads it
        data += spelt
        owner += [number] * len(spelt)
    first = next((piece for piece in pieces if piece != b""), b"")  # the mark of a target language spells nothing
    start = 0 if first is None or first.startswith(b" ") else 1
    words = []
    for i, piece in enumerate(pieces):
        if piece is None:
            following = next((known for known in pieces[i + 1 :] if known is not None), b"")
            end = data.find(following, start + 1) if following else len(data)
            end = len(data) if end < 0 else end
        else:
            end = start + len(piece)
        its_words = sorted({number for number in owner[start:end] if number >= 0})
        words.append(its_words if piece is not None else its_words[:MOST_UNKNOWN])
        start = end
    return words


def links(attention: Tensor, src_words: Sequence[Sequence[int]], tgt_words: Sequence[Sequence[int]]) -> Links:
    """Link each target word to a source word; to several where they share the subword most attended to.

    Args:
        attention: ``(T, S)`` or larger: rows and columns after the tokens, those of eos, are left out.
        src_words, tgt_words: The words that each token is a part of.
    """
    src_numbers, to_src = _membership(src_words)
    tgt_numbers, to_tgt = _membership(tgt_words)
    if not src_numbers or not tgt_numbers:
        return ()
    seen = to_tgt.T @ attention[: len(tgt_words), : len(src_words)].double() @ to_src  # (target words, source words)
    best = seen.amax(dim=1, keepdim=True)
    linked = (seen >= best * (1 - 1e-6)).nonzero().tolist()
    return tuple(sorted((src_numbers[src], tgt_numbers[tgt]) for tgt, src in linked))


def attention_to(attention: Tensor, of_term: Sequence[bool], tgt_words: Sequence[Sequence[int]]) -> list[float]:
    """Return the share of each target word's attention, the mean of its subwords, that goes to some source tokens.

    That of a word of which there is no token, up to the last one, is 0.

    Args:
        attention: ``(T, S)`` or larger, as for ``links``.
        of_term: True for each source token that is one of them.
        tgt_words: The words that each target token is a part of.
    """
    shares = attention[: len(tgt_words), : len(of_term)].double() @ torch.tensor(of_term, dtype=torch.float64)  # (T,)
    tgt_numbers, to_tgt = _membership(tgt_words)
    attended = [0.0] * (1 + max(tgt_numbers, default=-1))
    for number, share in zip(tgt_numbers, ((to_tgt.T @ shares) / to_tgt.sum(dim=0)).tolist(), strict=True):
        attended[number] = share
    return attended


def _membership(words: Sequence[Sequence[int]]) -> tuple[list[int], Tensor]:
    """Return the words that have tokens, and ``(tokens, words)``: the share of each token that belongs to each of them.

    A part of a long line has few of the line's words.
    """
    present = sorted({number for numbers in words for number in numbers})
    column = {number: place for place, number in enumerate(present)}
    shares = torch.zeros(len(words), len(present), dtype=torch.float64)
    for token, numbers in enumerate(words):
        shares[token, [column[number] for number in numbers]] = 1 / max(1, len(numbers))
    return present, shares


def pharaoh(pairs: Links) -> str:
    """Return links as ``0-0 1-2``: source word, target word."""
    return " ".join(f"{src}-{tgt}" for src, tgt in pairs)
