"""Parallel text in any form: two files, a table, a translation memory, or several of these.

texts = texts_named(["train", "en", "de"])  # train.en and train.de
for src, tgt in read_texts(texts): ...
"""

from __future__ import annotations

import contextlib
import glob
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from dragoman.config import OneFile, PairOfFiles, TextFiles
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import lines_of, read_pairs
from dragoman.data.tables import read_table, table_headings, table_languages
from dragoman.data.text_names import form_of
from dragoman.data.tmx import read_tmx, tmx_languages, tmx_varieties
from dragoman.errors import ConfigError, DataError, as_command
from dragoman.files import as_path
from dragoman.languages.codes import language_of, variety
from dragoman.languages.known import is_known
from dragoman.languages.mixups import name_of, named_otherwise

FORMS = (
    "two text files (train.en train.de), their common beginning (train, or train en de), a table (.tsv, .csv) or a "
    "translation memory (.tmx); each also .gz or .zst"
)

logger = logging.getLogger(__name__)

Langs = tuple[str | None, str | None]
"""Source and target language; None: unknown."""


def read_texts(texts: Sequence[TextFiles]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of all texts, text by text.

    Raises:
        DataError: A text cannot be read or breaks a rule of its form.
    """
    return chain.from_iterable(map(read_one, texts))


def read_one(text: TextFiles) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one text.

    Raises:
        ConfigError: It is one file, and neither a table nor a translation memory.
    """
    if isinstance(text, PairOfFiles):
        return read_pairs(text.src, text.tgt)
    _refuse_other_forms(text.file)
    if form_of(text.file) == ".tmx":
        return read_tmx(text.file, text.columns or tmx_varieties(text.file))
    return read_table(text.file, text.columns)


def _refuse_other_forms(path: Path) -> None:
    if not form_of(path):
        raise ConfigError(f"{path}: no known form of text with both sides; give {FORMS}{_table_without_suffix(path)}")


def paths_of(texts: Sequence[TextFiles]) -> list[Path]:
    """Return the files of all texts, each once."""
    return list(dict.fromkeys(path for text in texts for path in files_of(text)))


def files_of(text: TextFiles) -> tuple[Path, ...]:
    """Return the two files of a text, or its one file."""
    return (text.src, text.tgt) if isinstance(text, PairOfFiles) else (text.file,)


def files_shown(text: TextFiles | None) -> str:
    """Return the names of the files of a text, for messages; "" for no text."""
    return "" if text is None else " and ".join(map(format, files_of(text)))


def languages_of(texts: Sequence[TextFiles]) -> Langs:
    """Return source and target language by file names, headings or translation memories; None if not named.

    Raises:
        ConfigError: Two texts have different languages.
        DataError: A table or a translation memory cannot be read, or is a pipe.
    """
    langs: list[str | None] = [None, None]
    named_by: list[TextFiles | None] = [None, None]
    for text in texts:
        for side, lang in enumerate(_languages(text)):
            old = langs[side]
            if lang is not None and old is not None and _differ(lang, old):
                raise ConfigError(
                    f"{files_shown(text)}: {lang} where {files_shown(named_by[side])} has {old}; give one pair of "
                    "languages in one direction, of a table or a translation memory by its columns; for one model of "
                    "several target languages write tgt_lang in each entry of data.train"
                )
            if langs[side] is None:
                langs[side], named_by[side] = lang, text
    return langs[0], langs[1]


def _languages(text: TextFiles) -> Langs:
    """Return the languages of one text."""
    if isinstance(text, PairOfFiles):
        return language_of(text.src), language_of(text.tgt)
    refuse_a_pipe(text.file)  # a pipe could not be read again for its text
    _refuse_other_forms(text.file)
    if form_of(text.file) == ".tmx":
        return text.columns or tmx_languages(text.file)
    return table_languages(text.file, text.columns)


def refuse_reversed(text: TextFiles, langs: Langs) -> None:
    """Check that a text is not read in the other direction than that of ``langs``.

    Raises:
        ConfigError: By its file names, its headings or its header, its source is the target of ``langs``, and the other
            way round.
    """
    if None in langs or not all(path.is_file() for path in files_of(text)):
        return
    named = _languages(text)
    if _varieties(named) != _varieties(langs[::-1]) or len({*_varieties(langs)}) < 2:
        return
    if isinstance(text, PairOfFiles):
        raise ConfigError(
            f"{files_shown(text)}: {named[0]} to {named[1]} by their names, where {langs[0]} to {langs[1]} is wanted; "
            "swap the two files, correct src_lang and tgt_lang, or rename the files if their names mislead"
        )
    is_memory = form_of(text.file) == ".tmx"
    tgt, src = (text.columns or named) if is_memory else table_headings(text.file, text.columns)
    raise ConfigError(
        f"{text.file}: read as {named[0]} to {named[1]}, where {langs[0]} to {langs[1]} is wanted; give "
        f"{as_command('--columns', f'{src},{tgt}')} (in a configuration, columns: [{src}, {tgt}])"
    )


def _varieties(langs: Langs) -> tuple[str | None, ...]:
    return tuple(variety(lang) if lang else None for lang in langs)


def refuse_other_languages(text: TextFiles, langs: Langs, expected_by: str, advice: str) -> None:
    """Check that a table or a translation memory names no other languages than these; None: any.

    Raises:
        ConfigError: It does; the message ends with ``advice``, in which ``{}`` stands for its languages.
    """
    if isinstance(text, PairOfFiles) or not text.file.is_file():
        return
    named = _languages(text)
    for lang, wanted, word in zip(named, langs, ("from", "into"), strict=True):
        if lang is not None and wanted is not None and named_otherwise(Path(f"text.{lang}"), wanted) is not None:
            both = (own or other for own, other in zip(named, langs, strict=True))
            raise ConfigError(
                f"{text.file}: {name_of(lang)}, but {expected_by} {word} {name_of(wanted)}: give text in "
                f"{name_of(wanted)}, or {advice.format(*both)}"
            )


def _differ(lang: str, other: str) -> bool:
    """True if two file name endings are known codes of different languages; unknown endings may mean anything."""
    return variety(lang) != variety(other) and is_known(lang.lower()) and is_known(other.lower())


def texts_named(words: Sequence[Path | str], columns: tuple[str, str] | None = None) -> list[TextFiles]:
    """Return the texts that arguments of the command line name, each in one of ``FORMS``.

    Args:
        words: Such as ``["train", "en", "de"]``, or ``["a.en", "a.de", "b.tmx"]`` for two texts.
        columns: Columns of each table, or languages of each translation memory.

    Raises:
        ConfigError: An argument has none of the forms, or one side is missing.
    """
    texts: list[TextFiles] = []
    remaining = list(map(as_path, words))
    while remaining:
        path = remaining.pop(0)
        if form_of(path):
            texts.append(OneFile(file=path, columns=columns))
        elif path.exists() and not path.is_dir():
            if remaining and not remaining[0].exists():
                raise ConfigError(f"{remaining[0]}: no such file, which was to be the other side of {path}")
            if not remaining or form_of(remaining[0]):
                valid = f"; for two validation files write --valid A --valid {path}" if texts else ""
                raise ConfigError(
                    f"{path}: one side alone, or no known form of text (a configuration ends in .yaml); give {FORMS}"
                    f"{valid}{_table_without_suffix(path)}"
                )
            texts.append(PairOfFiles(src=path, tgt=remaining.pop(0)))
        else:
            texts.append(_begins_with(path, remaining))
    return texts


def _table_without_suffix(path: Path) -> str:
    """Return the end of a refusal that names the suffix which a text with tabs in its first line needs; else ""."""
    with contextlib.suppress(DataError):
        if path.is_file() and "\t" in next(lines_of(path), ""):  # a pipe or a device may never end its first line
            return f"; {path} has tabs: if it is a table, name it {path.stem}.tsv"
    return ""


def _begins_with(path: Path, remaining: list[Path]) -> PairOfFiles:
    """Return the two files whose names begin with ``path`` and end with a language code.

    Two language codes at the start of ``remaining`` choose the files, and are removed from it. For ``train`` these are
    ``train.en`` and ``train.de`` even beside ``train.bt.en``; alone, ``train.clean.en`` and ``train.clean.de`` are too.

    Raises:
        ConfigError: There are fewer than two such files, or several and none is chosen.
    """
    by_middle: dict[str, dict[str, Path]] = {}
    for file in sorted(path.parent.glob(f"{glob.escape(path.name)}.*")):
        if lang := language_of(file):
            middle, _, _ = f".{file.name.removeprefix(f'{path.name}.')}.".rpartition(f".{lang}.")
            by_middle.setdefault(middle, {}).setdefault(lang, file)
    langs = list(dict.fromkeys(lang for files in by_middle.values() for lang in files))
    codes = [str(word) for word in remaining[:2]]
    if len(codes) == 2 and set(codes) <= set(langs):
        ends = _of_one_set(path, by_middle, codes)
        del remaining[:2]
        return PairOfFiles(src=ends[codes[0]], tgt=ends[codes[1]])
    ends = _of_one_set(path, by_middle, [])
    if len(ends) == 2 and not (remaining and str(remaining[0]) in ends):
        (src, first), (tgt, second) = ends.items()
        logger.info("%s to %s; for the other direction give %s %s %s", f"{first}", f"{second}", path, tgt, src)
        return PairOfFiles(src=first, tgt=second)
    if len(ends) < 2 and path.is_dir():
        raise ConfigError(f"{path} is a folder; give {FORMS}")
    if len(ends) < 2:
        raise ConfigError(f"{path}: no such file{''.join(f', only {file}' for file in ends.values())}; give {FORMS}")
    raise ConfigError(f"{path}: there is {', '.join(ends)}; say from which to which: {path} {' '.join(list(ends)[:2])}")


def _of_one_set(path: Path, by_middle: Mapping[str, Mapping[str, Path]], codes: Sequence[str]) -> Mapping[str, Path]:
    """Return the files that belong together: of two languages, or of all.

    Args:
        by_middle: The files by language, for each text between the beginning of a name and its language.
        codes: The two languages; none for all.

    Raises:
        ConfigError: More than one set of files may be meant.
    """
    exact, wanted = by_middle.get("", {}), set(codes)
    pairs = [files for files in by_middle.values() if (files.keys() >= wanted if codes else len(files) > 1)]
    if pairs and all((wanted or files.keys()) <= exact.keys() for files in pairs):
        return exact
    if len(pairs) == 1:
        return pairs[0]
    langs = codes or dict.fromkeys(lang for files in by_middle.values() for lang in files)
    by_lang = {lang: [files[lang] for files in by_middle.values() if lang in files] for lang in langs}
    if len(by_lang) > 1 and max(map(len, by_lang.values())) > 1:
        every = ", ".join(f"{file}" for files in by_lang.values() for file in files)
        raise ConfigError(f"{path}: several files begin so ({every}); name the two")
    return {lang: files[0] for lang, files in by_lang.items()}


def refuse_stray_columns(columns: tuple[str, str] | None, texts: Iterable[TextFiles]) -> None:
    """Check that columns are given only with a text that has columns.

    Raises:
        ConfigError: None of the texts is a table or a translation memory.
    """
    if columns is not None and not any(isinstance(text, OneFile) for text in texts):
        raise ConfigError("--columns belongs to a table or a translation memory, and none was given")
