"""Which lines are worth translating and which translations are fit to learn from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.translation.filters import (
    Language,
    Made,
    least_score,
    read_rendered,
    rendered,
    unfit,
    unreadable,
)
from dragoman.translation.translator import Translation, Translator

GERMAN = ["der Hund ist nicht da und wir haben ihn gesucht", "das ist ein Haus"] * 10
ENGLISH = ["they are not in the house with you", "this is not for her"] * 10


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.mark.parametrize(
    ("lang", "sample", "text", "is_other"),
    [
        ("de", GERMAN, "das Haus ist gross", False),
        ("de", GERMAN, "this is not the house that you have", True),  # telling words of another
        ("de", GERMAN, "Hotel California", False),  # nothing speaks for anything
        ("de", GERMAN, "это дом, в котором мы живём", True),  # by script
        ("de", GERMAN, "", False),
        ("ru", ["это дом"], "this is not the house that you have", True),
        ("uk", ["це дім"], "это дом, в котором мы живём", False),  # the same script, and no words are known
        ("zh", ["这是一个房子"], "Windows 95", True),
        ("fi", ["tämä on talo"], "this is not the house that you have", False),  # Finnish has no telling words here
        (None, ENGLISH, "это дом, в котором мы живём", True),  # an unknown language is in its sample's script
        ("en", ENGLISH, "das ist nicht das Haus, das wir haben", True),
        ("de", [], "this is not the house that you have", False),  # no sample: not asked
    ],
)
def test_a_line_is_in_another_language_if_something_speaks_for_it(
    lang: str | None, sample: list[str], text: str, is_other: bool
) -> None:
    assert Language(lang, sample).others([text, ""]) == [is_other, False]
    assert Language(lang, sample).others([]) == []


def test_a_source_of_bytes_is_unreadable(translator: Translator) -> None:
    tokenizer = translator.src_tokenizer
    assert unreadable(tokenizer.encode(["the dog runs", "这是一个房子", ""]), tokenizer) == [False, True, False]


@pytest.mark.parametrize("damage", ["\0", "\x1b", "\r", "\x85", "\ufffd"])
def test_a_translation_with_what_is_no_text_is_unfit(translator: Translator, damage: str) -> None:
    """Sampled from subwords of single bytes; a training on it would stop at a NUL."""
    made = [Made("the dog", f"der{damage} Hund", -0.5), Made(f"the{damage} dog", f"der{damage} Hund", -0.5)]
    assert unfit(made, translator.plan(), Language("de", GERMAN), -1.0) == ["damaged", ""]
    assert unfit([Made("the dog", "der\tHund", -0.5)], translator.plan(), Language("de", GERMAN), -1.0) == [""]


def test_why_a_translation_is_unfit(translator: Translator) -> None:
    plan, language = translator.plan(), Language("de", GERMAN)
    made = [
        Made("the dog runs", "der hund rennt", -0.1),
        Made("the dog runs", "", 0.0),
        Made("the dog", "der hund " * 9, -0.1),
        Made("the small dog sees the big tree", "the small dog sees the big tree", -0.1),
        Made("the dog runs here today", "they are not with you", -0.1),
        Made("the dog runs", "der hund rennt", -2.0),
    ]
    assert unfit(made, plan, language, -1.0) == ["", "empty", "loop", "copy", "in another language", "low score"]
    assert unfit(made[-1:], plan, language, least_score(made, 0.0)) == [""]
    assert unfit([], plan, language, -1.0) == []


def test_the_worst_share_of_those_that_say_something(translator: Translator) -> None:
    made = [Made("a", "b", -float(i)) for i in range(11)] + [Made("a", "", -99.0)]
    assert least_score(made, 0.2) == pytest.approx(-8.0)
    assert least_score([], 0.5) == float("-inf")


def test_what_is_written_is_the_log_probability_of_a_subword_and_comes_back() -> None:
    best = Translation("der \u2028 Hund", -1.0, log_prob=-3.0, n_tokens=4, alternatives=(Translation("Hunde", 0.0),))
    line = rendered(1, best)
    assert "\n" not in line
    assert json.loads(line) == [[-0.75, "der \u2028 Hund"], [0.0, "Hunde"]]
    assert read_rendered("dog", line) == [Made("dog", "der \u2028 Hund", -0.75), Made("dog", "Hunde", 0.0)]
