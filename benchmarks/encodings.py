"""Texts of 45 languages in the encodings they were written in before UTF-8: how often the encoding is recognised.

    python -m benchmarks.encodings                            # the product's own function
    python -m benchmarks.encodings --with chardet             # or a library: chardet, charset_normalizer, cchardet
    python -m benchmarks.encodings --record after             # write benchmarks/results/scripts/encodings.json

``--with latin1`` is the advice that every refusal gave before there was such a function.

The texts are the translations in Django's catalogues, drawn by a seed. An encoding is recognised if the bytes, decoded
by it, are the text again; its name does not count. ``damaged`` are UTF-8 texts with one bad byte, which no legacy
encoding may be found in.
"""

from __future__ import annotations

import argparse
import functools
import gettext
import hashlib
import importlib
import json
import platform
import random
import shutil
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import django

from benchmarks.record import machine

RECORD = Path(__file__).parent / "results/scripts/encodings.json"
SEED = 40
LENGTHS = (1, 5, 20, 200)
"""Lines of the texts."""
GROUPS: dict[str, str] = {
    "de fr es pt it nl da sv nb fi is ca eu gl sq af ga id": "cp1252 iso8859-1 iso8859-15 mac-roman",
    "pl cs sk hu sl hr ro": "cp1250 iso8859-2",
    "et lv lt": "cp1257 iso8859-13",
    "ru bg": "cp1251 iso8859-5 koi8-r",
    "be sr mk": "cp1251 iso8859-5",
    "uk": "cp1251 koi8-u",
    "el": "cp1253 iso8859-7",
    "tr": "cp1254 iso8859-9",
    "he": "cp1255 iso8859-8",
    "ar": "cp1256 iso8859-6",
    "fa": "cp1256",
    "vi": "cp1258",
    "th": "tis-620 cp874",
    "zh_Hans": "gb2312 gbk gb18030",
    "zh_Hant": "big5 cp950",
    "ja": "shift_jis cp932 euc_jp iso2022_jp",
    "ko": "euc_kr cp949",
}
WRITTEN = {lang: encodings for langs, encodings in GROUPS.items() for lang in langs.split()}
"""Legacy encodings of each language, by the names that Python has for them."""
UNICODE = "utf-16 utf-16-be-mark utf-16-le utf-16-be utf-32 utf-8-sig"
"""Encodings of Unicode in which all languages are written; ``utf-16`` and ``utf-32`` begin with a mark."""
ENOUGH = 6
"""Fewest characters outside ASCII of a damaged text."""
DECOMPOSED = {"cp1258"}
"""Encodings that have tone marks only as characters of their own."""


@dataclass(frozen=True)
class Sample:
    """A text in an encoding."""

    lang: str
    encoding: str
    n_lines: int
    text: str
    data: bytes


