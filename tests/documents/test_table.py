"""Tables as spreadsheets and programs write them."""

from __future__ import annotations

import csv
import io

import pytest

from benchmarks.real_documents.stand_ins import letters, translations
from dragoman.documents.document import DocumentInfo
from dragoman.documents.table import read
from dragoman.documents.table_rows import rows_of
from dragoman.documents.translate import Report, open_document
from dragoman.documents.units import Unit
from dragoman.errors import DataError
from dragoman.translation.assemble import Translation
from limits import cpu_limit


def translated(source: str, *columns: str, name: str = "a.csv") -> tuple[str, Report]:
    opened = open_document(source.encode(), DocumentInfo(name, "en", "de", columns))
    result, report = opened.finish(translations(opened.texts, letters))
    return result.decode(), report


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("id,text\n1,The dog\n", "id,text\n1,Тхе дог\n"),
        ("id;text\n1;a, b\n", "id;text\n1;а, б\n"),  # the separator is not the sign in a text
        ("id|text\r\n1|a dog\r\n", "id|text\r\n1|а дог\r\n"),
        ("id\ttext\n1\ta dog\n", "id\ttext\n1\tа дог\n"),
        ("sep=|\nid|text\n1|a dog", "sep=|\nid|text\n1|а дог"),
        ("id,text\r1,a dog\r2,b\r", "id,text\r1,а дог\r2,б\r"),  # an old Macintosh
        ('id, text\n1, "a, b"\n', 'id, text\n1, "а, б"\n'),  # blanks behind the separator
        ('"id" ,"text" \n"1" ,"a dog" \n', '"id" ,"text" \n"1" ,"а дог" \n'),
        ('id,text\n1,a 5" pipe\n', 'id,text\n1,а 5" пипе\n'),
        ('id,text\n1,"a ""dog"""\n', 'id,text\n1,"а ""дог"""\n'),
        ('id,text\r\n1,"a dog\r\na cat"\r\n', 'id,text\r\n1,"а дог\r\nа цат"\r\n'),
        ('id,text\n1,"Dog:      ""cat"":\ta\n  b"\n', 'id,text\n1,"Дог:      ""цат"":\tа\n  б"\n'),
        ("id;text\n1;   Dog:   cat\n", "id;text\n1;   Дог:   цат\n"),
        ("id,text\n1,   a dog   \n2,1\u00a0   2\n", "id,text\n1,   а дог   \n2,1\u00a0   2\n"),
        ('id,text\n1,5" dog   a cat\n', 'id,text\n1,5" дог   а цат\n'),
        ("id\ttext\n1\ta dog   a cat\n", "id\ttext\n1\tа дог   а цат\n"),
        ("id,text\n\n1,a dog\n\n", "id,text\n\n1,а дог\n\n"),
        ("id,text\n1,\n2,a", "id,text\n1,\n2,а"),
        ("text,id\na,\nb,", "text,id\nа,\nб,"),
        ("id,text\n1,=a dog\n", "id,text\n1,=а дог\n"),
        ("# by us, A\n#\nid;text;note\n1;a dog;a cat\n", "# by us, A\n#\nid;text;note\n1;а дог;a cat\n"),
        ("#id,text\n1,a dog\n", "#id,text\n1,а дог\n"),  # no comment
    ],
)
def test_cells_are_translated_and_everything_else_stays(source: str, expected: str) -> None:
    result, report = translated(source, "text")
    assert (result, report.left) == (expected, ())


def test_a_column_is_named_by_its_number_too() -> None:
    assert translated("a,a\nx,dog\n", "2")[0] == "a,a\nx,дог\n"
    assert translated("2,1\ndog,cat\n", "2")[0] == "2,1\nдог,cat\n"
    with pytest.raises(DataError, match=r"2 columns have the heading 'a': name it by its number; there are a, a"):
        translated("a,a\nx,dog\n", "a")
    with pytest.raises(DataError, match=r"no columns have the heading '3'"):
        translated("a,b\nx,dog\n", "3")


