"""Parallel text in two columns of a table: ``.tsv`` and ``.csv``, each plain, ``.gz`` or ``.zst``.

A ``.tsv`` has no quotes: a tab ends a cell and LF a row. A ``.csv`` has commas, semicolons or tabs, quotes as in RFC
4180, and line breaks inside quotes; cleaning later drops a pair with a line break. The file is read like any text
(``read_lines``). A row with more or fewer cells than the first is named and becomes a blank pair, which cleaning drops.
"""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from dragoman.data.corpus import MAX_LINE_BYTES, read_lines
from dragoman.data.rows import cells, has_spaces_before_quotes, is_position, separator_line
from dragoman.data.text_names import form_of
from dragoman.errors import DataError
from dragoman.languages.codes import variety
from dragoman.languages.known import is_known
from dragoman.languages.names import code_named

logger = logging.getLogger(__name__)

SIDES = (
    "src source original quelle quelltext ausgangstext fuente origen fonte origine bron źródło источник исходный "
    "kaynak 原文 源文 源语言 원문",
    "tgt target trg ref reference translation translated ziel zieltext übersetzung cible traduction destino traducción "
    "tradução traduzione doel vertaling cel tłumaczenie перевод hedef çeviri 译文 翻译 訳文 翻訳 번역",
)
"""Headings of the source and the target column that name no language."""
FILLERS = ("text", "texts", "sentence", "sentences", "segment", "string", "language", "lang", "column")
"""Words in headings that name neither a language nor a side."""
SEPARATORS = ",;\t"
"""Characters that may part the cells of a .csv; any other is named by a first line such as ``sep=|``."""
LOOKED_AT = 50
"""Number of lines by which the separator is chosen, and of rows by which columns of text are."""
SHOWN = 5
"""Number of rows that are named because they lack cells or have too many."""

_CSV_ERRORS = {
    "unexpected end of data": "a quotation mark that opens a cell is never closed",
    "expected after '\"'": "text behind the quotation mark that closes a cell; write one inside a cell twice",
    "field larger than field limit": f"a cell of more than {MAX_LINE_BYTES:,} characters, or a quotation mark that is "
    "never closed",
    "new-line character seen": "a CR inside a cell; put the cell in quotation marks, or remove the CR",
}

Columns = tuple[str, str]
Row = tuple[int, list[str]]
"""Number of the line at which a row ends, and the cells of the row."""


def read_table(path: Path, columns: Columns | None) -> Iterator[tuple[str, str]]:
    """Yield source and target of each row.

    Args:
        columns: Source and target column by heading, or by number from 1. A number is a heading only if all chosen
            columns are cells of the first row, or if there are fewer cells. None: the two that the first row names, as
            source and target or by languages; without headings the only two.

    Raises:
        DataError: As ``read_lines``; or a quote does not end, a column does not exist or must be chosen, or most rows
            have more or fewer cells than the first. The message names file and line.
    """
    head, rows = _begun(path)
    first = head[0][1]
    src, tgt = _places(path, head, columns)
    data_rows = chain(head[1:], rows) if _has_headings(first, src, tgt, columns) else chain(head, rows)
    quotes = _Quotes()
    n_rows, ragged = 0, Counter[int]()
    for line, row in data_rows:
        n_rows += 1
        if not any(row):  # a blank line
            yield "", ""
        elif len(row) != len(first):
            ragged[len(row)] += 1
            if ragged.total() <= SHOWN:
                logger.warning(
                    "%s:%d: %s, but the first row has %d: left out", f"{path}", line, cells(len(row)), len(first)
                )
            yield "", ""
        else:
            quotes.count(line, row[src], row[tgt])
            yield row[src], row[tgt]
    if ragged.total() > n_rows / 2:
        (n_cells, n), *_ = ragged.most_common(1)
        raise DataError(
            f"{path}: {n:,} of {n_rows:,} rows have {cells(n_cells)}, but the first row has {len(first)}; each row "
            "needs all its cells"
        )
    if ragged.total() > SHOWN:
        logger.warning("%s: %s rows in all have not %d cells: left out", f"{path}", f"{ragged.total():,}", len(first))
    if form_of(path) == ".tsv" and quotes.are_of_a_csv(n_rows):
        logger.warning(
            "%s:%d: cells in quotation marks, in %s row%s: a .tsv has no quotes, so the marks are part of the text; if "
            "a spreadsheet wrote them, name the file .csv", f"{path}", quotes.first, f"{quotes.n:,}",
            "s" * (quotes.n > 1),
        )  # fmt: skip


def table_languages(path: Path, columns: Columns | None) -> tuple[str | None, str | None]:
    """Return the languages that the headings of the columns name, None for a heading that is not a language code.

    Raises:
        DataError: As ``read_table``, for the first row.
    """
    head, _ = _begun(path)
    first = head[0][1]
    src, tgt = _places(path, head, columns)
    if not _has_headings(first, src, tgt, columns):
        return None, None
    return _language(first[src]), _language(first[tgt])


