"""A cut stands between words, where the alignment puts the words before it, and no part that had words is empty."""

from __future__ import annotations

import random

import pytest

from dragoman.documents.units import AlignedText, Tag, Translations, Unit, write

SOURCE = "The old house The dog sleeps The cat sings"
IN_ORDER = tuple((i, i) for i in range(9))


def cut(target: str, links: tuple[tuple[int, int], ...] | None, unspaced: bool = False) -> list[str]:
    """The lines of a translation of three labels of three words each."""
    tags = [Tag(place, ("|",), share=share, by_words=True) for place, share in ((14, 0.1), (29, 0.2))]
    unit = Unit(SOURCE, tags, escape=str)
    return write([unit], Translations({SOURCE: AlignedText(target, links)}, False, unspaced)).split("|")


@pytest.mark.parametrize(
    ("target", "links", "unspaced", "expected"),
    [
        ("Das alte Haus Der Hund schläft Die Katze singt", IN_ORDER, False, ["Das alte Haus", "Der Hund schläft", "Die Katze singt"]),
        ("Das alte Haus Der Hund schläft Die Katze singt", None, False, ["Das alte Haus", "Der Hund schläft", "Die Katze singt"]),
        ("Haus! Hund und Katze", ((2, 0), (4, 1), (7, 3)), False, ["Haus!", "Hund", "und Katze"]),
        ("老房子，狗睡觉，猫唱歌", ((1, 0), (2, 1), (2, 2), (4, 4), (5, 5), (5, 6), (7, 8), (8, 9), (8, 10)), True, ["老房子，", "狗睡觉，", "猫唱歌"]),
    ],
)  # fmt: skip
def test_cut_follows_the_words(
    target: str, links: tuple[tuple[int, int], ...] | None, unspaced: bool, expected: list[str]
) -> None:
    assert cut(target, links, unspaced) == expected


def test_any_order_leaves_no_part_empty() -> None:
    chance = random.Random(41)
    for _ in range(200):
        order = list(range(9))
        chance.shuffle(order)
        links = tuple((i, order[i]) for i in range(9) if chance.random() < 0.8)
        target = "".join(chance.choices("老房子狗睡觉猫唱歌", k=9))
        for unspaced in (False, True):
            lines = cut(target if unspaced else " ".join(target), links, unspaced)
            assert all(lines)
            assert "".join(lines).replace(" ", "") == target
