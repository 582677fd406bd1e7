"""Tables of pairs: cells, headings, and what is wrong with a row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dragoman.data.tables import read_table, table_columns, table_languages
from dragoman.errors import DataError


def table(folder: Path, text: str | bytes, name: str = "pairs.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_two_columns_are_source_and_target(tmp_path: Path) -> None:
    path = table(tmp_path, 'a dog\tein Hund\na "cat"\teine Katze\n')
    assert list(read_table(path, None)) == [("a dog", "ein Hund"), ('a "cat"', "eine Katze")]
    path = table(tmp_path, 'a dog\tein Hund\tCC-BY\na "cat"\teine Katze\tCC-BY\n')
    assert list(read_table(path, ("1", "2"))) == [("a dog", "ein Hund"), ('a "cat"', "eine Katze")]
    assert list(read_table(path, ("2", "1"))) == [("ein Hund", "a dog"), ("eine Katze", 'a "cat"')]
    assert table_languages(path, ("1", "2")) == (None, None)


@pytest.mark.parametrize(
    ("head", "columns", "langs"),
    [
        ("en\tde\tnote", None, ("en", "de")),
        ("en\tde\tnote", ("de", "en"), ("de", "en")),
        ("zh-CN\tde\tnote", None, ("zh-CN", "de")),
        ("Source\tTarget\tnote", None, (None, None)),
        ("English\tGerman\tnote", ("English", "German"), ("en", "de")),
        ("en\tde\tnote", ("1", "2"), ("en", "de")),
    ],
)
def test_headings_are_no_pair(
    tmp_path: Path, head: str, columns: tuple[str, str] | None, langs: tuple[str | None, str | None]
) -> None:
    path = table(tmp_path, f"{head}\na dog\tein Hund\tx\n")
    swapped = columns == ("de", "en")
    assert list(read_table(path, columns)) == [("ein Hund", "a dog") if swapped else ("a dog", "ein Hund")]
    assert table_languages(path, columns) == langs


def test_headings_of_the_sides_are_no_pair_in_either_direction(tmp_path: Path) -> None:
    path = table(tmp_path, "source\ttarget\na dog\tein Hund\n")
    assert list(read_table(path, ("2", "1"))) == [("ein Hund", "a dog")]
    assert table_columns(path) == ("1", "2")
    path = table(tmp_path, "target\tscore\tsource\nein Hund\t0.5\ta dog\n")
    assert table_columns(path) == ("3", "1")
    assert list(read_table(path, table_columns(path)[::-1])) == [("ein Hund", "a dog")]


def test_semicolons_are_found_where_commas_stand_in_the_first_row(tmp_path: Path) -> None:
    text = 'Hello, you;Hallo, du\n"She said ""no"".";"Sie sagte ""nein""."\n'
    assert list(read_table(table(tmp_path, text, "pairs.csv"), None)) == [
        ("Hello, you", "Hallo, du"), ('She said "no".', 'Sie sagte "nein".'),
    ]  # fmt: skip


def test_short_words_are_no_headings(tmp_path: Path) -> None:
    """Two words of two letters in a dictionary are a pair, unless both are languages."""
    assert list(read_table(table(tmp_path, "go\tgeh\nno\tnein\n"), None)) == [("go", "geh"), ("no", "nein")]


def test_quotes_of_a_csv(tmp_path: Path) -> None:
    text = 'en,de\r\n"yes, a ""dog""","ja, ein Hund"\r\n"two\nlines",zwei\r\n\r\nend,Ende\r\n'
    path = table(tmp_path, text, "pairs.csv")
    assert list(read_table(path, None)) == [
        ('yes, a "dog"', "ja, ein Hund"), ("two\nlines", "zwei"), ("", ""), ("end", "Ende"),
    ]  # fmt: skip
    packed = table(tmp_path, gzip.compress(text.encode()), "pairs.csv.gz")
    assert list(read_table(packed, None)) == list(read_table(path, None))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('"en"; "de"\n"yes; a dog";  "ja; ein Hund"\n', [("yes; a dog", "ja; ein Hund")]),
        ('"en", "de"\n"yes, a dog", "ja, ein Hund"\na, b\n', [("yes, a dog", "ja, ein Hund"), ("a", "b")]),
        ('en,de\nHello, "Hallo" sagte er\n', [("Hello", ' "Hallo" sagte er')]),  # quotes of the text
        ('en,de\nThe 5" pipe, "Rohr\n', [('The 5" pipe', ' "Rohr')]),
        ('en;de\na;b\nHe asked; "Wer?" fragte er\n', [("a", "b"), ("He asked", ' "Wer?" fragte er')]),
        ('two, "zwei\nthree,drei\nfour,vier"\n', [("two", ' "zwei'), ("three", "drei"), ("four", 'vier"')]),
    ],
)
def test_quotes_behind_a_space_are_quotes_where_they_end_a_cell(
    tmp_path: Path, text: str, pairs: list[tuple[str, str]]
) -> None:
    assert list(read_table(table(tmp_path, text, "spaced.csv"), None)) == pairs


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("a.tsv", "x\ty\nx\nx\n", None, "a.tsv: 2 of 3 rows have 1 cell, but the first row has 2"),
        ("a.tsv", "x\ty\nx\ty\tz\nx\ty\tz\n", None, "a.tsv: 2 of 3 rows have 3 cells, but the first row has 2"),
        ("a.tsv", "x\nx\n", None, "a.tsv:1: 1 cell, so there is no column 2"),
        ("a.csv", "id,Anfang,Ende\n1,x,y\n", None, "3 cells (id, Anfang, Ende); choose source and target"),
        ("a.tsv", "x\ty\tz\n", None, "a.tsv:1: 3 cells (x, y, z); choose source and target, for example --columns 1,2"),
        (
            "a.csv",
            "1,x,y\n2,x,y\n",
            None,
            "a.csv:1: 3 cells (1, x, y); choose source and target, for example --columns 2,3",
        ),
        ("a.tsv", "7\tx\t8\ty\n9\tx\t10\ty\n", None, "choose source and target, for example --columns 2,4"),
        ("a.tsv", "x\ty\n", ("1", "3"), "a.tsv:1: 2 cells, so there is no column 3"),
        ("a.tsv", "x\ty\n", ("0", "1"), "so there is no column 0"),
        ("a.csv", "en,de,de\nx,y,z\n", ("en", "de"), "a.csv:1: 2 columns have the heading 'de'; give their numbers"),
        ("a.tsv", "en\tde\nx\ty\n", ("en", "fr"), "no column has the heading 'fr'; the first row is: en, de"),
        ("a.tsv", b"x\ty\nx\t\xff\n", None, "a.tsv:2:3: byte 0xff is not UTF-8"),
        ("a.tsv", b"x\ty\nx\t\0\n", None, "a.tsv:2:3: NUL byte"),
        ("a.tsv", "", None, "the file is empty"),
        ("a.csv", "", None, "the file is empty"),
        ("a.csv", "sep=;\n", None, "a.csv: a table without rows; begin with headings"),
        (
            "a.csv",
            'x,y\n"x,y\n',
            None,
            "a.csv:2: not a row of a .csv: a quotation mark that opens a cell is never",
        ),
        ("a.csv", 'x,y\n"x"z,y\n', None, "a.csv:2: not a row of a .csv: text behind the quotation mark"),
        ("a.csv", "x,y\nx,y\rz\n", None, "a.csv:2: not a row of a .csv: a CR inside a cell; put the cell in"),
        ("a.csv", 'x,y\n"x\n\nz,y\n', None, "a.csv:2: not a row of a .csv: a quotation mark"),
        ("a.csv", "x|y\nx|y\n", None, "commas, semicolons or tabs those of a .csv"),
        (
            "a.csv",
            'x,"' + f"{'y' * 2**19}\n" * 3 + '"\n',
            None,
            "a.csv:1: not a row of a .csv: a cell of more than 1,048,576 characters",
        ),
        ("a.csv", "x|y\nx|y\n", None, "a.csv:1: 1 cell, so there is no column 2"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, name: str, text: str | bytes, columns: tuple[str, str] | None, message: str
) -> None:
    path = table(tmp_path, text, name)
    with pytest.raises(DataError) as refusal:
        list(read_table(path, columns))
    assert message in str(refusal.value)


