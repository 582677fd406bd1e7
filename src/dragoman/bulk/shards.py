"""Shards: files of lines (plain, ``.gz``, ``.zst``) or of rows (``.parquet``), each translated into one of its name.

One column of a ``.parquet`` file is translated; the translations go into an added column ``translation``. A cell of
several lines is translated line by line; a null cell stays null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import open_corpus, read_lines_leniently
from dragoman.data.text_names import is_plain_text
from dragoman.errors import ConfigError, DataError, DecodeError, not_installed
from dragoman.files import below, explained, sha256, whole_file
from dragoman.translation.notes import Events, Note
from dragoman.translation.translator import READ_AHEAD, Translator

if TYPE_CHECKING:
    from dragoman.translation.plan import Plan

TRANSLATION = "translation"
"""Name of the column that is added to a ``.parquet`` file."""

ReportLines = Callable[[int], object]
"""Called with the number of lines of a shard that are done."""


@dataclass(frozen=True)
class Shard:
    """A file to translate."""

    name: str  # path below the folder
    lines: int  # rows, for a table
    sha256: str  # of its bytes


@dataclass(frozen=True)
class Folders:
    """The folder of shards, the folder of translations, and the column to translate of ``.parquet`` files."""

    src: Path
    out: Path
    column: str | None = None


@dataclass(frozen=True)
class _Task:
    """All that is needed to translate one file into another."""

    translator: Translator
    plan: Plan
    src: Path
    out: Path
    column: str | None
    events: Events
    report: ReportLines


def shard_names(src: Path) -> list[str]:
    """Return the names of all shards in a folder and the folders below it, sorted; a file is its own only shard.

    A name that begins with a dot or an underscore is not a shard, as is the custom in data folders. What is no file, or
    a link to a folder, stands among them: it is refused when it is read.

    Raises:
        DataError: There is no shard.
        DragomanError: A folder in it cannot be read.
    """
    if src.is_file():
        return [src.name]
    if not src.is_dir():
        raise DataError(f"{src}: no such folder; give a folder of shards (text, .gz, .zst or .parquet), or one of them")
    names = sorted(str(path.relative_to(src)) for path in below(src, hidden=(".", "_")))
    if not names:
        raise DataError(f"{src}: no files in it; give a folder of shards (text, .gz, .zst or .parquet)")
    return names


def is_parquet(name: str) -> bool:
    """True if a shard is a table."""
    return Path(name).suffix == ".parquet"


def inspect(folder: Path, name: str, column: str | None) -> Shard:
    """Read a shard to its end: counts its lines, and finds damage before anything is translated.

    Args:
        column: The column to translate of a ``.parquet`` file.

    Raises:
        DataError: The shard is damaged, has no such column of text, or its suffix is not one of text.
    """
    path = folder / name
    refuse_a_pipe(path)
    if not is_parquet(name) and not is_plain_text(name):
        raise DataError(
            f"{path}: {path.suffix} is no suffix of plain text: convert it to lines of text, and name it .txt"
        )
    if is_parquet(name):
        with _table(path) as table:
            _column(path, table, column)
            n_lines = sum(group.num_rows for group in _row_groups(table))
    else:
        with open_corpus(path) as stream:
            n_lines = sum(1 for _ in read_lines_leniently(stream, str(path)))
    return Shard(name, n_lines, sha256(path))


def translate_shard(
    translator: Translator, plan: Plan, shard: Shard, folders: Folders, report: ReportLines
) -> Counter[str]:
    """Translate a shard into a file of the same name, which appears when it is complete.

    Lines that an interrupted process has translated are kept (module ``translation.resumable``); rows of a table are
    translated again.

    Returns:
        The number of notes of each kind on its translations; lines with a note of kind "memory" are blank.

    Raises:
        DataError: The shard cannot be read, or has changed since it was inspected.
        DragomanError: The translation cannot be written.
    """
    src, out = folders.src / shard.name, folders.out / shard.name
    notes: Counter[str] = Counter()

    def count(note: Note) -> None:
        notes[note.kind] += 1

    with explained(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    task = _Task(translator, plan, src, out, folders.column, Events(warn=count, failed=count), report)
    n_lines = _translate_table(task) if is_parquet(shard.name) else _translate_lines(task, notes)
    if n_lines not in (None, shard.lines):
        raise DataError(f"{src}: {n_lines:,} lines where there were {shard.lines:,}: it changes while it is read")
    return notes


def _translate_lines(task: _Task, notes: Counter[str]) -> int | None:
    """Translate a file of lines and return their number; None if unknown because some ran out of memory."""
    try:
        events = replace(task.events, progress=lambda done, read, what: task.report(done))
        return task.translator.translate_file(task.src, task.out, task.plan, events=events)
    except DecodeError:
        if not notes["memory"]:
            raise
        return None


def _translate_table(task: _Task) -> int:
    """Write a table with the column of translations added, row group by row group; return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    with _table(task.src) as table, explained(task.out), whole_file(task.out) as file:
        name = _column(task.src, table, task.column)
        schema = table.schema_arrow.append(pa.field(TRANSLATION, pa.string()))
        compression = table.metadata.row_group(0).column(0).compression if table.num_row_groups else "snappy"
        with pq.ParquetWriter(file, schema, compression=compression.replace("UNCOMPRESSED", "NONE")) as writer:
            for group in _row_groups(table):
                translations: list[str | None] = []
                for start in range(0, group.num_rows, READ_AHEAD):
                    cells = group[name][start : start + READ_AHEAD].cast(pa.string()).to_pylist()
                    translations += _translate_cells(task, cells, n_rows + start)
                    task.report(n_rows + len(translations))
                writer.write_table(group.append_column(schema.field(TRANSLATION), pa.array(translations, pa.string())))
                n_rows += group.num_rows
    return n_rows