def test_a_cell_of_several_columns_gets_quotes_if_a_translation_needs_them_and_only_then() -> None:
    source = 'id,text\nhe dog,    \\\\    ""here""\n2,a dog   the cat   9\n'
    opened = open_document(source.encode(), DocumentInfo("a.csv", "en", "de", ("text",)))
    assert opened.finish({})[0] == source.encode()
    result, _ = opened.finish({"a dog": Translation("ein Hund, sozusagen", 0.0)})
    assert result == source.replace("a dog   the cat   9", '"ein Hund, sozusagen   the cat   9"').encode()


def test_many_columns_of_a_wide_table_are_found_in_linear_time() -> None:
    names = tuple(f"c{i}" for i in range(20_000))
    source = ",".join(names) + "\n" + ",".join(["a"] * 20_000) + "\n"
    with cpu_limit():
        document = read(source.encode(), DocumentInfo("a.csv", "en", "de", names))
    assert [part.text for part in document.parts if isinstance(part, Unit)] == ["a"] * 20_000


@pytest.mark.parametrize("column", ["1" * 5000, "0" * 5000 + "1"])
def test_a_number_of_very_many_digits_is_no_column(column: str) -> None:
    with pytest.raises(DataError, match="no columns have the heading"):
        translated("id,text\n1,a dog\n", column)


def test_a_number_is_a_column_although_the_first_row_of_text_has_that_cell() -> None:
    """The column of numbers was translated for the text, and the first row was taken for headings."""
    row = "2,the cat sleeps.,the dog runs."
    result, report = translated(f"{row}\n{row}\n", "2", "3")
    assert result == "2,тхе цат слеепс.,тхе дог рунс.\n" * 2
    assert report.left == ()
    assert translated("3,1\ndog,cat\n", "1", "3")[0] == "3,1\nдог,цат\n"


@pytest.mark.parametrize(
    ("first", "is_translated"),
    [("A dog runs.", True), ("A dog that runs through the house", True), ("A dog", False), ("text", False)],
)
def test_the_first_row_of_a_table_without_headings_is_translated_or_named(first: str, is_translated: bool) -> None:
    """Before, its text stayed and nobody was told."""
    for source, columns, name in ((f"{first}\tx\na cat\ty\n", ("1",), "a.tsv"), (f"{first}\na cat\n", (), "a.csv")):
        result, report = translated(source, *columns, name=name)
        expected = source.replace("a cat", "а цат")
        assert result == (expected.replace(first, letters(first).text) if is_translated else expected)
        assert [segment.text for segment in report.left] == ([] if is_translated else [first])
        assert report.found == 2


def test_a_heading_is_no_text() -> None:
    source = "A dog runs.,x\na cat,y\n"
    result, report = translated(source, "A dog runs.")
    assert (result, report.left) == (source.replace("a cat", "а цат"), ())


def test_what_cannot_be_read_or_is_a_formula_is_named_with_its_line_and_all_else_is_done() -> None:
    source = 'id,text\n1,"a\nb"\n2,a dog,more\n3,"open\n4,a cat\n5,=SUM(A1:A2)\n6,=HYPERLINK("x";"y")\n7\n8,-5\n'
    result, report = translated(source, "text")
    assert result == source.replace('"a\nb"', '"а\nб"').replace("a cat", "а цат")
    assert [(segment.text, segment.why.partition(":")[0]) for segment in report.left] == [
        ("2,a dog,more", "line 4"), ('3,"open', "line 5"), ("=SUM(A1:A2)", "line 7"),
        ('=HYPERLINK("x";"y")', "line 8"), ("7", "line 9"),
    ]  # fmt: skip
    assert report.left[1].why == "line 5: a quote does not end where a cell does"


def test_a_table_with_tabs_may_have_quotes_or_not() -> None:
    source = 'id\ttext\n1\t"a\tdog"\n2\t"a" dog\n3\t5" pipe\n4\t"a ""cat"""\n'
    result, report = translated(source, "text", name="a.tsv")
    assert report.left == ()
    assert result == 'id\ttext\n1\t"а\tдог"\n2\t"а" дог\n3\t5" пипе\n4\t"а ""цат"""\n'


