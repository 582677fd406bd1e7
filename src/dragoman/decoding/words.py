"""Words of a text by the characters that they consist of, and links between words; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.languages.words import clusters

Links = tuple[tuple[int, int], ...]
"""Pairs of a source and a target word, both counted from 0, sorted."""

MOST_UNKNOWN = 16
"""Most words of an unknown token: without bytes in a vocabulary it may stand for a whole line of unknown characters."""


def word_numbers(text: str, unspaced: bool = False) -> list[int]:
    """Return for each character the number of its word, from 0; -1 for spaces.

    White space parts words; in a language without spaces each character is a word, with its marks.
    """
    if unspaced:
        return _cluster_numbers(text)
    numbers = []
    n, inside = -1, False
    for character in text:
        is_space = character.isspace()
        n += not is_space and not inside
        inside = not is_space
        numbers.append(-1 if is_space else n)
    return numbers


def _cluster_numbers(text: str) -> list[int]:
    """Return for each character the number of its cluster, from 0; -1 for spaces, even one with a mark behind it."""
    numbers, n = [], -1
    for start, end in clusters(text):
        is_space = [character.isspace() for character in text[start:end]]
        n += not all(is_space)
        numbers += [-1 if is_one else n for is_one in is_space]
    return numbers


def word_spans(text: str, unspaced: bool = False) -> list[tuple[int, int]]:
    """Return the first character of each word of ``word_numbers``, and the one after its last."""
    spans: dict[int, tuple[int, int]] = {}
    for place, number in enumerate(word_numbers(text, unspaced)):
        if number >= 0:
            spans[number] = spans.get(number, (place, place))[0], place + 1
    return list(spans.values())


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


def pharaoh(pairs: Links) -> str:
    """Return links as ``0-0 1-2``: source word, target word."""
    return " ".join(f"{src}-{tgt}" for src, tgt in pairs)
