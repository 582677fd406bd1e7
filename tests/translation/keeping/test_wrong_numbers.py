"""Numbers that a model got wrong give way to the right ones, in the digits that stand there; others are named."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.decoding.request import Hypothesis, SearchResult, Segment
from dragoman.translation.keeping.protected import Sides, Span, find, missing, unmatched
from dragoman.translation.keeping.wrong_numbers import beside, in_digits_of, in_place
from dragoman.translation.translator import Translator

ZEROS = "0٠۰०০૦௦๐໐༠၀០"


def in_script(text: str, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) if digit in "0123456789" else digit for digit in text)


def right(src: str, tgt: str, alike: bool = True, langs: tuple[str | None, str | None] = ("en", "de")) -> str | None:
    lost = missing(find(src), tgt, src, langs[1])
    return in_place(tgt, lost, unmatched(Sides(src, tgt, *langs)), alike)


@pytest.mark.parametrize("zero", ZEROS)
def test_a_garbled_number_is_replaced_in_the_digits_that_stand_there(zero: str) -> None:
    chance = random.Random(40)
    for _ in range(30):
        number = str(chance.randrange(1000, 9999))
        garbled = chance.choice([number[0] + number[2] + number[1] + number[3], number[:-1], number + number[-1]])
        if garbled.strip("0") == number.strip("0"):
            continue
        tgt = in_script(f"x 12 y {garbled} z", zero)
        assert right(f"a {number} b 12 c", tgt, langs=("xx", "yy")) == in_script(f"x 12 y {number} z", zero)


@pytest.mark.parametrize(
    ("src", "tgt", "alike", "expected"),
    [
        ("May 22, 1924", "٢‏/٠٥‏/١٩٤٢", True, "٢٢‏/٠٥‏/١٩٢٤"),  # the name of a month has become a number
        ("It has 1,243 rows.", "Es hat 1.234 Zeilen.", True, "Es hat 1.243 Zeilen."),
        ("It has 1,243 rows.", "Es hat 1234 Zeilen.", True, "Es hat 1243 Zeilen."),
        ("It costs $1943.", "Es kostet $1934.", True, "Es kostet $1943."),
        ("It costs $1943.", "Es kostet 1934 €.", True, None),  # no copy of it
        ("After 5 miles", "Nach 8 Kilometern", True, None),  # another number, not a garbled one
        ("Oct 22, 1984", "٢٢٢‏/١٠١٩٨٤", True, None),  # month and year in one
        ("Rows: 1900", "Zeilen: 190", True, None),  # it may be another scale
        ("two dogs, number 23", "2 Hunde, Nummer 32, 32", True, None),
        ("two dogs, number 1943", "2 Hunde, Nummer 1934", True, "2 Hunde, Nummer 1943"),
        ("in 1943", "im Jahr 198", False, "im Jahr 1943"),
        ("in 1943", "im Jahr 7 von 198", False, None),
    ],
)
def test_numbers_pair_up_one_to_one_or_stay(src: str, tgt: str, alike: bool, expected: str | None) -> None:
    assert right(src, tgt, alike) == expected


def test_a_number_that_is_a_word_or_written_otherwise_in_the_source_is_not_wrong() -> None:
    def wrong(src: str, tgt: str) -> list[str]:
        return [span.text for span in unmatched(Sides(src, tgt, "en", "de"))]

    assert wrong("two dogs at 3:30 pm", "2 Hunde um 15.30 Uhr") == []
    assert wrong("20 million on 05.01.2024", "20.000.000 am 5. Januar 2024") == []
    assert wrong("a dog and file A4", "ein Hund, A4 und 77") == ["77"]


def test_a_part_put_in_right_beside_a_wrong_number_takes_its_place() -> None:
    text = "१८ सितंबर १९८ १९४३ और ७"
    wrong = unmatched(Sides("September 18, 1943 and 7", text, "en", "hi"))
    assert [span.text for span in wrong] == ["१९८"]
    assert beside(text, ["१९४३"], wrong) == "१८ सितंबर १९४३ और ७"
    assert beside(text, ["४४"], wrong) is None
    assert in_digits_of("1943", "७ मई") == "१९४३"
    assert in_digits_of("1943", "७ मई 5") == "1943"


class Says:
    """An engine that gives each source a fixed translation."""

    name = "says"

    def __init__(self, translator: Translator, texts: dict[str, str]) -> None:
        self.tokenizer, self.texts = translator.tgt_tokenizer, texts

    def search(self, segments: Sequence[Segment], *others: Any) -> SearchResult:
        texts = [self.texts[text] for text in self.tokenizer.decode([segment.ids for segment in segments])]
        return SearchResult([[Hypothesis(ids, -1.0, -1.0)] for ids in self.tokenizer.encode(texts)])


@pytest.mark.parametrize(
    ("first", "second", "expected", "note"),
    [
        ("der hund 1934", "", "der hund 1943", None),
        ("der hund", "der hund 55", "der hund 1943", None),
        ("der hund", "der hund und 55 oder 66 rot", "", "not in the source: the number '55', the number '66'"),
        ("der hund", "der hund", "der hund 1943", None),
    ],
)
def test_a_wrong_number_gives_way_or_is_named(
    tiny_run: Path, first: str, second: str, expected: str, note: str | None
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    engine: Any = Says(translator, {"the dog 1943": first, "the dog": second})
    plan = replace(translator.plan(guard=False), engine=engine)
    (one,) = translator.translate(["the dog 1943"], plan)
    assert one.text == expected or (note and "1943" in one.text)
    assert [other.text for other in one.notes] == ([note] if note else [])


@pytest.mark.parametrize(
    ("src", "first", "note"),
    [
        ("the dog 1 234,56", "der hund 1.234,56", None),
        ("the dog halb 4", "der hund", "missing in the translation: the number '4'"),
        ("the dog 1億2000万", "der hund 5", "missing in the translation: the number '1億2000万'"),
        ("the dog 1億2000万", "der hund", "missing in the translation: the number '1億2000万'"),
        ("the dog 3割5分", "der hund 5", "missing in the translation: the number '3割5分'"),
        ("the dog 1 million 2 thousand", "der hund", "missing in the translation: the number '1 million 2 thousand'"),
        ("the dog 8折", "der hund 5", "missing in the translation: the number '8'"),
        ("the dog half past 3", "der hund halb drei", "missing in the translation: the number '3'"),
        ("the dog half past three", "der hund halb drei", "missing in the translation: the number 'half past three'"),
        ("the dog half past three", "der hund halb vier", None),
    ],
)
def test_a_translation_that_is_right_or_may_be_so_in_other_digits_stays(
    tiny_run: Path, src: str, first: str, note: str | None
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    engine: Any = SaysFirst(translator, first)
    plan = replace(translator.plan(guard=False), engine=engine)
    (one,) = translator.translate([src], plan)
    assert one.text == first
    assert [other.text for other in one.notes if other.kind == "number"] == ([note] if note else [])


class SaysFirst:
    """An engine that gives one translation, and is asked for no second one."""

    name = "says"

    def __init__(self, translator: Translator, text: str) -> None:
        self.ids, self.n_searched = translator.tgt_tokenizer.encode([text])[0], 0

    def search(self, segments: Sequence[Segment], *others: Any) -> SearchResult:
        self.n_searched += len(segments)
        assert self.n_searched < 2
        return SearchResult([[Hypothesis(self.ids, -1.0, -1.0)] for _ in segments])


@pytest.mark.parametrize(("lang", "expected"), [("en", "1943 der hund"), ("ru", "55 der hund 1943")])
def test_a_number_that_may_be_a_word_of_the_source_is_not_overwritten(tiny_run: Path, lang: str, expected: str) -> None:
    translator = Translator.load(tiny_run, "cpu")
    engine: Any = Says(translator, {"the dog 1943": "der hund", "the dog": "55 der hund"})
    plan = replace(translator.plan(guard=False), engine=engine)
    (one,) = translator.translate(["the dog 1943"], replace(plan, direction=replace(plan.direction, src=lang)))
    assert one.text == expected
    assert [other.text for other in one.notes] == ([] if lang == "en" else ["not in the source: the number '55'"])


def test_the_hour_of_a_time_in_words_is_no_number_to_replace() -> None:
    assert in_place("um halb 3", [Span("number", "3:30", 3)], [Span("number", "halb 3", 3)], alike=False) is None
