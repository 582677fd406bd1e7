"""The language of a text by its telling words."""

from __future__ import annotations

import pytest

from dragoman.languages.stopwords import ambiguous, main_language, words_of


@pytest.mark.parametrize(
    "lines",
    [
        ["O gato dorme com o dono.", "O menino viu a lua.", "O carro parou na rua."],
        ["O gato viu uma ave.", "Que bom, o dia foi longo!"],
    ],
)
def test_portuguese_is_no_turkish(lines: list[str]) -> None:
    words = [words_of(line) for line in lines * 20]
    assert main_language(words, "pt") is None


def test_of_a_tie_the_expected_language_wins() -> None:
    """Each line has "des", which the list has as French alone, before one word of German."""
    words = [words_of(line) for line in ["Des Hauses Tor zu sehen", "Die Farbe des Himmels im Mai"] * 20]
    assert main_language(words, "de") is None


def test_words_that_tell_nothing_in_a_text_are_left_out() -> None:
    """Italian "le" and "una" are listed as French and Spanish alone; two of them are more than one Italian word."""
    lines = ["Le strade e le case di Roma", "Le onde e le navi di ieri", "Il treno parte"]
    words = [words_of(line) for line in lines * 20]
    assert main_language(words, "it") == "fr"
    assert main_language(words, "it", ambiguous(words, "it")) is None


def test_another_language_is_still_seen() -> None:
    words = [words_of(line) for line in ["Bu ne kadar güzel bir ev", "Ben o evi çok gördüm ve sevdim"] * 20]
    assert main_language(words, "pt", ambiguous(words, "pt")) == "tr"
