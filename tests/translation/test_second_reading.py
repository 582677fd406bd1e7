"""Lines in CAPITALS and Title Case cost next to nothing: a second reading in usual case is taken if it is likelier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dragoman.config import TokenizerConfig
from dragoman.data.noise import titled
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.request import Hypothesis
from dragoman.languages.casing import case_of
from dragoman.translation.notes import QUIET
from dragoman.translation.second_reading import in_source_case, search_both, usual_case
from dragoman.translation.segments import SegmentResult, TextSegment, segment
from dragoman.translation.translator import Translator

NAMES = ["USA", "NATO", "OK", "the U.S.", "AC/DC"]


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.fixture(scope="module")
def learned() -> Tokenizer:
    lines = [
        "In Paris the NATO met, and a dog ran to the big house.", "She and I saw a dog in Paris.",
        "The house of the dog is big.", "He ran to the NATO house.", "Now the dog is in the big house.",
    ]  # fmt: skip
    return Tokenizer.learn(lines * 20, TokenizerConfig(vocab_size=340))


READINGS = {
    "THE NATO MET IN PARIS. HE RAN TO THE BIG HOUSE!": "The NATO met in Paris. He ran to the big house!",
    "He Ran To The House In Paris.": "He ran to the house in Paris.",
    "SHE AND I SAW THE DOG.": "She and I saw the dog.",
    "SEE HTTP://X.ORG/ABC, THE HOUSE OF {NAME}": "See HTTP://X.ORG/ABC, the house of {NAME}",
}


@pytest.mark.parametrize("line", READINGS)
def test_usual_case_is_that_of_the_vocabulary(learned: Tokenizer, line: str) -> None:
    fixed = [
        (line.index(part), line.index(part) + len(part)) for part in ("HTTP://X.ORG/ABC", "{NAME}") if part in line
    ]
    case = case_of(line, fixed)
    assert case is not None
    assert usual_case(line, case, "en", learned, fixed) == READINGS[line]


def lines_of(toy: Callable[[int, int], list[tuple[str, str]]]) -> list[str]:
    return [src for src, _ in toy(40, 9) if len(src.split()) > 3][:12]


def test_a_line_in_another_case_is_translated_as_in_its_usual_one(
    translator: Translator, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    lines = lines_of(toy_sentences)
    usual = [line.text for line in translator.translate(lines)]
    assert [line.text for line in translator.translate([titled(line) for line in lines])] == usual
    large = translator.translate([line.upper() for line in lines], alignments=True)
    assert [line.text for line in large] == [text.upper() for text in usual]
    assert [line.alignment for line in large] == [
        line.alignment for line in translator.translate(lines, alignments=True)
    ]
    without = translator.translate([line.upper() for line in lines], truecase=False)
    assert sum(a.text.lower() == b for a, b in zip(without, usual, strict=True)) < len(lines) / 4


def test_names_and_usual_lines_are_read_once(
    translator: Translator, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    lines = [*lines_of(toy_sentences), *NAMES]
    assert [line.text for line in translator.translate(lines)] == [
        line.text for line in translator.translate(lines, truecase=False)
    ]


def test_what_must_arrive_keeps_its_case(translator: Translator) -> None:
    line = "THE DOG SEES http://x.org/Ab AND {name} HERE"
    text = translator.translate(line).text
    assert "http://x.org/Ab" in text
    assert "{name}" in text
    assert translator.translate("THE DOG SEES THE CAT", glossary={"DOG": "Hund"}).text.count("Hund") == 1
    assert translator.translate("THE DOG SEES THE CAT", prefix="der hund").text.startswith("der hund ")


def test_the_likelier_reading_is_taken(translator: Translator) -> None:
    plan = translator.plan()
    segments = segment(["THE DOG SEES THE CAT"], plan, QUIET)

    def scored(*log_probs: float) -> tuple[str, str]:
        def search(both: Sequence[TextSegment]) -> list[SegmentResult]:
            assert [part.text.lower() for part in both] == [segments[0].text.lower()] * 2
            of_each = (Hypothesis([5] * n, 0.0, log_prob) for n, log_prob in zip((4, 9), log_probs, strict=True))
            return [SegmentResult((hypothesis,), (f"{len(hypothesis.ids)} tokens",)) for hypothesis in of_each]

        read, results = search_both(segments, plan, search)
        return read[0].text, in_source_case(results, segments, plan)[0].texts[0]

    assert scored(-1.0, -9.0) == ("THE DOG SEES THE CAT", "4 TOKENS")
    assert scored(-8.0, -9.0) == ("the dog sees the cat", "9 TOKENS")  # less likely in total, likelier per token
    assert scored(-9.0, -4.0) == ("the dog sees the cat", "9 TOKENS")
    assert search_both(segments, plan, lambda both: [SegmentResult() for _ in both])[0] == list(segments)
