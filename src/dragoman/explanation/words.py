"""Words made of subwords: the tokens of each word, its name, and attention between words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.data.tokenizer import Normalised
from dragoman.languages.words import in_word, joins

START, END = "(start)", "(end)"
Span = tuple[int, int]
"""First token of a word, and the one after its last."""

_JOINERS = "'’-"
_REACH = 64
"""Number of bytes on each side of a place that tell if a word may end there."""


def word_spans(spelled: Sequence[bytes], by_spaces: bool = False) -> list[Span]:
    """Group tokens into words: the shortest runs of tokens that divide no word and no character.

    A word is a run of letters and digits, with apostrophes and hyphens between them. Every other mark is a word of its
    own, and so is each character of a script without spaces. A token that spells several words is not divided. One that
    spells nothing, such as the mark of a target language, is a word of its own.

    Args:
        spelled: The bytes that each token spells, in UTF-8, spaces included (``Tokenizer.spelled``).
        by_spaces: Words are separated by spaces only, and marks belong to them.

    Returns:
        Spans in order; together they hold every token.
    """
    spans = []
    start = 0
    for i in range(1, len(spelled) + 1):
        before, after = b"".join(spelled[:i]), b"".join(spelled[i:])
        ends = after.startswith(b" ") and bool(before.strip()) if by_spaces else _may_part(before, after)
        if i == len(spelled) or ends or b"" in spelled[i - 1 : i + 1]:
            spans.append((start, i))
            start = i
    return spans


def _may_part(before: bytes, after: bytes) -> bool:
    """True if a word may end between these bytes."""
    if after[:1] and 0x80 <= after[0] < 0xC0:
        return False  # inside a character
    left, right = before[-_REACH:].decode("utf-8", "replace"), after[:_REACH].decode("utf-8", "replace")
    if not left or left[-1].isspace():
        return False  # a space belongs to the word that follows it
    if (right[:1] in _JOINERS and in_word(right[1:2])) or (left[-1] in _JOINERS and in_word(left[-2:-1])):
        return not (in_word(left[-1]) or in_word(right[:1]))
    return not joins(left, right)


def word_names(spelled: Sequence[bytes], spans: Sequence[Span]) -> list[str]:
    """Return the text of each word: ``·`` for a lone space, U+FFFD for bytes that form no character."""
    texts = [spelt.decode("utf-8", "replace") for spelt in _joined_by(spelled, spans)]
    return [text.strip() or "·" for text in texts]


def written_words(text: str, normalised: Normalised, spelled: Sequence[bytes], spans: Sequence[Span]) -> list[str]:
    """Return each word as it is written in a text, of which the model reads a normalised form.

    Where the tokens do not spell that form, for example with an unknown subword, the words are those of ``word_names``.
    """
    read = [spelt.decode("utf-8", "replace") for spelt in _joined_by(spelled, spans)]
    characters = "".join(read)
    before = characters == " " + normalised.text  # the space that SentencePiece puts before a text
    if not normalised.text or not (before or characters == normalised.text):
        return word_names(spelled, spans)
    places, words, end = [*normalised.places[:before], *normalised.places, len(text)], [], 0
    for word in read:
        start, end = end, end + len(word)
        words.append(text[places[start] : places[end]].strip() or "·")
    return words


def _joined_by(spelled: Sequence[bytes], spans: Sequence[Span]) -> list[bytes]:
    return [b"".join(spelled[start:stop]) for start, stop in spans]


def between_words(weights: NDArray[np.float32], queries: Sequence[Span], keys: Sequence[Span]) -> NDArray[np.float32]:
    """Merge attention between tokens into attention between words.

    Attention to a word is the sum over its tokens; attention from a word is the mean over its tokens. So each row still
    sums to 1 (Clark et al., 2019, section 4.1, https://arxiv.org/abs/1906.04341).

    Args:
        weights: ``(..., Q, K)``.
        queries, keys: The word spans of the rows and of the columns; together they hold every token.

    Returns:
        ``(..., words, words)``.
    """
    summed = np.add.reduceat(weights, [start for start, _ in keys], axis=-1)
    rows = np.add.reduceat(summed, [start for start, _ in queries], axis=-2)
    lengths = np.array([stop - start for start, stop in queries])
    return (rows / lengths[:, None]).astype(np.float32)
