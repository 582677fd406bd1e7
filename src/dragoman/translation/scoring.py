"""Scores of given translations, and the words of their tokens. Needs no torch: see ``pair_reader``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.decoding.words import Links, token_words
from dragoman.translation.notes import Note


@dataclass(frozen=True)
class Scored:
    """Score of a given translation; its numbers are nan if it was not scored, and a note says why.

    Attributes:
        log_prob: Nats, the eos of each part included.
        score: ``log_prob`` over the length penalty, as in ``Translation``.
        n_tokens: Target subwords, eos counted; 0 if it was not scored.
        tokens: Target subwords, spaces as U+2581, with the eos of each part.
        token_log_probs: Log-probability of each of ``tokens``, in nats.
        alignment: Pairs (source word, target word), counted from 0; None: not requested.
        notes: Messages for the reader.
    """

    log_prob: float
    score: float
    n_tokens: int
    tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    alignment: Links | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class TextPart:
    """A text or a part of it, with its translation."""

    text: str
    src_numbers: Sequence[int]  # word number of each of its characters
    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    target: str
    is_copy: bool = False  # True for a text without words, which the model does not read


def words_of_tokens(tokenizer: Tokenizer, ids: Sequence[int], text: str, numbers: Sequence[int]) -> list[list[int]]:
    """Return for each token of an encoded text the numbers of the words that it is a part of.

    Args:
        numbers: The word of each character of ``text``, which the tokenizer may have normalised (``word_numbers``).
    """
    clean, places = tokenizer.normalised(text)
    pieces = [None if i == UNK_ID else tokenizer.spelled[i] for i in ids]
    return token_words(pieces, clean, [numbers[place] for place in places])