def test_a_byte_order_mark_is_no_part_of_the_first_heading(tmp_path: Path) -> None:
    path = table(tmp_path, b"\xef\xbb\xbfen\tde\na\tb\n")
    assert list(read_table(path, ("en", "de"))) == [("a", "b")]


@pytest.mark.parametrize(
    ("head", "row", "langs"),
    [
        ("ID,EN,DE,Reviewer", "1,a dog,ein Hund,Anna", ("EN", "DE")),
        ("ID,EN,DE", "s-17,a dog,ein Hund", ("EN", "DE")),
        (",en,de", "0,a dog,ein Hund", ("en", "de")),
        ("id,source,target,quality", "1,a dog,ein Hund,4", (None, None)),
        ("status,Englisch,Notiz,Deutsch", "ok,a dog,x y,ein Hund", ("en", "de")),
        ("Target,Source", "ein Hund,a dog", (None, None)),
        ("Übersetzung,Kommentar,Original", "ein Hund,gut,a dog", (None, None)),
    ],
)
def test_headings_choose_the_columns_of_text(
    tmp_path: Path, head: str, row: str, langs: tuple[str | None, str | None]
) -> None:
    path = table(tmp_path, f"{head}\n{row}\n{row}\n", "pairs.csv")
    assert list(read_table(path, None)) == [("a dog", "ein Hund")] * 2
    assert table_languages(path, None) == langs


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.csv"])
@pytest.mark.parametrize("heads", [("target", "source"), ("Ziel", "Quelle"), ("ref_text", "src_text")])
@pytest.mark.parametrize("pairs", [[("100", "one hundred"), ("2", "two")], [("noon", "12:00")], [("1", "2")]])
def test_headings_name_the_only_two_columns_even_where_one_has_no_letters(
    tmp_path: Path, name: str, heads: tuple[str, str], pairs: list[tuple[str, str]]
) -> None:
    """Numbers and their names were learned in the wrong direction."""
    separator = "," if name == "pairs.csv" else "\t"
    rows = [heads, *((tgt, src) for src, tgt in pairs)]
    path = table(tmp_path, "".join(separator.join(row) + "\n" for row in rows), name)
    assert list(read_table(path, None)) == pairs
    assert table_columns(path) == ("2", "1")


