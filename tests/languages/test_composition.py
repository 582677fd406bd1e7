"""Characters are composed as ``unicodedata`` does it, however many marks they have."""

from __future__ import annotations

import random
import sys
import unicodedata

import pytest

from dragoman.languages.composition import compose, composed_places, decompose

ACUTE, BELOW, OVERLAY, RING = "\u0301", "\u0316", "\u0338", "\u0325"
MIXED = {
    "in reverse order": lambda n: "a" + ACUTE * (n // 2) + BELOW * (n // 2),
    "in turns": lambda n: "a" + (ACUTE + BELOW) * (n // 2),
    "of Hebrew": lambda n: "א" + "\u05bc\u05b7\u05c1" * (n // 3),
    "that are two": lambda n: "a" + "\u0344\u0316\u0f73" * (n // 3),
    "behind a letter with one": lambda n: "é" + (RING + OVERLAY + ACUTE) * (n // 3),
}
"""Texts of any length whose marks are out of order."""


@pytest.mark.parametrize("marks", MIXED)
def test_many_marks_are_composed_as_unicodedata_does(marks: str) -> None:
    text = "x" + MIXED[marks](300) + "o\u0308 " + MIXED[marks](60)
    assert compose(text) == unicodedata.normalize("NFC", text)
    assert decompose(text) == unicodedata.normalize("NFD", text)
    assert composed_places(text)[0] == unicodedata.normalize("NFC", text)


def test_marks_of_all_scripts_are_composed_as_unicodedata_does() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M"]
    characters += list("aeo\u1100\u1161\u11a8\uac00\u09c7\u0dd9\u034f\u200d")
    drawn = random.Random(1)
    for n in (1, 5, 40, 40, 40, 200, 2000):
        text = "".join(drawn.choices(characters, k=n))
        assert compose(text) == composed_places(text)[0] == unicodedata.normalize("NFC", text)
        assert decompose(text) == unicodedata.normalize("NFD", text)
