"""Shards: files of lines (plain, ``.gz``, ``.zst``) or of rows (``.parquet``), each translated into one of its name.

Of a ``.parquet`` file one column is translated, and stands beside the others in the column ``translation``. A cell of
several lines is translated line by line; one that is null stays null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.data.corpus import open_corpus, read_lines_leniently
from dragoman.errors import ConfigError, DataError, DecodeError, not_installed
from dragoman.files import explained, sha256, whole_file
from dragoman.translation.notes import Events, Note
from dragoman.translation.translator import READ_AHEAD, Translator

if TYPE_CHECKING:
    from dragoman.translation.plan import Plan

TRANSLATION = "translation"
"""The column that a ``.parquet`` file gets."""

Tell = Callable[[int], object]
"""Told how many lines of a shard are done."""


@dataclass(frozen=True)
class Shard:
    """A file to translate."""

    name: str  # its path below the folder
    lines: int  # or rows
    sha256: str  # of its bytes


def shard_names(src: Path) -> list[str]:
    """The names of the shards of a folder, those in folders below it too; a file is its own only shard.

    As elsewhere, a name that begins with a dot or an underscore is not data.

    Raises:
        DataError: There is none.
    """
    if src.is_file():
        return [src.name]
    if not src.is_dir():
        raise DataError(f"{src}: no such folder; give a folder of shards (text, .gz, .zst or .parquet), or one of them")
    paths = (path.relative_to(src) for path in src.rglob("*") if path.is_file())
    names = sorted(str(path) for path in paths if not any(part.startswith((".", "_")) for part in path.parts))
    if not names:
        raise DataError(f"{src}: no files in it; give a folder of shards (text, .gz, .zst or .parquet)")
    return names


def is_parquet(name: str) -> bool:
    """Whether a shard is a table."""
    return Path(name).suffix == ".parquet"


def inspect(folder: Path, name: str, column: str | None) -> Shard:
    """Read a shard from end to end: what is damaged is known before anything is translated, and how much there is.

    Args:
        column: The one to translate, of a ``.parquet`` file.

    Raises:
        DataError: It is damaged, or has no such column of text.
    """
    path = folder / name
    if is_parquet(name):
        with _table(path) as table:
            _column(path, table, column)
            n_lines = sum(group.num_rows for group in _row_groups(table))
    else:
        with open_corpus(path) as stream:
            n_lines = sum(1 for _ in read_lines_leniently(stream, str(path)))
    return Shard(name, n_lines, sha256(path))


def translate_shard(
    translator: Translator, plan: Plan, shard: Shard, src: Path, out: Path, column: str | None, tell: Tell
) -> Counter[str]:
    """Translate a shard of the folder ``src`` into one of the folder ``out``, where it appears when it is whole.

    Lines that an interrupted process has translated are kept (module ``translation.resumable``); rows are not.

    Returns:
        How many notes of each kind its translations have; those of kind "memory" are blank.

    Raises:
        DataError: It cannot be read, or is not as it was when it was inspected.
        DragomanError: The translation cannot be written.
    """
    path, to = src / shard.name, out / shard.name
    notes: Counter[str] = Counter()

    def count(note: Note) -> None:
        notes[note.kind] += 1

    events = Events(warn=count, failed=count)
    with explained(to):
        to.parent.mkdir(parents=True, exist_ok=True)
    n_lines: int | None
    if is_parquet(shard.name):
        n_lines = _translate_table(translator, plan, path, to, column, events, tell)
    else:
        n_lines = _translate_lines(translator, plan, path, to, events, notes, tell)
    if n_lines not in (None, shard.lines):
        raise DataError(f"{path}: {n_lines:,} lines where there were {shard.lines:,}: it changes while it is read")
    return notes


def _translate_lines(
    translator: Translator, plan: Plan, path: Path, to: Path, events: Events, notes: Counter[str], tell: Tell
) -> int | None:
    """How many lines there were; None: not known, because some ran out of memory."""
    try:
        events = replace(events, progress=lambda done, read, what: tell(done))
        return translator.translate_file(path, to, plan, events=events)
    except DecodeError:
        if not notes["memory"]:
            raise
        return None


def _translate_table(
    translator: Translator, plan: Plan, path: Path, to: Path, column: str | None, events: Events, tell: Tell
) -> int:
    """Write a table with the translations beside the other columns, row group by row group; the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    with _table(path) as table, explained(to), whole_file(to) as file:
        name = _column(path, table, column)
        schema = table.schema_arrow.append(pa.field(TRANSLATION, pa.string()))
        compression = table.metadata.row_group(0).column(0).compression if table.num_row_groups else "snappy"
        with pq.ParquetWriter(file, schema, compression=compression.replace("UNCOMPRESSED", "NONE")) as writer:
            for group in _row_groups(table):
                made: list[str | None] = []
                for start in range(0, group.num_rows, READ_AHEAD):
                    cells = group[name][start : start + READ_AHEAD].cast(pa.string()).to_pylist()
                    made += _translate_cells(translator, plan, cells, events, n_rows + start)
                    tell(n_rows + len(made))
                writer.write_table(group.append_column(schema.field(TRANSLATION), pa.array(made, pa.string())))
                n_rows += group.num_rows
    return n_rows


def _translate_cells(
    translator: Translator, plan: Plan, cells: Sequence[str | None], events: Events, first: int
) -> list[str | None]:
    """The translation of each cell, line by line."""
    lines = [cell.split("\n") if cell is not None else [] for cell in cells]
    found = iter(translator.translate_planned([line for cell in lines for line in cell], plan, events, first))
    made = ["\n".join(next(found).text for _ in cell) for cell in lines]
    return [text if cell is not None else None for cell, text in zip(cells, made, strict=True)]


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """Open a ``.parquet`` file (``pyarrow.parquet.ParquetFile``); whatever is wrong with its bytes is one line.

    Raises:
        DataError: It is no such file, or damaged, now or where it is read in the body.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ConfigError(not_installed("reading .parquet", "'dragoman[ray]'")) from None
    try:
        with path.open("rb") as file, pq.ParquetFile(file) as table:
            yield table
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (pa.ArrowException, EOFError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{path}: damaged, or not a Parquet file ({said}); get it again") from None


def _row_groups(table: Any) -> Iterator[Any]:
    """The parts of a table, one in memory at a time (``pyarrow.Table``)."""
    for i in range(table.num_row_groups):
        yield table.read_row_group(i)


def _column(path: Path, table: Any, column: str | None) -> str:
    """The column to translate: the one that was named, or the only one of text.

    Raises:
        DataError: There is none, there are several, or the name is that of the translations.
    """
    import pyarrow as pa

    def is_text(kind: Any) -> bool:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)

    schema = table.schema_arrow
    texts = [field.name for field in schema if is_text(field.type)]
    has = f"its columns of text are {', '.join(texts)}" if texts else "it has no column of text"
    if TRANSLATION in schema.names:
        raise DataError(f"{path}: has a column {TRANSLATION} already, where the translations would stand; rename it")
    if column is None and len(texts) != 1:
        raise DataError(f"{path}: which column is to be translated? Give --column; {has}")
    name = texts[0] if column is None else column
    if schema.names.count(name) != 1:
        raise DataError(f"{path}: {'no' if name not in schema.names else 'more than one'} column {name}; {has}")
    if name not in texts:
        raise DataError(f"{path}: column {name} holds {schema.field(name).type}, not text; {has}")
    return name
