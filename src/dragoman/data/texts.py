"""Parallel text in whatever form it was given: two files, a table, a translation memory, or several of these."""

from __future__ import annotations

import glob
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from dragoman.config import OneFile, PairOfFiles, TextFiles
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import read_pairs
from dragoman.data.tables import read_table, table_languages
from dragoman.data.tmx import read_tmx, tmx_languages
from dragoman.errors import ConfigError
from dragoman.languages.codes import language_of, primary
from dragoman.languages.known import is_known

FORMS = (
    "two text files (train.en train.de), their common beginning (train, or train en de), a table (.tsv, .csv) or a "
    "translation memory (.tmx); each also .gz or .zst"
)

logger = logging.getLogger(__name__)

Langs = tuple[str | None, str | None]


def read_texts(texts: Sequence[TextFiles]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of all, one after the other.

    Raises:
        DataError: One of them cannot be read or breaks a rule of its form.
    """
    return chain.from_iterable(map(read_one, texts))


def read_one(text: TextFiles) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one."""
    if isinstance(text, PairOfFiles):
        return read_pairs(text.src, text.tgt)
    if form_of(text.file) == ".tmx":
        return read_tmx(text.file, text.columns or tmx_languages(text.file))
    return read_table(text.file, text.columns)


def paths_of(texts: Sequence[TextFiles]) -> list[Path]:
    """All files, each once."""
    return list(dict.fromkeys(path for text in texts for path in files_of(text)))


def files_of(text: TextFiles) -> tuple[Path, ...]:
    """Its two files, or its one."""
    return (text.src, text.tgt) if isinstance(text, PairOfFiles) else (text.file,)


def languages_of(texts: Sequence[TextFiles]) -> Langs:
    """Source and target language, as names of files, headings or a memory say; None where nothing does.

    Raises:
        ConfigError: Two of them say different ones.
        DataError: A table or a memory cannot be read, or is a pipe.
    """
    found: list[str | None] = [None, None]
    where: list[TextFiles | None] = [None, None]
    for text in texts:
        for side, lang in enumerate(_languages(text)):
            old = found[side]
            if lang is not None and old is not None and _differ(lang, old):
                raise ConfigError(
                    f"{_named(text)}: {lang} where {_named(where[side])} has {old}; give one pair of languages in one "
                    "direction, of a table or a translation memory by its columns; for one model of several target "
                    "languages write tgt_lang in each entry of data.train"
                )
            if found[side] is None:
                found[side], where[side] = lang, text
    return found[0], found[1]


def _languages(text: TextFiles) -> Langs:
    if isinstance(text, PairOfFiles):
        return language_of(text.src), language_of(text.tgt)
    refuse_a_pipe(text.file)  # its text is still to be read
    if form_of(text.file) == ".tmx":
        return text.columns or tmx_languages(text.file)
    return table_languages(text.file, text.columns)


def _differ(lang: str, other: str) -> bool:
    """Whether two endings are two languages; what is no code that is known here may be anything."""
    return primary(lang) != primary(other) and is_known(lang.lower()) and is_known(other.lower())


def _named(text: TextFiles | None) -> str:
    return " and ".join(map(str, files_of(text))) if text is not None else ""


def form_of(path: Path) -> str:
    """``.tsv``, ``.csv`` or ``.tmx`` of a file that holds both sides by its name, else nothing."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    return suffixes[-1] if suffixes and suffixes[-1] in (".tsv", ".csv", ".tmx") else ""


def texts_named(words: Sequence[Path | str], columns: tuple[str, str] | None = None) -> list[TextFiles]:
    """What somebody means who names texts one after the other, each in one of ``FORMS``.

    Args:
        columns: Of each table and memory.

    Raises:
        ConfigError: Something is none of the forms, or a side is missing; what can be given is said.
    """
    found: list[TextFiles] = []
    rest = list(map(Path, words))
    while rest:
        path = rest.pop(0)
        if form_of(path):
            found.append(OneFile(file=path, columns=columns))
        elif path.exists() and not path.is_dir():
            if rest and not rest[0].exists():
                raise ConfigError(f"{rest[0]}: no such file, which was to be the other side of {path}")
            if not rest or form_of(rest[0]):
                raise ConfigError(
                    f"{path}: one side alone, or no known form of text (a configuration ends in .yaml); give {FORMS}"
                )
            found.append(PairOfFiles(src=path, tgt=rest.pop(0)))
        else:
            found.append(_begins_with(path, rest))
    return found


def _begins_with(path: Path, rest: list[Path]) -> PairOfFiles:
    """The two files that begin with ``path`` and end with a language; two languages are taken from ``rest``."""
    ends: dict[str, Path] = {}
    for file in sorted(path.parent.glob(f"{glob.escape(path.name)}.*")):
        if lang := language_of(file):
            ends.setdefault(lang, file)
    if len(rest) >= 2 and all(str(lang) in ends for lang in rest[:2]):
        return PairOfFiles(src=ends[str(rest.pop(0))], tgt=ends[str(rest.pop(0))])
    if len(ends) == 2 and not (rest and str(rest[0]) in ends):
        (src, first), (tgt, second) = ends.items()
        logger.info("%s to %s; for the other direction give %s %s %s", first, second, path, tgt, src)
        return PairOfFiles(src=first, tgt=second)
    if len(ends) < 2 and path.is_dir():
        raise ConfigError(f"{path} is a folder; give {FORMS}")
    if len(ends) < 2:
        raise ConfigError(f"{path}: no such file{''.join(f', only {file}' for file in ends.values())}; give {FORMS}")
    raise ConfigError(f"{path}: there is {', '.join(ends)}; say from which to which: {path} {' '.join(list(ends)[:2])}")


def refuse_stray_columns(columns: tuple[str, str] | None, texts: Iterable[TextFiles]) -> None:
    """Refuse columns where no text has any.

    Raises:
        ConfigError: There is neither a table nor a memory.
    """
    if columns is not None and not any(isinstance(text, OneFile) for text in texts):
        raise ConfigError("--columns belongs to a table or a translation memory, and none was given")
