"""The doctor mends: damaged corpora are named in one place, and ``--write`` gives back what was there before."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.config import PairOfFiles
from dragoman.data import phrasebook
from dragoman.doctor.findings import FIT, MEND, Finding, ranked, verdict
from dragoman.doctor.mending import Mended, write_mended
from dragoman.doctor.text_checks import examine
from dragoman.errors import DataError
from dragoman.progress import Ticker

Sides = tuple[list[str], list[str]]


@functools.cache
def clean() -> tuple[tuple[str, str], ...]:
    """650 different pairs of the embedded corpus."""
    return tuple(dict.fromkeys(phrasebook.pairs(650)))


class Result(NamedTuple):
    findings: list[Finding]
    mended: Mended
    pairs: list[tuple[str, str]]
    log: list[list[str]]


def doctor(folder: Path, src: list[str], tgt: list[str], encoding: str = "utf-8") -> Result:
    """Examine two sides, and write them mended."""
    files = folder / "x.en", folder / "x.de"
    for path, lines, codec in zip(files, (src, tgt), ("utf-8", encoding), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode(codec))
    text = PairOfFiles(src=files[0], tgt=files[1], src_lang="en", tgt_lang="de")
    examination = examine(text, Ticker(quiet=True))
    mended = write_mended(text, examination, (folder / "clean.en", folder / "clean.de"))
    sides = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in mended.files)
    log = [line.split("\t") for line in mended.log.read_text(encoding="utf-8").split("\n")[1:-1]]
    return Result(ranked(examination.findings), mended, list(zip(*sides, strict=True)), log)


def sides() -> Sides:
    """Both sides of the clean corpus, to be changed."""
    return [src for src, _ in clean()], [tgt for _, tgt in clean()]


def test_a_clean_corpus_is_fit_to_train_and_stays_as_it_is(tmp_path: Path) -> None:
    result = doctor(tmp_path, *sides())
    assert verdict(result.findings) == FIT
    assert result.pairs == list(clean())
    assert result.log == []


@pytest.mark.parametrize("more", [1, 3, 150])
@pytest.mark.parametrize("side", [0, 1])
def test_lines_behind_the_end_of_the_other_side_are_in_the_log(tmp_path: Path, more: int, side: int) -> None:
    """They were in no file and in no count."""
    both = sides()
    both[1 - side][-more:] = []
    result = doctor(tmp_path, *both)
    assert result.pairs == list(clean()[:-more])
    lost = [row for row in result.log if "" in row[2:4]]
    assert [int(row[2 + side]) for row in lost] == list(range(len(clean()) - more + 1, len(clean()) + 1))
    assert [row[4 + side] for row in lost] == [pair[side] for pair in clean()[-more:]]
    assert {row[0] for row in lost} == {"dropped"}
    assert result.mended.dropped == {"shifted": more}


def test_one_line_too_many_is_one_place_and_the_lines_come_side_by_side(tmp_path: Path) -> None:
    src, tgt = sides()
    tgt.insert(300, "Diese Zeile ist eine zu viel, und sie ist auch noch recht lang.")
    result = doctor(tmp_path, src, tgt)
    assert verdict(result.findings) == MEND
    finding = next(finding for finding in result.findings if finding.name == "shifted")
    (place,) = finding.places
    assert (place.file, place.first, place.last) == (str(tmp_path / "x.de"), 301, 301)
    assert "or missing in" in place.about
    assert result.pairs == list(clean())
    assert [row[:4] for row in result.log] == [["dropped", "shifted", "", "301"]]


def test_lines_missing_on_both_sides_are_places_of_their_own(tmp_path: Path) -> None:
    src, tgt = sides()
    del src[450:453]
    del tgt[150]
    result = doctor(tmp_path, src, tgt)
    finding = next(finding for finding in result.findings if finding.name == "shifted")
    assert [(Path(place.file).name, place.first, place.last) for place in finding.places] == [
        ("x.en", 151, 151),
        ("x.de", 450, 452),
    ]
    assert result.pairs == [pair for i, pair in enumerate(clean()) if i not in (150, 450, 451, 452)]


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("fault", ["each target twice", "every other source"])
def test_lines_that_fit_nowhere_are_not_moved(tmp_path: Path, fault: str, by_length: bool) -> None:
    """Lengths agree here and there by chance: hundreds of pairs were said to stand beside the wrong line."""
    pairs = list(dict.fromkeys(phrasebook.pairs(1_200)))
    if by_length:
        pairs.sort(key=lambda pair: len(pair[0]))
    src, tgt = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    if fault == "each target twice":
        tgt = [line for line in tgt for _ in range(2)]
    else:
        src = src[::2]
    found = {finding.name: finding for finding in doctor(tmp_path, src, tgt).findings}
    assert "shifted" not in found
    assert found["misaligned"].total == len(src)


def bpe(line: str) -> str:
    return " ".join(f"{word[:3]}@@ {word[3:]}" if len(word) > 5 else word for word in line.split(" "))


def in_full_width(line: str) -> str:
    return line.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})


def as_cp1252(line: str) -> str:
    return line.encode().decode("cp1252", "replace")


def every(n: int, change: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    """Return a function that changes each n-th line."""
    return lambda lines: [change(line) if i % n == 0 else line for i, line in enumerate(lines)]


FORMS: dict[str, tuple[int, Callable[[list[str]], list[str]]]] = {
    "normal-form": (1, every(2, lambda line: unicodedata.normalize("NFD", line))),
    "subword-marks": (1, every(1, bpe)),
    "column": (0, lambda lines: [f"{i}\t{line}" for i, line in enumerate(lines, start=700)]),
    "tokenised": (1, every(1, lambda line: line.replace(".", " .").replace("?", " ?").replace(",", " ,"))),
    "mixed-script": (0, every(9, lambda line: line.replace("e", "е", 1).replace("o", "о", 1))),
    "full-width": (0, every(9, in_full_width)),
    "no-break-words": (0, every(4, lambda line: line.replace(" ", "\u00a0", 1))),
    "markup": (1, every(5, lambda line: f"<p>{line}</p>")),
    "entity": (1, every(5, lambda line: line.replace(" ", "&nbsp;", 1))),
    "mojibake": (1, lambda lines: [as_cp1252(line) if "ü" in line or "ö" in line else line for line in lines]),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_nobody_types_is_named_and_mended(tmp_path: Path, name: str) -> None:
    side, change = FORMS[name]
    both = sides()
    changed = change(both[side])
    touched = [i for i, (old, new) in enumerate(zip(both[side], changed, strict=True)) if old != new]
    assert len(touched) > 50
    both[side][:] = changed
    result = doctor(tmp_path, *both)
    assert verdict(result.findings) == MEND
    assert result.findings[0].name == name
    lines = [n for place in result.findings[0].places for n in range(place.first, place.last + 1)]
    assert len(set(lines) & {i + 1 for i in touched}) >= 0.9 * max(len(lines), len(touched))
    assert sum(a == b for a, b in zip(result.pairs, clean(), strict=True)) >= 0.99 * len(clean())
    assert {row[0] for row in result.log} == {"mended"}


def test_a_tag_that_both_sides_have_stays(tmp_path: Path) -> None:
    src, tgt = sides()
    for i in range(0, 650, 5):
        src[i], tgt[i] = f"<b>{src[i]}</b>", f"<b>{tgt[i]}</b>"
    expected = list(zip(src, tgt, strict=True))
    for i in range(0, 650, 10):
        tgt[i] = f"<p>{tgt[i].replace(' ', '<i></i> ', 1)}</p>"
    assert doctor(tmp_path, src, tgt).pairs == expected


def test_what_cannot_be_mended_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    src, tgt = sides()
    tgt[100:150] = ["<range>"] * 50
    src[300:340], tgt[300:340] = tgt[300:340], src[300:340]
    tgt[500:540] = src[500:540]
    result = doctor(tmp_path, src, tgt)
    names = [finding.name for finding in result.findings if finding.level != "note"]
    assert {"placeholder", "swapped-sides", "untranslated"} <= set(names)
    assert result.pairs == [pair for i, pair in enumerate(clean()) if i not in (*range(100, 150), *range(500, 540))]
    assert result.mended.mended == {"swapped-sides": 40}
    assert result.mended.dropped == {"placeholder": 50, "untranslated": 40}
    assert [row[2] for row in result.log if row[1] == "placeholder"] == [str(n) for n in range(101, 151)]


@pytest.mark.parametrize("rows", [range(150, 400), range(2, 648, 5), sorted([*range(1, 650, 5), *range(3, 650, 5)])])
def test_exchanged_sides_are_exchanged_again_and_no_others(tmp_path: Path, rows: Sequence[int]) -> None:
    """A block, and pairs one by one: two fifths were taken for another language, and neighbours exchanged as well."""
    src, tgt = sides()
    for i in rows:
        src[i], tgt[i] = tgt[i], src[i]
    result = doctor(tmp_path, src, tgt)
    assert {finding.name for finding in result.findings if finding.level != "note"} == {"swapped-sides"}
    differing = [i for i, (made, pair) in enumerate(zip(result.pairs, clean(), strict=True)) if made != pair]
    assert len(differing) <= 6  # of 650: two or three words tell too little
    assert all(result.pairs[i] == clean()[i][::-1] for i in differing)


def test_lines_of_another_language_one_by_one_take_no_neighbour_with_them(tmp_path: Path) -> None:
    src, tgt = sides()
    others = list(range(3, 650, 4))
    for i in others:
        tgt[i] = f"Je ne sais pas si le numéro {i} est dans la maison avec une chaise."
    result = doctor(tmp_path, src, tgt)
    assert {finding.name for finding in result.findings if finding.level != "note"} == {"target-language"}
    assert result.pairs == [pair for i, pair in enumerate(clean()) if i not in others]


def test_a_file_in_another_encoding_is_read_in_it(tmp_path: Path) -> None:
    result = doctor(tmp_path, *sides(), encoding="utf-16-le")
    assert result.findings[0].name == "encoding"
    assert "iconv -f UTF-16LE" in result.findings[0].advice
    assert result.pairs == list(clean())


def test_a_file_in_a_single_byte_encoding_that_is_certain_is_mended(tmp_path: Path) -> None:
    assert doctor(tmp_path, *sides(), encoding="iso8859-1").pairs == list(clean())


@pytest.mark.parametrize("n_last", [1, 600, 10_000])
def test_a_text_whose_encoding_is_a_guess_is_not_written(tmp_path: Path, n_last: int) -> None:
    """The sign of the euro became another one, and was counted as mended; also where only a late line has it."""
    src, tgt = (lines * 3 for lines in sides())
    prices = [f"{line} Das kostet {10 + i} {'€' if i >= len(tgt) - n_last else 'Euro'}." for i, line in enumerate(tgt)]
    with pytest.raises(
        DataError, match=r"x\.de: not UTF-8, and --write does not guess.* it with iconv -f \S+ -t UTF-8"
    ):
        doctor(tmp_path, src, prices, encoding="iso8859-15")
    assert {path.name for path in tmp_path.iterdir()} == {"x.en", "x.de"}


def test_a_side_in_lower_case_and_lines_cut_at_one_length_are_named(tmp_path: Path) -> None:
    src, tgt = sides()
    limit = sorted(map(len, tgt))[len(tgt) * 7 // 10]
    result = doctor(tmp_path, [line.lower() for line in src], [line[:limit] for line in tgt])
    names = [finding.name for finding in result.findings if finding.is_harmful]
    assert "lower-case" in names
    assert "truncated" in names
