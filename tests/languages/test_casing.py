"""Case of lines and words in many languages: what is in capitals, what in Title Case, and what has no case."""

from __future__ import annotations

import random

import pytest

from benchmarks.near_identical import SPACED, UNSPACED, letters_of
from dragoman.data.noise import titled
from dragoman.languages.casing import capitalised, capitals, case_of, free_words, lower, words

LINES = {
    "en": "A dog doesn't run on the beach.", "de": "Der große Hund läuft über die Straße.",
    "fr": "L'homme regarde l'étoile à Orléans.", "ru": "Собака бежит по берегу моря.",
    "el": "Ο σκύλος τρέχει στους δρόμους.",
    "tr": "Işık ilk ışığa değil, izine iner.", "vi": "Một con chó chạy trên bãi biển.", "hy": "Շունը վազում է ծովափին։",
    "cs": "Pes běží rychle po pláži.", "nl": "Het ijs ligt op een ijzeren bank.",
}  # fmt: skip


@pytest.mark.parametrize("lang", LINES)
def test_a_line_in_another_case_is_seen_and_comes_back_as_it_was(lang: str) -> None:
    line = LINES[lang]
    large = capitals(line, lang)
    assert [case_of(text) for text in (line, large, titled(line))] == [None, "capitals", "title"]
    again = lower(large, lang)
    if lang != "el":  # its capitals have no accents
        assert again.replace("strasse", "straße").replace("grosse", "große") == lower(line, lang)
    assert len(again) == len(large)


NEITHER = (
    "", " ", "USA", "NATO", "OK", "UNESCO!", "NATO.", "A4", "I", "A B", "New York", "Angela Merkel", "AC/DC", "3D",
    "NATO and the EU met.", "BREAKING: a dog runs.", "1234 5678", "???", "iPhone", "the iPhone of IBM", "CO2 2024",
    "これはNHKとNATOとEUです。", "我喜欢USA和NATO。", "كلب يجري على الشاطئ", "कुत्ता दौड़ता है",
    "ძაღლი გარბის სანაპიროზე", "ᎣᏏᏲ ᏙᎯᏧ ᎣᏍᏓ ᏌᏊ", "Ⅷ Ⅻ Ⅳ", "Ⓐ Ⓑ Ⓒ", "ÅÄÖ",
)  # fmt: skip


@pytest.mark.parametrize("text", NEITHER)
def test_names_and_usual_text_are_neither(text: str) -> None:
    assert case_of(text) is None


@pytest.mark.parametrize("script", sorted({*UNSPACED, *SPACED} - {"Latin", "Cyrillic", "Greek", "Armenian"}))
def test_scripts_without_case_have_none(script: str) -> None:
    text = " ".join(letters_of(script)[:60])
    assert case_of(text) is None
    if script != "Georgian":
        assert text == text.upper()
    assert capitals(text, None) == lower(text, None) == text


def test_what_is_particular_to_a_language() -> None:
    assert (lower("DIYARBAKIR", "tr"), lower("İZMİR", "tr"), lower("İ", "en")) == ("dıyarbakır", "izmir", "i")
    assert (capitals("izmir ışık", "tr"), capitalised("İZMİR", "tr")) == ("İZMİR IŞIK", "İzmir")
    assert capitals("Straße", "de") == "STRASSE"
    assert lower("Ο ΣΚΥΛΟΣ ΣΤΟΥΣ ΔΡΟΜΟΥΣ.", "el") == "ο σκυλος στους δρομους."
    assert capitals("Αθήνα, μάιος, γαϊδούρι, προϊόν", "el") == "ΑΘΗΝΑ, ΜΑΪΟΣ, ΓΑΪΔΟΥΡΙ, ΠΡΟΪΟΝ"
    assert (capitalised("ǄUNGLA", "hr"), capitals("ǆungla", "hr"), lower("ǅungla", "hr")) == (
        "ǅungla",
        "ǄUNGLA",
        "ǆungla",
    )
    assert (capitalised("IJSBERG", "nl"), capitalised("IJSBERG", "de")) == ("IJsberg", "Ijsberg")
    assert capitals("5 µm", "de") == "5 µM"


def test_no_letter_changes_the_length_of_a_line_in_lower_case() -> None:
    letters = [letter for letter in map(chr, range(0x1F000)) if letter != letter.lower()]
    assert len(letters) > 1300
    for lang in (None, "tr", "nl"):
        wrong = [letter for letter in letters if len(lower(letter, lang)) != 1 or len(capitalised(letter, lang)) != 1]
        assert not wrong


def test_words_hold_their_marks_and_apostrophes() -> None:
    text = "'Don't stop,' हिन्दी CAFE\u0301-L’EAU x2y"
    assert [text[start:end] for start, end in words(text)] == [
        "Don't",
        "stop",
        "हिन्दी",
        "CAFE\u0301",
        "L’EAU",
        "x",
        "y",
    ]
    assert free_words("A HTTP://X.ORG B", [(2, 14)]) == [(0, 1), (15, 16)]
    assert case_of("VISIT HTTP://X.ORG", [(6, 18)]) is None


def test_a_quick_look_never_changes_the_answer() -> None:
    """Where spans keep their case, here one behind the line, there is none."""
    chance = random.Random(5)
    pieces = [
        "DOG", "Dog", "dogs", "of", "iPhone", "loweRCASE", "d'Accord", "L'amour", "l'amour", "e\u0301cole", "Éloge",
        "ὈΔΌΣ", "1990s", "AC/DC", "well-Known", "(small)", "x", "I", "ǅungla", "ß", "-", "...", "THE", "CATS", "RUN",
    ]  # fmt: skip
    gaps = [" ", " ", "\u00a0", "\t", "-", ""]
    lines = [
        "".join(piece + chance.choice(gaps) for piece in chance.choices(pieces, k=n))
        for n in range(1, 9)
        for _ in range(500)
    ]
    quick = [case_of(line) for line in lines]
    assert quick == [case_of(line, [(len(line), len(line) + 1)]) for line in lines]
    assert {"capitals", "title", None} == set(quick)
