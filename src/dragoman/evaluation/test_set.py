"""Lines of a test set: read from files, or given as lists of texts.

src, refs = sides(["A dog runs."], ["Ein Hund rennt."])    # or paths: sides("test.en", "test.de")
lines, references = read(src, refs)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.data.corpus import read_lines, read_pairs
from dragoman.errors import ConfigError, DataError
from dragoman.languages.codes import language_of, primary
from dragoman.languages.known import is_known
from dragoman.ready import pinned_run

Lines = Path | str | Sequence[str]
"""One side of a test set: the path of a file, or texts in memory."""
References = Path | str | Sequence[Path | str] | Sequence[Sequence[str]]
"""File of references, or several; or a text for each line, or several such lists."""

MACHINE_TRANSLATION = "mt"
"""Ending of files of translations that is a code too, of Maltese: WMT names its translations so."""


def is_file(lines: object) -> bool:
    """True if a side of a test set is named by a path."""
    return isinstance(lines, Path | str)


def pinned_side(side: Any) -> Any:
    """Return the path of a run or a file made absolute; anything else as it is."""
    return pinned_run(side) if is_file(side) else side


def references_of(ref: References | None, in_memory: bool) -> list[Lines]:
    """Return each set of references: the path of a file, or texts.

    Args:
        in_memory: True if the other side is a list of texts: then a list of strings holds texts, not paths.

    Raises:
        ConfigError: There is none.
    """
    if ref is None:
        raise ConfigError("ref is missing: give the references, a file or a list of texts, as ref=...")
    if isinstance(ref, Path | str):
        return [pinned_side(ref)]
    entries = list(ref)
    if not entries:
        raise ConfigError("ref must name at least one file of references, got none")
    if not all(isinstance(entry, str) for entry in entries):
        return [pinned_side(entry) if isinstance(entry, Path | str) else list(entry) for entry in entries]
    texts = [str(entry) for entry in entries]
    is_text = in_memory or (any(" " in text.strip() for text in texts) and not any(_exists(text) for text in texts))
    return [texts] if is_text else [pinned_side(text) for text in texts]


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


def read(src: Lines, refs: Sequence[Lines], name: str = "src") -> tuple[list[str], list[list[str]]]:
    """Return the lines of a text and of its references; each file is read once, as it may be a pipe.

    Args:
        name: Name of a list ``src`` in messages.

    Raises:
        DataError: There are no lines, or the numbers of lines differ.
    """
    names = [named(src, name), *(named(ref, "ref" if len(refs) == 1 else f"ref {i}") for i, ref in enumerate(refs, 1))]
    if isinstance(src, Path | str) and isinstance(refs[0], Path | str):
        pairs = list(read_pairs(src, refs[0]))
        sides = [[line for line, _ in pairs], [reference for _, reference in pairs]]
    else:
        sides = [_texts(side) for side in (src, refs[0])]
    sides += [_texts(ref) for ref in refs[1:]]
    lines, *references = sides
    if not lines:
        raise DataError(f"{names[0]}: there is nothing to evaluate: no lines")
    for other, own in zip(names[1:], references, strict=True):
        if len(own) != len(lines):
            kinds = ["lines" if is_file(side) else "texts" for side in (src, refs[names.index(other) - 1])]
            raise DataError(
                f"{names[0]} has {len(lines):,} {kinds[0]} but {other} has {len(own):,}: each must have a reference "
                "for each line"
            )
    if lines in references and sum("\t" in line for line in lines) > len(lines) / 2:
        raise DataError(
            f"{names[0]} is a table, and source and references are the same: give each column as a file of its own, "
            "such as cut -f1 TABLE > test.en; cut -f2 TABLE > test.de"
        )
    return lines, references


def named(lines: Lines, name: str) -> str:
    """Return the path of a file, or the name of a list of texts."""
    return f"{lines}" if is_file(lines) else name


def language_of_side(lines: Lines) -> str | None:
    """Return the language that the name of a file says; None for texts in memory."""
    return language_of(Path(lines)) if isinstance(lines, Path | str) else None


def language_of_translations(lines: Lines, refs: Sequence[Lines]) -> str | None:
    """Return the language that the name of a file of translations says; ``.mt`` is one if references are Maltese."""
    lang = language_of_side(lines)
    if lang is None or lang.lower() != MACHINE_TRANSLATION:
        return lang
    return lang if any(primary(language_of_side(ref)) == MACHINE_TRANSLATION for ref in refs) else None


def language_of_references(refs: Sequence[Lines], translations: str | None) -> str | None:
    """Return the language of references: the first that their names say, else that of the translations.

    A code that nothing is known of, such as ``dev``, counts where no name has another.
    """
    langs = [lang for lang in (*map(language_of_side, refs), translations) if lang is not None]
    return next((lang for lang in langs if is_known(lang)), next(iter(langs), None))


def _texts(lines: Lines) -> list[str]:
    return list(read_lines(lines)) if isinstance(lines, Path | str) else list(lines)