def _translate_cells(task: _Task, cells: Sequence[str | None], first: int) -> list[str | None]:
    """Return the translation of each cell, line by line; None for a null cell.

    Args:
        first: Number of the first cell in the table, for notes.
    """
    lines = [cell.split("\n") if cell is not None else [] for cell in cells]
    all_lines = [line for cell in lines for line in cell]
    results = iter(task.translator.translate_planned(all_lines, task.plan, task.events, first))
    texts = ["\n".join(next(results).text for _ in cell) for cell in lines]
    return [text if cell is not None else None for cell, text in zip(cells, texts, strict=True)]


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """Open a ``.parquet`` file as a ``pyarrow.parquet.ParquetFile``."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError(not_installed("reading .parquet", "'dragoman[ray]'")) from None
    try:
        with path.open("rb") as file, pq.ParquetFile(file) as table:
            yield table
    except OSError as error:
        if error.errno is None or error.strerror is None:  # Arrow's own, of bytes that it cannot read
            raise _damaged(path, error) from None
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the file and its permissions") from None
    except (pa.ArrowException, EOFError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())
    return DataError(f"{path}: damaged, or not a Parquet file ({reason}); get it again")


def _row_groups(table: Any) -> Iterator[Any]:
    """Yield the row groups of a table as ``pyarrow.Table``, one in memory at a time."""
    for i in range(table.num_row_groups):
        yield table.read_row_group(i)


def _column(path: Path, table: Any, column: str | None) -> str:
    """Return the name of the column to translate: ``column``, or the only column of text."""
    import pyarrow as pa

    def is_text(kind: Any) -> bool:
        """True for the Arrow types of strings, also as a dictionary."""
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)

    schema = table.schema_arrow
    texts = [field.name for field in schema if is_text(field.type)]
    available = f"its columns of text are {', '.join(texts)}" if texts else "it has no column of text"
    if TRANSLATION in schema.names:
        raise DataError(f"{path}: has a column {TRANSLATION} already, the name of the translations; rename it")
    if column is None and len(texts) != 1:
        raise DataError(f"{path}: which column is to be translated? Give --column; {available}")
    name = texts[0] if column is None else column
    if schema.names.count(name) != 1:
        raise DataError(f"{path}: {'no' if name not in schema.names else 'more than one'} column {name}; {available}")
    if name not in texts:
        raise DataError(f"{path}: column {name} holds {schema.field(name).type}, not text; {available}")
    return name
