"""Numbers written out are found in the text, as often as they stand there, and no other numbers."""

from __future__ import annotations

import pytest

from dragoman.languages.numbers import Words, has_words


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 13, "thirteen dogs"),
        ("en", 45, "Forty-five dogs"),
        ("en", 100, "a hundred dogs"),
        ("en", 320, "three hundred and twenty dogs"),
        ("en", 1001, "one thousand and one dogs"),
        ("en", 25_000, "twenty-five thousand dogs"),
        ("de", 31, "einunddreissig Hunde"),
        ("de", 100, "einhundert Hunde"),
        ("de", 120, "hundertzwanzig Hunde"),
        ("de", 1964, "neunzehnhundertvierundsechzig"),
        ("de", 1964, "tausendneunhundertvierundsechzig"),
        ("de", 2000, "zweitausend Hunde"),
        ("de", 10_000, "eine Zehntausendyennote"),
        ("zh", 20, "二十只狗"),
        ("zh", 105, "一百零五只狗"),
        ("zh", 110, "一百一十只狗"),
        ("zh", 2000, "两千多只狗"),
        ("zh-TW", 10_000, "一萬隻狗"),
        ("zh", 250_000, "二十五万只狗"),
        ("zh", 1972, "一九七二年"),
        ("ja", 1972, "千九百七十二年"),
        ("fr", 12, "douze chiens"),
    ],
)
def test_a_number_is_found_once_by_its_words(lang: str, value: int, text: str) -> None:
    words = Words(text, lang)
    assert words.take(value)
    assert not words.take(value)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 20, "a hundred and twenty-one"), ("en", 100, "a hundred and twenty-one"), ("de", 20, "dreiundzwanzig"),
        ("de", 100, "hundertzwanzig"), ("zh", 20, "二十三"), ("zh", 30, "一百三十"), ("fr", 30, "trente chiens"),
        ("de", 2_000_000, "zwei Millionen"),
    ],
)  # fmt: skip
def test_another_number_or_one_that_is_not_known_is_not_found(lang: str, value: int, text: str) -> None:
    assert not Words(text, lang).take(value)


def test_only_some_languages_are_known() -> None:
    assert has_words("de-AT")
    assert has_words("cmn_Hans")
    assert not has_words("hu")
    assert not has_words(None)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [
        ("en", 20, "in the twentieth century"), ("en", 21, "in the twenty-first century"), ("en", 19, "the nineteenth"),
        ("en", 90, "in the nineties"), ("en", 53, "the fifty-third"), ("en", 20, "twenty third-party tools"),
        ("zh", 10_000_000, "一千万人"), ("zh", 100_000_000, "一亿人"), ("zh-TW", 300_000_000, "三億人"),
        ("ja", 8_000_000, "八百万人"), ("zh", 1_200_000_000, "十二亿人"),
    ],
)  # fmt: skip
def test_ordinals_decades_and_the_great_numbers_of_chinese_are_found(lang: str, value: int, text: str) -> None:
    assert Words(text, lang).take(value)


@pytest.mark.parametrize(
    ("lang", "value", "text"),
    [("en", 20, "the twenty-first century"), ("en", 21, "the twentieth"), ("zh", 100_000_000, "三亿人"),
     ("zh", 10_000_000, "一百万人"), ("zh", 10_000, "一亿人")],
)  # fmt: skip
def test_a_part_of_such_a_number_is_not_found(lang: str, value: int, text: str) -> None:
    assert not Words(text, lang).take(value)
