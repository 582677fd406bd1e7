"""Words of a text by the characters that they consist of, and links between words; needs no torch."""

from __future__ import annotations

from dragoman.languages.words import clusters

Links = tuple[tuple[int, int], ...]
"""Pairs of a source and a target word, both counted from 0, sorted."""


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
