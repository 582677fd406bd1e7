"""Numbers keep what gives them their value, in the digits of every script."""

from __future__ import annotations

from benchmarks.written_numbers import KINDS, ZEROS, Made, lines
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
