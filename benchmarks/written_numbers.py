"""Do numbers arrive with sign, fraction, exponent, currency and unit, in the digits of many scripts?"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scripts_record import record
from dragoman.data.corpus import read_lines
from dragoman.translation.keeping.protected import find, missing
from dragoman.translation.translator import Translator

SEED = 12
ZEROS = {
    "latin": "0", "arabic": "\u0660", "persian": "\u06f0", "devanagari": "\u0966", "bengali": "\u09e6",
    "tamil": "\u0be6", "thai": "\u0e50", "khmer": "\u17e0", "burmese": "\u1040", "tibetan": "\u0f20",
    "full width": "\uff10",
}  # fmt: skip
"""The zero of each script's digits."""
CARRIERS = {
    "latin": (
        "It is {} today.", "We saw {} there.", "The answer was {}, she said.", "{} is too much.",
        "They paid ({}) for it.",
    ),
    "arabic": ("السعر {} اليوم.", "كانت النتيجة {}."),
    "persian": ("قیمت {} است.", "امروز {} بود."),
    "devanagari": ("आज {} है।", "उत्तर {} था।"),
    "bengali": ("আজ {} ছিল।", "উত্তর {} হয়।"),
    "tamil": ("இன்று {} ஆகும்.", "விலை {} தான்."),
    "thai": ("วันนี้{}เท่านั้น", "ราคา {} แล้ว"),
    "khmer": ("ថ្ងៃនេះ{}ហើយ។", "តម្លៃ {} ហើយ។"),
    "burmese": ("ယနေ့{}ဖြစ်သည်။", "စျေး {} ဖြစ်သည်။"),
    "tibetan": ("དེ་རིང་ {} ཡིན།", "རིན་གོང་ {} རེད།"),
    "full width": ("今天是{}。", "答案是{}吗？"),
}  # fmt: skip
KINDS = ("sign", "fraction", "exponent", "currency", "percent", "unit", "grouping", "hexadecimal")
CORPORA = (
    ("multi30k/test_2016_flickr", "en", "de"), ("tatoeba-en-de/dev", "en", "de"), ("tatoeba-en-zh/dev", "en", "zh"),
    ("justice-en-fr/dev", "en", "fr"), ("pydocs-en-zh/dev", "en", "zh"),
)  # fmt: skip


class Made(NamedTuple):
    """A line with a number in it."""

    kind: str
    script: str
    number: str
    text: str


def number(kind: str, chance: random.Random) -> str:
    """Return a number of a kind, in ASCII digits."""
    plain = chance.choice((str(chance.randint(1, 99)), f"{chance.randint(1, 999)}.{chance.randint(1, 99)}"))
    n = chance.randint(1, 98)
    grouped = (f"{chance.randint(1, 999)}{{0}}{chance.randint(0, 999):03}{{0}}{chance.randint(0, 999):03}").format
    power, sign = n % 9 + 1, chance.choice("$€£¥₹₽₩")
    forms = {
        "sign": (f"-{plain}", f"\u2212{plain}", f"+{plain}", f"\u00b1{plain}", f"\u2213{plain}"),
        "fraction": (
            f"{n}\u00bd", f"{n}\u2153", "\u00be", f"{n} {chance.randint(1, 4)}/5", f"{n}/{n + 1}", f"-{n}\u00bc"
        ),
        "exponent": (
            f"10\u207b{chance.choice('³⁴⁵')}", f"{n}e-{power}", f"{n}.5E+10", f"{n}²", f"10^{power}", f"10^-{power}"
        ),
        "currency": (f"{sign}{plain}", f"{plain} {sign}", f"-{sign}{n}", f"{plain}{sign}"),
        "percent": (f"{plain}%", f"{plain} %", f"-{plain}%", f"{plain}\u00a0%", f"{plain}‰"),
        "unit": (f"{plain}km", f"{n}°C", f"-{n}°C", f"{n}″", f"{n}m²", f"{n}kg", f"{n} m³"),
        "grouping": (
            grouped(","), grouped("\u202f"), grouped("."), grouped("'"), grouped("\u2009"),
            f"{n},{n % 90 + 10},000.50", f"-{grouped(',')}",
        ),
        "hexadecimal": (f"0x{chance.randint(16, 65535):X}", f"0x{chance.randint(16, 65535):x}"),
    }  # fmt: skip
    return chance.choice(forms[kind])


