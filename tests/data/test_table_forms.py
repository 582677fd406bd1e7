"""Tables as people have them: headings in words, ``sep=``, rows without all their cells, long cells."""

from __future__ import annotations

import logging
from itertools import islice, permutations
from pathlib import Path

import pytest
from babel import Locale

from dragoman.config import OneFile
from dragoman.data.tables import read_table, table_languages
from dragoman.data.texts import texts_named
from dragoman.documents.document import DocumentInfo
from dragoman.documents.table import read
from dragoman.errors import ConfigError
from dragoman.languages.codes import primary

PAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "pl", "zh", "ja", "ko", "tr")
"""Languages in which headings are written."""
NAMED = (*PAGES, "cs", "sv", "fi", "hu", "el", "uk", "ar", "he", "hi", "bn", "ta", "th", "vi", "id")
"""Languages that headings name."""


def named(lang: str, page: str) -> str:
    """Return the name of a language in another one."""
    return str(Locale.parse(page).languages[lang])


def headings() -> list[tuple[str, str, str, str]]:
    """Return names of two languages, in one language or each in its own, and their codes."""
    rows = []
    for number, (src, tgt) in enumerate(islice(permutations(NAMED, 2), 0, None, 7)):
        page = PAGES[number % len(PAGES)]
        rows.append((named(src, page), named(tgt, page), src, tgt))
        rows.append((named(src, src), named(tgt, tgt), src, tgt))
    return rows


def test_headings_name_languages_in_words(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    wrong = []
    for src_name, tgt_name, src, tgt in headings():
        for shown in ((src_name, tgt_name), (src_name.title(), tgt_name.upper())):
            path.write_text("\t".join(shown) + "\na dog\tein Hund\n", encoding="utf-8", newline="")
            languages = table_languages(path, None)
            if list(read_table(path, None)) != [("a dog", "ein Hund")] or tuple(map(primary, languages)) != (src, tgt):
                wrong.append((*shown, languages))
    assert not wrong, (len(wrong), wrong[:20])


@pytest.mark.parametrize(
    "row",
    ["source text\ttarget text", "Source\tTranslation", "source_sentence\ttarget_sentence", "SRC\tREF", "Quelle\tZiel",
     "English (US)\tGerman", "English text\tGerman text", "text_en\ttext_de",
     "Chinese (Simplified)\tEnglish"],
)  # fmt: skip
def test_other_headings_are_no_pair(tmp_path: Path, row: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{row}\na dog\tein Hund\n", encoding="utf-8")
    assert list(read_table(path, None)) == [("a dog", "ein Hund")]


@pytest.mark.parametrize(
    "row", ["English breakfast\tenglisches Frühstück", "German shepherd\tdeutscher Schäferhund", "text\tText",
            "source\tQuelle", "I speak English\tIch spreche Deutsch", "English\tEnglisch", "polish\tpolieren"]
)  # fmt: skip
def test_a_pair_is_no_heading(tmp_path: Path, row: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{row}\na dog\tein Hund\n", encoding="utf-8")
    assert list(read_table(path, None)) == [tuple(row.split("\t")), ("a dog", "ein Hund")]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quotes", ["", '"'])
def test_the_line_by_which_excel_names_the_separator_is_no_row(tmp_path: Path, sign: str, quotes: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"{quotes}sep={sign}{quotes}\r\nen{sign}de\r\na dog{sign}ein Hund\r\n", newline="")
    assert list(read_table(path, None)) == [("a dog", "ein Hund")]
    data = path.read_bytes()
    document = read(data, DocumentInfo("pairs.csv", columns=("en",)))
    assert document.save(lambda parts: "".join(getattr(part, "plain", part) for part in parts)) == data


def test_semicolons_part_the_cells_of_a_csv_as_they_do_in_a_document(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text('Englisch;Deutsch\na dog, big;"ein ""Hund""; groß"\n', encoding="utf-8")
    assert list(read_table(path, None)) == [("a dog, big", 'ein "Hund"; groß')]
    assert table_languages(path, None) == ("en", "de")


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.csv"])
def test_a_row_without_all_its_cells_is_named_and_left_out(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    sign = "\t" if name.endswith("tsv") else ","
    path = tmp_path / name
    rows = [f"a{n}{sign}b{n}" for n in range(1, 21)]
    rows[6], rows[11] = "alone", sign.join("abc")
    path.write_text("\n".join(rows) + "\n")
    with caplog.at_level(logging.WARNING, "dragoman"):
        pairs = list(read_table(path, None))
    expected = [(f"a{n}", f"b{n}") for n in range(1, 21)]
    expected[6] = expected[11] = ("", "")  # blank pairs, so that row i stays pair i; cleaning drops and counts them
    assert pairs == expected
    assert f"{name}:7: 1 cell, but the first row has 2" in caplog.text
    assert f"{name}:12: 3 cells, but the first row has 2" in caplog.text


def test_a_row_without_all_its_cells_stays_as_it_is_in_a_document() -> None:
    data = b"en,de\na dog,x\nalone\na cat,y\n"
    document = read(data, DocumentInfo("pairs.csv", columns=("en",)))
    assert document.save(lambda parts: "".join(getattr(part, "plain", part) for part in parts)) == data
    assert [segment.text for segment in document.left] == ["alone"]
    assert "line 3: the row has 1 cell, but the first one has 2" in document.left[0].why


def test_a_cell_may_be_as_long_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f'x,"{"y" * 200_000}"\n')
    assert list(read_table(path, None)) == [("x", "y" * 200_000)]


def test_two_files_behind_valid_are_asked_for_with_two_options(tmp_path: Path) -> None:
    for name in ("train.en", "train.de", "b.de"):
        (tmp_path / name).write_text("x\n")
    words = [str(tmp_path / name) for name in ("train.en", "train.de", "b.de")]
    with pytest.raises(ConfigError, match=r"--valid A --valid .*b.de"):
        texts_named(words)
    assert texts_named([str(tmp_path / "x.tsv")]) == [OneFile(file=tmp_path / "x.tsv")]