@pytest.mark.parametrize(
    ("translation", "cell"),
    [
        ('"Ja" und "Nein"', '"""Ja"" und ""Nein"""'),
        (' "Ja"', '" ""Ja"""'),
        ('das "Ja"', 'das "Ja"'),
        ("Ja", "Ja"),
    ],
)
def test_a_translation_that_begins_with_a_mark_is_one_cell_for_spreadsheets(translation: str, cell: str) -> None:
    source = "id\ttext\n1\tyes and no\n"
    for name, written in (("a.csv", cell), ("a.tsv", translation)):
        opened = open_document(source.encode(), DocumentInfo(name, "en", "de", ("text",)))
        result, _ = opened.finish({"yes and no": Translation(translation, 0.0)})
        assert result.decode() == f"id\ttext\n1\t{written}\n"
    rows = list(csv.reader(io.StringIO(f"id\ttext\n1\t{cell}\n"), "excel-tab"))
    assert rows[1] == ["1", translation]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_two_quotation_marks_of_a_table_with_tabs_are_no_cell_over_two_rows(name: str, end: str) -> None:
    """Before, they became one cell: texts of other columns and identifiers were translated, and nobody was told."""
    rows = ["id\ttext\tby", '1\t"Come here, he said.\tAnn', '2\tAnd then we left."\tAnn', f'3\t"a dog{end}a cat"\tAnn']
    source = expected = end.join([*rows, ""])
    for text in ("Come here, he said.", "And then we left.", "a dog", "a cat"):
        expected = expected.replace(text, letters(text).text)
    result, report = translated(source, "text", name=name)
    assert (result, report.left) == (expected, ())


def test_rows_are_those_of_the_csv_module() -> None:
    from random import Random

    chance, compared = Random(1), 0
    while compared < 2000:
        text = "".join(chance.choice('ab,"" \n') for _ in range(chance.randint(0, 14)))
        rows = list(rows_of(text, ","))
        try:
            expected = list(csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True))
        except csv.Error:
            continue
        assert not any(row.fault for row in rows), text
        cells = [[text[start:end] for start, end in row.cells] for row in rows]
        values = [[c[1:-1].replace('""', '"') if len(c) > 1 and c[0] == c[-1] == '"' else c for c in r] for r in cells]
        assert [[value.strip() for value in row] for row in values] == [
            [value.strip() for value in row] or [""] for row in expected
        ]
        compared += 1


@pytest.mark.parametrize("unit", ['"a', '"a\n', '"a""\n', '""a\n', '"\n",x\n', ' "', '","', '"""x\n'])
def test_rows_take_linear_time(unit: str) -> None:
    text = unit * 300_000
    with cpu_limit():  # under a second; a search of what is left of the text, at each quotation mark, takes minutes
        places = [row.cells[-1][1] for row in rows_of(text, ",")]
    assert places[-1] in range(len(text) - len(unit), len(text) + 1)


@pytest.mark.parametrize("unit", ['"a\t\n', '\t""\n', '"\n\t""'])
def test_rows_with_tabs_take_linear_time(unit: str) -> None:
    with cpu_limit():
        assert [row for row in rows_of(f'"a{unit * 300_000}"', "\t") if row.fault] == []


@pytest.mark.parametrize(("unit", "end"), [('"a\t', '\nb"\n'), ('"a\n', '\tb"\n')])
def test_a_sign_that_is_far_away_is_looked_for_once(unit: str, end: str) -> None:
    with cpu_limit():
        assert [row for row in rows_of(unit * 300_000 + end, "\t") if row.fault] == []


def test_plain_text_keeps_its_lines_columns_and_indentation() -> None:
    source = "dog\n\n   dog\r\n cat   dog\n\tdog\tcat \n \n"
    result, report = translated(source, name="a.txt")
    assert (result, report.left) == (source.replace("dog", letters("dog").text).replace("cat", letters("cat").text), ())
    assert (
        translated("a dog\u00a0\u00a0\u00a0a cat\n", name="a.txt")[0] == letters("a dog\u00a0\u00a0\u00a0a cat\n").text
    )
    assert translated("a tall dog   sees  a cat\n", name="a.txt")[0] == letters("a tall dog   sees a cat\n").text