@functools.cache
def catalogue(lang: str) -> list[str]:
    """Return the translations in all catalogues of Django for a language, each once and in a fixed order."""
    texts: dict[str, None] = {}
    for path in sorted(Path(django.__file__).parent.glob(f"**/locale/{lang}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            translations = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        for key, value in sorted((str(key), value) for key, value in translations.items()):
            if key and value and "\n" not in value:
                texts[unicodedata.normalize("NFC", value)] = None
    return list(texts)


def tones_apart(text: str) -> str:
    """Return Vietnamese as cp1258 has it: the five tones are characters of their own, other marks are not."""
    parts = []
    for character in text:
        marks = unicodedata.normalize("NFD", character)
        tone = "".join(mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323")
        parts.append(unicodedata.normalize("NFC", "".join(mark for mark in marks if mark not in tone)) + tone)
    return "".join(parts)


def encoded(text: str, encoding: str) -> bytes:
    """Return a text in an encoding of ``WRITTEN`` or ``UNICODE``."""
    if encoding == "utf-16-be-mark":
        return b"\xfe\xff" + text.encode("utf-16-be")
    return text.encode(encoding)


def samples(
    n_each: int = 2, lengths: tuple[int, ...] = LENGTHS, seed: int = SEED, only: Collection[str] = ()
) -> Iterator[Sample]:
    """Yield texts of each length for each language and encoding, or ``only`` some encodings; none is ASCII alone.

    Lines with characters that the encoding lacks are left out first, because nobody could have written them.
    """
    for lang, names in WRITTEN.items():
        everything = catalogue(lang)
        for encoding in (*names.split(), *UNICODE.split()):
            if only and encoding not in only:
                continue
            lines = []
            for line in everything:
                line = tones_apart(line) if encoding in DECOMPOSED else line
                try:
                    encoded(line, encoding)
                except UnicodeEncodeError:
                    continue
                lines.append(line)
            for n_lines in lengths:
                rng = random.Random(f"{seed} {lang} {encoding} {n_lines}")
                for _ in range(n_each):
                    drawn = rng.sample(lines, min(n_lines, len(lines)))
                    while all(line.isascii() for line in drawn):
                        drawn = rng.sample(lines, min(n_lines, len(lines)))
                    text = "".join(f"{line}\n" for line in drawn)
                    yield Sample(lang, encoding, n_lines, text, encoded(text, encoding))


def damaged(n_each: int = 2, seed: int = SEED) -> Iterator[Sample]:
    """Yield UTF-8 texts of all languages with one bad byte: one put in, one lost, or one line of another encoding.

    Each has at least ``ENOUGH`` characters outside ASCII, so that most of its sequences of bytes are UTF-8.
    """
    for lang, names in WRITTEN.items():
        lines = [line for line in catalogue(lang) if not line.isascii()]
        for n_lines in LENGTHS[1:]:
            rng = random.Random(f"{seed} {lang} {n_lines} damaged")
            for _ in range(n_each):
                text = "".join(f"{line}\n" for line in rng.sample(lines, min(n_lines, len(lines))))
                if sum(not character.isascii() for character in text) < ENOUGH:
                    continue
                data = text.encode()
                places = [place for place, byte in enumerate(data) if byte >= 0x80]
                place = rng.choice(places)
                bad = bytes([rng.choice([0xFF, 0xE9, 0x80])])
                yield Sample(lang, "put in", n_lines, text, data[:place] + bad + data[place:])
                yield Sample(lang, "lost", n_lines, text, data[:place] + data[place + 1 :])
                encoding = names.split()[0]
                line = next(line for line in rng.sample(lines, len(lines)) if _fits(line, encoding))
                foreign = encoded(tones_apart(line) if encoding in DECOMPOSED else line, encoding)
                if n_lines > LENGTHS[1] and _is_not_utf8(foreign):
                    yield Sample(lang, "one line", n_lines, text, data + foreign + b"\n")


def _fits(line: str, encoding: str) -> bool:
    """True if a line can be written in an encoding."""
    try:
        encoded(tones_apart(line) if encoding in DECOMPOSED else line, encoding)
    except UnicodeEncodeError:
        return False
    return True


def _is_not_utf8(data: bytes) -> bool:
    """True if bytes are not UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def detector(name: str) -> Callable[[bytes], str | None]:
    """Return the function that names the encoding of bytes, None if it names none."""
    if name == "product":
        from dragoman.data.encodings import recognise

        def of_product(data: bytes) -> str | None:
            encoding = recognise(data)
            return encoding.codec if encoding else None if _is_not_utf8(data) else "utf-8"

        return of_product
    if name == "latin1":
        return lambda data: "latin1" if b"\0" not in data else None
    module: Any = importlib.import_module(name)
    if name == "charset_normalizer":

        def of_normalizer(data: bytes) -> str | None:
            best = module.from_bytes(data).best()
            return best.encoding if best else None

        return of_normalizer
    more = {"compat_names": False} if name == "chardet" else {}
    return lambda data: module.detect(data, **more)["encoding"]


def is_right(sample: Sample, encoding: str | None) -> bool:
    """True if the bytes decoded by ``encoding`` are the text."""
    try:
        return sample.data.decode(encoding or "ascii").removeprefix("\ufeff") == sample.text
    except (UnicodeError, LookupError):
        return False


def by_iconv(data: bytes, name: str) -> str | None:
    """Return bytes as the program iconv converts them to UTF-8; None if it refuses them or does not exist."""
    if shutil.which("iconv") is None:
        return None
    run = subprocess.run(["iconv", "-f", name, "-t", "UTF-8"], input=data, capture_output=True, check=False)
    return run.stdout.decode() if run.returncode == 0 else None


def measured(name: str, n_each: int, verbose: bool = False) -> dict[str, Any]:
    """Return the shares of right answers by length and by encoding, and the faults at damaged UTF-8."""
    detect = detector(name)
    outcomes: Counter[tuple[Any, str]] = Counter()
    digest = hashlib.sha256()
    seconds, n = 0.0, 0
    for sample in samples(n_each):
        digest.update(sample.data)
        start = time.perf_counter()
        encoding = detect(sample.data)
        seconds += time.perf_counter() - start
        n += 1
        kind = "unicode" if sample.encoding in UNICODE.split() else "legacy"
        outcome = "right" if is_right(sample, encoding) else "none" if encoding is None else "wrong"
        if verbose and outcome != "right":
            print(sample.lang, sample.encoding, sample.n_lines, encoding, repr(sample.text[:60]), file=sys.stderr)
        for key in ((kind, sample.n_lines), sample.encoding):
            outcomes[key, outcome] += 1
    harmed = list(damaged(n_each))
    taken = Counter(sample.encoding for sample in harmed if detect(sample.data) not in (None, "utf-8"))
    names = [*dict.fromkeys(encoding for names in WRITTEN.values() for encoding in names.split()), *UNICODE.split()]
    return {
        "lines": {
            kind: {str(n_lines): _shares(outcomes, (kind, n_lines)) for n_lines in LENGTHS}
            for kind in ("legacy", "unicode")
        },
        "right_by_encoding": {encoding: _shares(outcomes, encoding)["right"] for encoding in names},
        "damaged": len(harmed),
        "damaged_taken_for_legacy": sum(taken.values()),
        "files": n,
        "ms_a_file": round(1000 * seconds / n, 2),
        "inputs_sha256": digest.hexdigest(),
    }


def _shares(outcomes: Counter[tuple[Any, str]], key: Any) -> dict[str, float]:
    """Return the shares of texts that are right, and of those that are decoded as another text."""
    total = sum(outcomes[key, outcome] for outcome in ("right", "wrong", "none"))
    return {outcome: round(outcomes[key, outcome] / total, 3) for outcome in ("right", "wrong")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--with", dest="name", default="product")
    parser.add_argument("--each", type=int, default=2, help="texts of each length, language and encoding")
    parser.add_argument("--record", help="the key of the record to write: before, after or the name of a library")
    parser.add_argument("--verbose", action="store_true", help="show what was not recognised")
    arguments = parser.parse_args()
    figures = measured(arguments.name, arguments.each, arguments.verbose)
    if arguments.record is None:
        print(json.dumps(figures, indent=1))
        return
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record |= {
        "command": "python -m benchmarks.encodings --record after",
        "machine": machine(),
        "versions": {"python": platform.python_version(), "django": django.get_version()},
        "date": date.today().isoformat(),
        "inputs": {
            "rule": "translations in Django's catalogues, n lines drawn by a seed, in each encoding of the language",
            "seed": SEED, "sha256": figures.pop("inputs_sha256"), "licence": "BSD-3-Clause (Django)",
        },
        arguments.record: figures,
    }  # fmt: skip
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