def table_headings(path: Path, columns: Columns | None) -> Columns:
    """Return the first cells of the source and the target column.

    Raises:
        DataError: As ``read_table``, for the first row.
    """
    head, _ = _begun(path)
    src, tgt = _places(path, head, columns)
    return head[0][1][src], head[0][1][tgt]


def table_columns(path: Path) -> Columns:
    """Return the numbers, from 1, of the columns that ``read_table`` takes where none are chosen.

    Raises:
        DataError: As ``read_table``, for the first row.
    """
    head, _ = _begun(path)
    src, tgt = _places(path, head, None)
    return str(src + 1), str(tgt + 1)


def columns_by_headings(headings: Sequence[str], langs: tuple[str | None, str | None]) -> tuple[int, int] | None:
    """Return the places of source and target, from 0, that headings name by languages or as sides; None: they do not.

    Of two columns one that names nothing belongs to the other side. There the name of a side comes before a language:
    no column with the heading "source" is the target.

    Args:
        langs: Source and target language, as far as they are known.
    """
    by_side = [[place for place, heading in enumerate(headings) if _is_side(heading, names)] for names in SIDES]
    by_language = [_headed([*headings], lang) if lang else [] for lang in langs]
    if len(headings) == 2:
        for side, lang in enumerate(langs):
            if not by_side[side] and len(by_side[1 - side]) == 1:
                by_side[side] = [1 - by_side[1 - side][0]]
            if not by_language[side] and len(by_language[1 - side]) == 1:
                place = 1 - by_language[1 - side][0]
                by_language[side] = [place] if lang is None or _language(headings[place]) is None else []
    for places in (by_side, by_language) if len(headings) == 2 else (by_language, by_side):
        if all(len(of_side) == 1 for of_side in places) and places[0] != places[1]:
            return places[0][0], places[1][0]
    return None


def _begun(path: Path) -> tuple[list[Row], Iterator[Row]]:
    """Return the first rows of a table, at least one, and the others."""
    rows = rows_of(path)
    head = list(islice(rows, 1 + LOOKED_AT))
    if not head:
        raise DataError(f"{path}: a table without rows; begin with headings or with the first pair")
    return head, rows


