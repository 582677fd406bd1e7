"""Detection of the language of short texts, judged by the catalogues of Django and CLDR."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.language_inputs import SHORT_LANGUAGES, greetings, short_texts
from benchmarks.languages import detection_figures, product_guess
from dragoman.languages.detection import detect, is_target
from limits import cpu_limit


def test_the_language_of_short_texts_is_detected_with_a_confidence_that_is_true() -> None:
    figures = detection_figures(short_texts(1, 15), product_guess(SHORT_LANGUAGES))
    assert figures["texts"] > 2000
    assert figures["right"] >= 0.85
    assert figures["mean_gap"] <= 0.05
    gaps = {low: gap for low, (size, gap) in figures["bins"].items() if size >= 50}
    assert len(gaps) >= 6
    assert max(map(abs, gaps.values())) <= 0.1


def test_greetings_are_known() -> None:
    assert detection_figures(greetings(), product_guess(SHORT_LANGUAGES))["right"] >= 0.9


def test_a_text_in_a_script_of_its_own_needs_no_words() -> None:
    for text, lang in (
        ("检索", "zh"),
        ("検索", "ja"),
        ("ありがとう", "ja"),
        ("漢語", "zh-Hant"),
        ("Спасибо", "ru"),
        ("ნახვამდის", "ka"),
    ):
        assert detect(text, ["en", "zh", "zh-Hant", "ja", "ru", "ka"]).code == lang
    assert detect("ᱡᱚᱦᱟᱨ", ["en", "sat"]).code == "sat"  # py3langid does not know Santali
    assert detect("Хвала лепо", ["sr-Latn", "sr"]).code == "sr"
    assert detect("Hvala lepo", ["sr-Latn", "sr"]).code == "sr-Latn"


def test_a_text_without_letters_has_the_first_language_and_no_confidence() -> None:
    for text in ("", "12:30", ":-)", "\ud800", "…"):
        assert detect(text, ["de", "en"]) == ("de", 0.0)


def test_a_single_language_is_compared_with_all_others() -> None:
    assert detect("The weather is very nice today, is it not?", ["en"]).confidence > 0.9
    assert detect("Das Wetter ist heute sehr schön, oder nicht?", ["en"]).confidence < 0.1


def test_a_text_in_the_target_language_is_known_if_it_is_long_enough() -> None:
    for text in ("Hand", "Film", "Museum in Berlin", "Guten Morgen"):
        assert is_target(text, ["en"], "de") is None
    assert is_target("Guten Morgen, wie geht es dir?", ["en"], "de") is not None
    assert is_target("Guten Morgen, wie geht es dir?", ["en"], "fr") is None
    assert is_target("你好", ["en"], "zh") is not None
    assert is_target("Das ist ein schönes Haus.", ["de-AT"], "de") is None


def test_texts_of_the_source_are_not_taken_for_the_target() -> None:
    pairs = [("en", "de"), ("es", "pt"), ("sv", "da"), ("cs", "pl")]
    wrong = [
        text for src, tgt in pairs for text in short_texts(1, 15)
        if text.lang == src and is_target(text.text, [src], tgt) is not None
    ]  # fmt: skip
    assert len(wrong) <= 2, wrong


def test_a_missing_package_is_named() -> None:
    script = """
import sys
sys.modules["py3langid.langid"] = None
from dragoman.errors import ConfigError
from dragoman.languages.detection import detect
try:
    detect("hello", ["en", "de"])
except ConfigError as error:
    assert "install dragoman[detect], or name the source language" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_long_text_takes_no_longer_than_its_beginning() -> None:
    with cpu_limit():
        detect("word " * 1_000_000, ["en", "de"])