def test_indonesian_is_a_language_where_its_column_has_sentences(tmp_path: Path) -> None:
    path = table(tmp_path, "id,en,status\nSelamat pagi,Good morning,ok\n", "pairs.csv")
    assert list(read_table(path, None)) == [("Selamat pagi", "Good morning")]


@pytest.mark.parametrize("columns", [("en", "de"), ("EN", "de-AT"), ("englisch", "DEUTSCH"), ("2", "deutsch")])
def test_columns_are_named_by_language_or_in_any_case(tmp_path: Path, columns: tuple[str, str]) -> None:
    path = table(tmp_path, "Nr\tEnglisch\tDeutsch\n1\ta dog\tein Hund\n")
    assert list(read_table(path, columns)) == [("a dog", "ein Hund")]


@pytest.mark.parametrize(
    ("first", "columns", "pair"),
    [
        ("1\ta dog\tein Hund", ("2", "3"), ("a dog", "ein Hund")),
        ("a dog\tein Hund\t1", ("1", "2"), ("a dog", "ein Hund")),
        ("a dog\tein Hund\t2", ("2", "1"), ("ein Hund", "a dog")),
        (" 2\ta dog\tein Hund", ("2", "3"), ("a dog", "ein Hund")),
        ("1\tein Hund", ("1", "2"), ("1", "ein Hund")),
    ],
)
def test_a_number_is_a_column_although_the_first_row_of_text_has_that_cell(
    tmp_path: Path, first: str, columns: tuple[str, str], pair: tuple[str, str]
) -> None:
    """The column of numbers was read for the text, and the first row was taken for headings."""
    path = table(tmp_path, f"{first}\n{first}\n")
    assert list(read_table(path, columns)) == [pair, pair]
    assert table_languages(path, columns) == (None, None)


@pytest.mark.parametrize(
    ("head", "columns"), [("2\t1", ("1", "2")), (" 2 \t1", ("1", "2")), ("de\t17", ("17", "1")), ("de\t1", ("1", "de"))]
)
def test_a_number_is_a_heading_where_the_first_row_names_all_columns_or_has_fewer_cells(
    tmp_path: Path, head: str, columns: tuple[str, str]
) -> None:
    path = table(tmp_path, f"{head}\nein Hund\ta dog\n")
    assert list(read_table(path, columns)) == [("a dog", "ein Hund")]


def test_the_only_cell_of_a_row_is_no_heading_of_the_missing_column(tmp_path: Path) -> None:
    """A column of sentences that began with "2" was read as both sides."""
    with pytest.raises(DataError, match="1 cell, so there is no column 2"):
        list(read_table(table(tmp_path, "2\na dog\n"), None))


def test_a_tsv_is_one_in_capitals_too(tmp_path: Path) -> None:
    path = table(tmp_path, '"a dog\tein "Hund"\n', "PAIRS.TSV")
    assert list(read_table(path, None)) == [('"a dog', 'ein "Hund"')]


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ('"a dog"\t"ein Hund"\n' * 3, "pairs.tsv:1: cells in quotation marks, in 3 rows: "),
        ('a dog\tein Hund\n"a ""dog"", big"\tx\n', "pairs.tsv:2: cells in quotation marks, in 1 row: "),
        ('a dog\tein Hund\n"A dog."\t"Ein Hund."\n', ""),
        ('""A dog""\tein Hund\n"\t"\n', ""),
    ],
)
def test_cells_that_a_spreadsheet_put_in_quotation_marks_are_named(
    tmp_path: Path, text: str, warned: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = table(tmp_path, text)
    pairs = list(read_table(path, None))
    assert pairs == [tuple(line.split("\t")) for line in text.splitlines()]
    assert (warned in caplog.text) if warned else not caplog.text
