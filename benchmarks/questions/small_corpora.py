"""Small corpora into scripts that few read: pairs from Django's catalogues and CLDR's names, and what is learned.

    python -m benchmarks.questions.small_corpora make hi FOLDER       # train, valid and test, English to Hindi
    python -m benchmarks.questions.small_corpora look FOLDER/test.en FOLDER/out.hi

The commands of the trainings are in benchmarks/results/scripts/trainings.json.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gettext
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import regex
from babel import Locale
from babel.dates import format_date

ZEROS = {"hi": 0x966, "bn": 0x9E6, "ta": 0xBE6, "th": 0xE50, "my": 0x1040, "km": 0x17E0, "ar": 0x660}
"""The digit zero of the script of each language."""
SEED = 40
DATES = 900
HELD_OUT = 150


def pairs(lang: str) -> list[tuple[str, str]]:
    """Return pairs of English and a language, shuffled by the seed."""
    texts: dict[str, str] = {}
    for path in sorted(Path(django.__file__).parent.glob(f"**/locale/{lang}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            translations = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for key, value in translations.items():
            message = (key[0] if isinstance(key, tuple) else key).split("\x04")[-1]
            if message and value and "\n" not in message + value:
                texts.setdefault(message, value)
    english, other = Locale.parse("en"), Locale.parse(lang)
    for field in ("languages", "territories", "scripts", "currencies", "variants"):
        for code, name in getattr(english, field).items():
            if code in getattr(other, field):
                texts.setdefault(str(name), str(getattr(other, field)[code]))
    for name, own_name in names_of_time_and_units(english, other):
        texts.setdefault(name, own_name)
    rng = random.Random(SEED)
    for _ in range(DATES):
        date = datetime.date(1900, 1, 1) + datetime.timedelta(rng.randrange(50_000))
        form = rng.choice(["long", "full", "medium"])
        text = format_date(date, form, lang)
        own = "".join(chr(ZEROS[lang] + int(c)) if c in "0123456789" else c for c in text)
        texts.setdefault(format_date(date, form, "en"), own)
    kept = [(src.strip(), tgt.strip()) for src, tgt in texts.items() if src.strip() and tgt.strip() and len(src) < 300]
    random.Random(SEED).shuffle(kept)
    return kept


def names_of_time_and_units(english: Locale, other: Locale) -> Iterator[tuple[str, str]]:
    """Yield the names of months, days, quarters, eras and units in both languages, where both have them."""
    for field in ("months", "days", "quarters", "eras"):
        for context, widths in getattr(english, field).items():
            for width, names in widths.items() if hasattr(widths, "items") else ():
                for key, name in names.items() if hasattr(names, "items") else ():
                    with contextlib.suppress(KeyError, TypeError):
                        yield str(name), str(getattr(other, field)[context][width][key])
    for unit, forms in english.unit_display_names.items():
        with contextlib.suppress(KeyError, TypeError):
            yield str(forms["long"]), str(other.unit_display_names[unit]["long"])


def make(lang: str, folder: Path) -> None:
    """Write ``valid``, ``test`` and ``train`` in both languages."""
    everything = pairs(lang)
    folder.mkdir(parents=True, exist_ok=True)
    bounds = {"valid": (0, HELD_OUT), "test": (HELD_OUT, 2 * HELD_OUT), "train": (2 * HELD_OUT, None)}
    for name, (start, stop) in bounds.items():
        for side, code in enumerate(("en", lang)):
            lines = "".join(f"{pair[side]}\n" for pair in everything[start:stop])
            (folder / f"{name}.{code}").write_text(lines, encoding="utf-8")


def values(text: str) -> list[int]:
    """Return the values of the numbers of a text, whatever digits they have, in ascending order."""
    return sorted(int(number) for number in regex.findall(r"\p{Nd}+", text))


def look(src: list[str], translations: list[str]) -> dict[str, Any]:
    """Return counts of lines whose numbers or letters are broken, with examples."""
    numbered = [i for i, line in enumerate(src) if regex.search(r"\d", line) and "%" not in line]
    signs = {
        "digits_of_two_scripts_side_by_side": r"(?=[^0-9])\p{Nd}+ ?[0-9]",
        "ascii_digits_glued_to_a_letter": r"[\p{Lo}\p{M}][0-9]|[0-9][\p{Lo}\p{M}]",
        "sign_without_its_letter": r"(?:^|[\s\p{P}\p{Latin}\p{N}])\p{M}",
    }
    broken = {name: [line for line in translations if regex.search(sign, line)] for name, sign in signs.items()}
    return {
        "lines": len(src), "lines_out": len(translations), "with_numbers": len(numbered),
        "all_numbers_arrive": sum(values(src[i]) == values(translations[i]) for i in numbered),
        **{name: len(lines) for name, lines in broken.items()},
        "examples": {name: lines[:5] for name, lines in broken.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "look"])
    parser.add_argument("first", help="language, or source file")
    parser.add_argument("second", type=Path, help="folder, or file of translations")
    arguments = parser.parse_args()
    if arguments.what == "make":
        make(arguments.first, arguments.second)
        return
    sides = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in (Path(arguments.first), arguments.second)]
    print(json.dumps(look(*sides), ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