def lines(draws: int = 4, seed: int = SEED, carriers: str = "") -> list[Made]:
    """Return lines with numbers of each kind in the digits of each script.

    Args:
        carriers: Script of the sentences around all numbers; "": each number's own.
    """
    chance, made = random.Random(seed), []
    for script, zero in ZEROS.items():
        for kind in KINDS:
            for _ in range(draws):
                text = number(kind, chance)
                if kind != "hexadecimal":
                    text = re.sub("[0-9]", lambda digit: chr(ord(zero) + int(digit[0])), text)  # noqa: B023
                made.append(Made(kind, script, text, chance.choice(CARRIERS[carriers or script]).format(text)))
    return made


def plain(text: str) -> str:
    """Return a text in ASCII digits, with one kind of minus, without spaces, and small letters."""
    text = "".join(str(unicodedata.decimal(character, character)) for character in text)
    return re.sub(r"\s", "", text.replace("\u2212", "-").replace("\ufe63", "-")).lower()


def arrives(written: str, translation: str) -> bool:
    """True if a number with all its marks is in a translation, in any digits and with any separators."""
    text = re.sub(r"(?<=\d)[.,'](?=\d)", "", plain(translation))
    own = re.sub(r"(?<=\d)[.,'](?=\d)", "", plain(written))
    return re.search(rf"(?<![\d\-+±∓]){re.escape(own)}(?![\d⁰¹²³⁴-⁹½-¾⅐-⅞])", text) is not None


def shares(translator: Translator, made: Sequence[Made]) -> dict[str, Any]:
    """Return the percentage of numbers that arrive, and that arrive or are named by a note, in all and by kind."""
    total, arrived, named, lost = Counter[str](), Counter[str](), Counter[str](), []
    for line, translation in zip(made, translator.translate([line.text for line in made]), strict=True):
        notes = " ".join(note.text for note in translation.notes if note.kind in ("number", "placeholder"))
        for part in (line.kind, line.script, "all"):
            total[part] += 1
            if arrives(line.number, translation.text):
                arrived[part] += 1
            elif line.number in notes:
                named[part] += 1
        if not arrives(line.number, translation.text):
            lost.append((line.text, translation.text[:80]))
    return {
        "numbers": len(made),
        "arrive": {part: round(100 * arrived[part] / n, 1) for part, n in total.items()},
        "arrive or are named": {part: round(100 * (arrived[part] + named[part]) / n, 1) for part, n in total.items()},
        "examples": lost[:: max(1, len(lost) // 8)],
    }


def false_alarms(data: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield for each corpus and direction how many numbers a human translation is said to lack."""
    for name, *langs in CORPORA:
        sides = [list(read_lines(data / f"{name}.{lang}")) for lang in langs]
        for (src, tgt), lang in (((sides[0], sides[1]), langs[1]), ((sides[1], sides[0]), langs[0])):
            spans = [find(text) for text in src]
            lost = [
                sum(span.kind == "number" for span in missing(own, translation, text, lang))
                for own, translation, text in zip(spans, tgt, src, strict=True)
            ]
            n = sum(span.kind == "number" for own in spans for span in own)
            yield f"{name} to {lang}", {"numbers": n, "missing": sum(lost), "lines": sum(map(bool, lost))}


def main() -> None:
    """Translate the numbers by each run; count false alarms on parallel text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("when", choices=("before", "after"))
    parser.add_argument("--run", type=Path, action="append", required=True, help="a trained run from English")
    parser.add_argument("--data", type=Path, required=True, help="folder with the corpora")
    parser.add_argument("--draws", type=int, default=2, help="numbers of each kind and script")
    arguments = parser.parse_args()
    made = [*lines(arguments.draws, carriers="latin"), *lines(arguments.draws, SEED + 1)]
    figures: dict[str, Any] = {run.name: shares(Translator.load(run), made) for run in arguments.run}
    figures["false alarms"] = dict(false_alarms(arguments.data))
    sha256 = hashlib.sha256("\n".join(line.text for line in made).encode()).hexdigest()
    rule = f"{arguments.draws} numbers of each of {len(KINDS)} kinds in each of {len(ZEROS)} scripts, in sentences"
    rule += " in English, and in sentences of the script"
    inputs = {"rule": rule, "seed": SEED, "sha256": sha256, "licence": "own; false alarms: see each corpus"}
    record("written_numbers", arguments.when, figures, inputs)
    sys.stdout.write(f"{figures}\n")


if __name__ == "__main__":
    main()
