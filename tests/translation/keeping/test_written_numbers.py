"""Numbers keep what gives them their value, in the digits of every script."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from benchmarks.written_numbers import KINDS, ZEROS, Made, lines
from dragoman.translation.keeping import same_numbers
from dragoman.translation.keeping.protected import find, missing

MADE = lines(draws=12)


def is_whole(line: Made) -> bool:
    """True if the number of a line is found as one span, or as spans with nothing but spaces and "/" between."""
    spans = [span for span in find(line.text) if span.start < line.text.find(line.number) + len(line.number)]
    start = line.text.find(line.number)
    inside = [span for span in spans if span.end > start]
    return bool(inside) and inside[0].start == start and inside[-1].end == start + len(line.number)


def test_a_number_is_found_with_all_that_gives_it_its_value() -> None:
    assert {line.script for line in MADE} == set(ZEROS)
    assert {line.kind for line in MADE} == set(KINDS)
    assert [(line.kind, line.number, line.text) for line in MADE if not is_whole(line)] == []


def digits_of(number: str) -> str:
    return "".join(character for character in number if character.isdecimal() or character == ".")


def test_a_number_that_lost_a_part_of_its_value_is_missing() -> None:
    kinds = ("sign", "fraction", "exponent", "currency", "percent")
    unnoticed = [
        (line.number, bare)
        for line in MADE
        if line.kind in kinds and (bare := digits_of(line.number)) not in ("", line.number)
        if not missing(find(line.text), f"({bare}).", line.text, "de")
    ]
    assert unnoticed == []


def lost(src: str, translation: str, lang: str | None = "de") -> list[str]:
    return [span.text for span in missing(find(src), translation, src, lang)]


@pytest.mark.parametrize(
    ("src", "translation", "lang"),
    [
        ("at -5 degrees", "bei \u22125 Grad", "de"), ("at \u22125.5", "bei -5,5", "de"),
        ("at -5", "bei minus fünf", "de"),
        ("at -5 degrees", "零下5度", "zh"), ("at -5", "المقياس \u2212٥", "ar"),
        ("+3 goals", "plus drei Tore", "de"),
        ("5 dogs", "٥ كلاب", "ar"), ("५ कुत्ते", "5 dogs", "en"), ("१,२३,४५६.५", "123,456.5", "en"),
        ("1,00,000 people", "100.000 Menschen", "de"), ("1'000'000", "1\u2009000\u2009000", "de"),
        ("100%", "100\u00a0%", "fr"), ("5 %", "fünf Prozent", "de"), ("30%", "百分之30", "zh"), ("5%", "٥٪", "ar"),
        ("$5", "5 $", "de"), ("$5", "5 Dollar", "de"), ("1% to 3%", "1 bis 3 %", "de"),
        ("$5 million", "5 millions de dollars", "fr"), ("€3.50", "3,50\u00a0€", "de"),
        ("£5m", "5 Mio. Pfund", "de"),
        ("-$5", "-5 $", "de"), ("₹500", "500 Rupien", "de"), ("5₮", "5 Tugrik", "de"),
        ("½ cup", "eine halbe Tasse", "de"), ("½ cup", "0,5 Tassen", "de"), ("3½", "3,5", "de"),
        ("3 1/2", "3½", "de"),
        ("1/2", "½", "de"), ("2½ years", "zweieinhalb Jahre", None), ("1.5×10³", "1,5×10^3", "de"),
        ("10e-5", "10⁻⁵", "de"),
        ("5km", "5 Kilometer", "de"), ("20°C", "20 Grad", "de"), ("20 °C", "摄氏20度", "zh"),
        ("5m²", "5 Quadratmeter", "de"),
        ("0x1F", "0x1f", "de"), ("１，０００．５", "1.000,5", "de"),
        ("1 234,56 euros", "1,234.56 euros", "en"), ("1,234.56 euros", "1 234,56 euros", "fr"),
        ("12 500,50 руб.", "12,500.50 rubles", "en"), ("1 500,5 km", "1.500,5 km", "de"),
        ("1 234.56", "1\u00a0234,56", "fr"), ("1\u2009234,56 €", "€1,234.56", "en"),
        ("-1 234,5 °C", "-1.234,5 °C", "de"), ("1 234,56 euros", "1234 Euro und 56 Cent", "de"),
        ("5%", "5 persen", "id"), ("5%", "5 phần trăm", "vi"), ("5%", "5 फीसदी", "hi"), ("5%", "5 فیصد", "ur"),
        ("5%", "5 אחוז", "he"), ("5%", "5 posto", "hr"), ("5%", "пет посто", "sr"), ("5%", "5 protsenti", "et"),
        ("5%", "5 peratus", "ms"), ("5%", "5 la sută", "ro"),
    ],
)  # fmt: skip
def test_the_same_number_in_the_style_of_its_reader(src: str, translation: str, lang: str | None) -> None:
    assert lost(src, translation, lang) == []


@pytest.mark.parametrize(
    ("src", "translation", "expected"),
    [
        ("at -5 degrees", "bei 5 Grad", ["-5"]), ("at ±5", "bei -5", ["±5"]), ("at +5", "bei -5", ["+5"]),
        ("-5 and 5", "5 und 5", ["-5"]), ("3½", "3", ["3½"]), ("3½", "3¼", ["3½"]), ("½", "2", ["½"]),
        ("10⁻³", "10³", ["10⁻³"]),
        ("10⁻³", "10", ["10⁻³"]), ("10e-5", "10e5", ["10e-5"]), ("0x1F", "0x2F", ["0x1F"]),
        ("$5", "5 €", ["$5"]), ("$5", "5", ["$5"]),
        ("5%", "5 de imposto", ["5%"]), ("5%", "5 Personen", ["5%"]), ("5%", "5 постоянных", ["5%"]),
        ("5%", "5", ["5%"]), ("5‰", "5 %", ["5‰"]), ("20°C", "20.", ["20°C"]), ("٥٫٥", "55", ["٥٫٥"]),
        ("a m² of it", "ein m davon", ["m²"]),
        ("-5 and -5", "-5", ["-5"]), ("$5 and $5", "$5 und 5.", ["$5"]),
        ("1 234,5", "1234,05", ["1 234,5"]), ("1,234.5", "1.234,05", ["1,234.5"]),
        ("1 234,56 euros", "1.234,65 Euro", ["1 234,56"]),
    ],
)  # fmt: skip
def test_another_value_is_another_number(src: str, translation: str, expected: list[str]) -> None:
    assert lost(src, translation) == expected


@pytest.mark.parametrize(
    "text",
    ["a 3-5 range", "10万-20万", "5月-7月", "5公里-7公里", "5–7 dogs", "5 - 3 = 2", "mid-1990s", "21-year-old", "x-5", "F-16", "UTC+2",
     "C++11", "2024-05-01", "Ctrl+5"],
)  # fmt: skip
def test_a_hyphen_between_is_no_sign(text: str) -> None:
    assert not any(span.text[0] in "-+\u2212\u2013" for span in find(text))


def test_thousands_with_a_space_and_decimals_are_one_number_and_rows_are_several() -> None:
    texts = ["1 234,56 zł", "rooms 1 234, 56", "2024 100,5", "1 234.5.2024", "1 234,56–1 300,00 €"]
    assert [[span.text for span in find(text)] for text in texts] == [
        ["1 234,56"], ["1 234", "56"], ["2024", "100,5"], ["1 234", "5.2024"], ["1 234,56", "1 300,00 €"],
    ]  # fmt: skip


def test_the_work_for_many_numbers_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of looks at a number grow as the numbers do, when all are the same but for a mark that is missing."""

    def looks(n: int) -> int:
        count, take = 0, deque.popleft

        class Counted(deque):  # type: ignore[type-arg]
            def __getitem__(self, place: Any) -> Any:
                nonlocal count
                count += 1
                return super().__getitem__(place)

            def popleft(self) -> Any:
                nonlocal count
                count += 1
                return take(self)

        monkeypatch.setattr(same_numbers, "deque", Counted)
        src = "$5, -7, 3½, 12%, " * n
        assert len(missing(find(src), "(5). (7). (3). 12%. " * n, src, "de")) == 3 * n
        return count

    assert looks(200) < 2.2 * looks(100)
