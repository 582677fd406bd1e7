"""Are lines without a word copied, and lines of invisible characters blank? Drawn from all categories of Unicode."""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.scripts_record import record
from dragoman.translation.translator import Translator

SEED = 11
CATEGORIES = (
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "No",
    "Nl",
    "Zs",
    "Zl",
    "Zp",
    "Cf",
    "Cc",
)
FREQUENT = (
    ".", "!", "?", "...", "…", "-", "--", "---", "–", "—", "|", "()", "•", "½", "@", "&", "€", "→", "***", "###",
    "~~~", "==>", "?!", "¿?", "।", "،", "؟", "。", "「」", "۔", "།", "፡", "・", "※", "§", "©", "™", "°",
    "✓", "★", "☐", "││", "┌──┐", "“”", "«»", "%", "$", "±", "≠", "∞",
    "* * *", "[ ]", "\u200b", "\ufeff", "\u2060", "\u00ad", "\u200e", "\u202e", "\ufe0f", "\u0007", "\u3164", "\u034f",
)  # fmt: skip
"""Lines that people send; what follows a category is drawn."""


class Line(NamedTuple):
    """A line without a word."""

    kind: str
    text: str


def lines(draws: int = 4, seed: int = SEED) -> list[Line]:
    """Return lines of several forms for each category, and the frequent ones."""
    chance = random.Random(seed)
    drawn = [Line("frequent", text) for text in FREQUENT]
    for category in CATEGORIES:
        characters = sorted(_of(category))
        for _ in range(draws):
            one, two, three = (chance.choice(characters) for _ in range(3))
            drawn += [
                Line(f"{category} alone", one), Line(f"{category} three times", one * 3),
                Line(f"{category} different", one + two + three), Line(f"{category} apart", f"{one} {two} {three}"),
            ]  # fmt: skip
    return drawn


def _of(category: str) -> Iterator[str]:
    """Yield the characters of a category; LF ends a line, and U+2581 is SentencePiece's space."""
    for code in range(0x20000):
        character = chr(code)
        if unicodedata.category(character) == category and character not in "\n\u2581":
            yield character


VISIBLE_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Characters of the category Cf that are drawn: signs before Arabic, Syriac and Kaithi numbers."""


def is_invisible(text: str) -> bool:
    """True if no character of a line is drawn; judged without the product's code."""
    return all(
        (unicodedata.category(character)[0] in "ZC" or character in "\ufe0f\u3164\u034f")
        and character not in VISIBLE_FORMATS
        for character in text
    )


def is_right(line: str, translation: str) -> bool:
    """True if a line is copied, apart from white space at its ends; if it is invisible, no character may be drawn."""
    if is_invisible(line):
        return is_invisible(translation)
    return translation.strip() == line.strip()


def wrong(translator: Translator, drawn: Sequence[Line]) -> list[tuple[Line, str]]:
    """Return the lines that come out otherwise, each with its translation."""
    translations = translator.translate([line.text for line in drawn])
    pairs = zip(drawn, translations, strict=True)
    return [(line, translation.text) for line, translation in pairs if not is_right(line.text, translation.text)]


def main() -> None:
    """Count the wrong lines of each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("when", choices=("before", "after"))
    parser.add_argument(
        "--run", type=Path, action="append", required=True, help="a trained run; may come several times"
    )
    arguments = parser.parse_args()
    drawn, figures = lines(), {}
    for run in arguments.run:
        bad = wrong(Translator.load(run), drawn)
        kinds = sorted({line.kind for line, _ in bad})
        examples = [(line.text, translation[:60]) for line, translation in bad[:: max(1, len(bad) // 8)]]
        invented = sum(any(character.isalpha() for character in translation) for _, translation in bad)
        figures[run.name] = {
            "lines": len(drawn), "wrong": len(bad), "with an invented word": invented,
            "kinds": len({line.kind for line in drawn}), "wrong kinds": len(kinds), "examples": examples,
        }  # fmt: skip
    rule = (
        f"{len(drawn)} lines of the categories {' '.join(CATEGORIES)} below U+20000, in four forms, and frequent ones"
    )
    sha256 = hashlib.sha256("\n".join(line.text for line in drawn).encode()).hexdigest()
    inputs = {"rule": rule, "seed": SEED, "sha256": sha256, "unicode": unicodedata.unidata_version, "licence": "own"}
    record("wordless_lines", arguments.when, figures, inputs)
    sys.stdout.write(f"{figures}\n")


if __name__ == "__main__":
    main()