class _Quotes:
    """Counts rows of a .tsv whose cells stand in quotation marks, as a spreadsheet writes some or all of them."""

    def __init__(self) -> None:
        self.n = self.first = self._n_doubled = 0

    def count(self, line: int, *cells_of_row: str) -> None:
        """Look at the two cells of a row."""
        quoted = [cell[1:-1] for cell in cells_of_row if len(cell) > 1 and cell[0] == cell[-1] == '"']
        if quoted:
            self.n += 1
            self.first = self.first or line
            self._n_doubled += any('""' in text and '"' not in text.replace('""', "") for text in quoted)

    def are_of_a_csv(self, n_rows: int) -> bool:
        """True if a mark inside is written twice, as nobody types it, or if nearly all rows have marks."""
        return self._n_doubled > 0 or self.n > 0.9 * n_rows


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the line number at which each row ends, and its cells."""
    lines = read_lines(path)
    if form_of(path) == ".tsv":
        for number, line in enumerate(lines, start=1):
            yield number, line.split("\t")
        return
    head = list(islice(lines, LOOKED_AT))
    separator = separator_line(head[0])
    n_before = 1 if separator else 0
    csv.field_size_limit(MAX_LINE_BYTES)
    in_order = chain(head[n_before:], lines)
    separator = separator or _separator(head)
    reader = _reader(in_order, separator, has_spaces_before_quotes(head, separator))
    while True:
        first_line = n_before + reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = next((words for part, words in _CSV_ERRORS.items() if part in str(error)), str(error))
            raise DataError(f"{path}:{first_line}: not a row of a .csv: {reason}") from None
        yield n_before + reader.line_num, row


def _reader(lines: Iterable[str], separator: str, skips_spaces: bool) -> Any:
    """Return the rows of the lines of a .csv."""
    text = (f"{line}\n" for line in lines)
    return csv.reader(text, delimiter=separator, strict=True, skipinitialspace=skips_spaces)


def _separator(head: Sequence[str]) -> str:
    """Return the separator by which most of the first rows have the cells of the first row, and more than one."""

    def agreement(separator: str) -> float:
        numbers: list[int] = []
        try:
            skips_spaces = has_spaces_before_quotes(head, separator)
            numbers.extend(len(row) for row in _reader(head, separator, skips_spaces) if row)
        except csv.Error as error:
            if "unexpected end" not in str(error):  # that of a row which goes on below
                return 0.0
        return numbers.count(numbers[0]) / len(numbers) if numbers and numbers[0] > 1 else 0.0

    return max(SEPARATORS, key=agreement)  # of equals the first


def _places(path: Path, head: Sequence[Row], columns: Columns | None) -> tuple[int, int]:
    """Return the numbers of the source and the target column, from 0."""
    first = head[0][1]
    if not first:
        raise DataError(f"{path}:1: the first row has no cell; begin with headings or with the first pair")
    if columns is None and len(first) > 1:
        # of two columns both are text, even where one holds numbers alone
        texts = [place for place in range(len(first)) if len(first) == 2 or _has_words(head, place)]
        named = _named_by_headings(first, texts) if len(head) > 1 else None
        if named is None and len(first) > 2:
            src, tgt = (place + 1 for place in (texts if len(texts) > 1 else (0, 1))[:2])
            raise DataError(
                f"{path}:1: {cells(len(first))} ({_shown(first)}); choose source and target, for example "
                f"--columns {src},{tgt}"
            )
        return named or (0, 1)
    places = []
    for column in columns or ("1", "2"):
        if is_position(column, first, columns or ()):
            places.append(int(column) - 1)
        elif columns is not None and (n := first.count(column)):
            if n > 1:
                raise DataError(f"{path}:1: {n} columns have the heading {column!r}; give their numbers, from 1")
            places.append(first.index(column))
        elif columns is not None and len(alike := _headed(first, column)) == 1:
            places += alike
        elif column.isdecimal():
            raise DataError(f"{path}:1: {cells(len(first))}, so there is no column {column}; tabs part those of a "
                            ".tsv, commas, semicolons or tabs those of a .csv")  # fmt: skip
        else:
            raise DataError(f"{path}:1: no column has the heading {column!r}; the first row is: {_shown(first)}")
    return places[0], places[1]


def _headed(first: list[str], column: str) -> list[int]:
    """Return the columns whose heading is a name but for its case, or names the language of the code."""
    headings = [heading.strip().casefold() for heading in first]
    alike = [place for place, heading in enumerate(headings) if heading == column.strip().casefold()]
    if alike or not is_known(column):
        return alike
    languages = [_language(heading) for heading in first]
    return [place for place, lang in enumerate(languages) if lang and variety(lang) == variety(column)]


def _has_words(head: Sequence[Row], place: int) -> bool:
    """True if a column has letters below its heading, as one of text has and one of numbers has not.

    One with the heading "ID" numbers its rows, perhaps with letters, unless there are spaces: then it is Indonesian.
    """
    below = [row[place] for _, row in head[1:] if len(row) > place and row[place]]
    if head[0][1][place].strip().casefold() == "id":
        return any(" " in cell.strip() for cell in below)
    return any(letter.isalpha() for cell in below or [head[0][1][place]] for letter in cell)


def _named_by_headings(first: list[str], texts: Sequence[int]) -> tuple[int, int] | None:
    """Return the columns of text that the headings name: as source and target, the only two languages, or the first."""
    sides = [[place for place in texts if _is_side(first[place], names)] for names in SIDES]
    if all(len(places) == 1 for places in sides):
        return sides[0][0], sides[1][0]
    languages = [place for place in texts if _language(first[place])]
    if len(languages) == 2 or languages[:2] == [0, 1]:
        src, tgt = languages[:2]
        return (src, tgt) if _has_headings(first, src, tgt, None) else None
    return None


def _has_headings(first: list[str], src: int, tgt: int, columns: Columns | None) -> bool:
    """True if the first row holds headings: the columns were chosen by heading, or it names two languages or sides."""
    if columns is not None and not all(is_position(column, first, columns) for column in columns):
        return True
    return are_headings(first[src].strip(), first[tgt].strip())


def are_headings(*pair: str) -> bool:
    """True if two cells name two languages, or source and target, in either order."""
    languages = [_language(cell) for cell in pair]
    two_languages = all(languages) and variety(languages[0]) != variety(languages[1])
    return two_languages or any(all(map(_is_side, pair, sides)) for sides in (SIDES, SIDES[::-1]))


def _words(heading: str) -> list[str]:
    """Return the words of a heading that may name a language or a side."""
    return [word for word in re.split(r"[\W_]+", heading.casefold()) if word and word not in FILLERS]


def _is_side(heading: str, names: str) -> bool:
    """True if a heading names a side, such as "source", "Source text" or "src_sentence"."""
    words = _words(heading)
    return len(words) == 1 and words[0] in names.split()


def _language(heading: str) -> str | None:
    """Return the code of the language that a heading names, such as "de-AT", "German text" or "Deutsch"; else None."""
    heading = heading.strip()
    if code := code_named(heading):
        return code
    if is_known(heading):
        return heading
    words = _words(heading)
    sides = " ".join(SIDES).split()
    left = [word for word in words if word not in sides]
    if not 0 < len(left) < len(re.split(r"[\W_]+", heading)):
        return None  # nothing but other words, or no word that headings add
    name = " ".join(left)
    return code_named(name) or (name if len(left) == 1 and is_known(name) else None)


def _shown(row: list[str]) -> str:
    """Return the beginning of a row for a message."""
    return ", ".join(cell[:40] for cell in row[:10])
