"""Documents translated: one, or a folder of them, with a report of what was found and what was left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.documents import SUFFIXES, gettext, markdown, package, plain, subtitles, table, web, xliff
from dragoman.documents.document import Asked, Document, Format, Left
from dragoman.documents.units import Translations, says_something, units_of, write
from dragoman.errors import ConfigError, DataError, DecodeError
from dragoman.files import explained, refuse_an_input, write_bytes
from dragoman.languages.known import is_unspaced
from dragoman.translation.assemble import Translation
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.options import TranslateOptions, takes
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

FORMATS: tuple[Format, ...] = (plain, markdown, web, subtitles, table, gettext, xliff, package)

MOST_BYTES = 1 << 28
"""Of a file."""

NOT_MADE = frozenset({"memory", "dropped"})
"""Kinds of notes where there is no translation."""


@dataclass(frozen=True)
class Report:
    """What became of a document's segments: each is translated, or left and named."""

    found: int
    translated: int
    left: tuple[Left, ...] = ()
    notes: tuple[Note, ...] = ()  # of translations; each says of which text

    def __str__(self) -> str:
        said = f"{self.translated:,} of {self.found:,} segments translated"
        whys = Counter(each.why for each in self.left)
        return "; ".join([said, *(f"{n:,} left: {why}" for why, n in whys.items())])

    def __add__(self, other: Report) -> Report:
        return Report(
            self.found + other.found, self.translated + other.translated, self.left + other.left,
            self.notes + other.notes,
        )  # fmt: skip


@dataclass(frozen=True)
class Opened:
    """A document that was read, and waits for the translations of its texts."""

    document: Document
    asked: Asked

    @property
    def texts(self) -> list[str]:
        """Every text to translate, once."""
        return list(dict.fromkeys(unit.plain for unit in units_of(self.document.parts) if says_something(unit.plain)))

    @property
    def has_tags(self) -> bool:
        """Whether words must be followed to their places."""
        return any(tag.share is None for unit in units_of(self.document.parts) for tag in unit.tags)

    def finish(self, found: Mapping[str, Translation]) -> tuple[bytes, Report]:
        """The file with its translations, and the report.

        Args:
            found: The translation of each of ``texts``.
        """
        missing = {text: _why_missing(one) for text, one in found.items() if _why_missing(one)}
        made = Translations(
            {text: one for text, one in found.items() if text not in missing},
            is_unspaced(self.asked.src_lang), is_unspaced(self.asked.tgt_lang),
        )  # fmt: skip
        missing |= dict.fromkeys(self.document.reject(made), "its translation would change the markup")
        made = replace(made, of={text: one for text, one in made.of.items() if text not in missing})
        segments = [unit.plain for unit in units_of(self.document.parts) if unit.plain in found]
        left = [*self.document.left, *(Left(text, missing[text]) for text in segments if text in missing)]
        notes = [replace(note, where=_short(text)) for text, one in found.items() for note in one.notes]
        content = self.document.save(lambda parts: write(parts, made))
        n_found = len(segments) + len(self.document.left)
        return content, Report(n_found, n_found - len(left), tuple(left), tuple(notes))


def _why_missing(one: Translation) -> str:
    if any(note.kind in NOT_MADE for note in one.notes):
        return "out of memory"
    return "" if one.text.strip() else "the model gave an empty translation"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def format_of(name: str) -> Format | None:
    """The format of a file, by its suffix; None: it is no document."""
    return next((each for each in FORMATS if name.lower().endswith(each.SUFFIXES)), None)


def open_document(data: bytes, asked: Asked) -> Opened:
    """Read a document.

    Raises:
        DataError: Its suffix is not known, or it is not what its suffix says.
    """
    found = format_of(asked.name)
    if found is None:
        raise DataError(f"{asked.name}: no document that can be translated: {', '.join(SUFFIXES)} can")
    return Opened(found.read(data, asked), asked)


@takes(TranslateOptions)
def translate_document(
    translator: Translator, src: Path | str, out: Path | str, options: TranslateOptions | Plan | None = None, *,
    columns: Sequence[str] = (), events: Events = QUIET, **changes: Any,
) -> Report:  # fmt: skip
    """Translate a document, or a folder of documents, into another of the same shape; what is no text keeps its bytes.

    Args:
        translator: Who translates.
        src: A file; its suffix names its format (``SUFFIXES``). Of a folder every file, and the folders in it.
        out: The file, or the folder, to write; it has the same suffix.
        options: As for ``Translator.translate``.
        columns: The columns of a table that are translated, by their headings.
        events: Who is told of warnings and progress.

    Returns:
        How many segments were found and translated, and which were left, and why.

    Raises:
        DataError: A file cannot be read, or is not of its format; nothing of it is written.
        ConfigError: An option is unknown or impossible.
    """
    asked_for = TranslateOptions.of(options.options if isinstance(options, Plan) else options, changes)
    try:
        plan = translator.plan(replace(asked_for, alignments=True))
    except ConfigError:
        plan = translator.plan(asked_for)  # what else is wrong is refused here
        if events.warn is not None:
            events.warn(Note("alignment", "this engine has no alignments: tags and styles are placed by position"))
    if not isinstance(plan.options.prefix, str):
        raise DecodeError("a prefix for each line is for translate(texts): give one prefix for a document")
    src, out = Path(src), Path(out)
    refuse_an_input(out, src)
    report = Report(0, 0)
    files = list(_pairs(src, out))

    def opened_from(path: Path) -> Opened:
        return open_document(_content(path), Asked(str(path), plan.src_lang, plan.tgt_lang, tuple(columns)))

    for path, _ in files[1:]:
        opened_from(path)  # what cannot be read is refused before minutes of translating
    for path, to in files:
        opened = opened_from(path)
        texts = opened.texts
        told = replace(events, warn=None, failed=lambda note: None, progress=events.progress)
        found = dict(zip(texts, translator.translate_planned(texts, plan, told), strict=True))
        content, one = opened.finish(found)
        to.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(to, content)
        report += one
        for note in one.notes:
            if events.warn is not None:
                events.warn(replace(note, where=f"{path}: {note.where}"))
    return report


def _pairs(src: Path, out: Path) -> Iterator[tuple[Path, Path]]:
    """What is read, and what is written for it.

    Raises:
        DataError: They do not fit, or there is no document.
    """
    if src.is_dir():
        files = [path for path in sorted(src.rglob("*")) if path.is_file()]
        found = [path for path in files if format_of(path.name) is not None]
        if not found:
            raise DataError(f"{src}: has no document in it; these can be translated: {', '.join(SUFFIXES)}")
        if out.resolve().is_relative_to(src.resolve()):
            raise DataError(f"{out}: lies in the folder that is read: give another --out")
        if out.exists() and not out.is_dir():
            raise DataError(f"{out}: a folder of documents becomes a folder, and this is a file")
        yield from ((path, out / path.relative_to(src)) for path in found)
        return
    if src.suffix.lower() != out.suffix.lower():
        raise DataError(f"{out}: must end in {src.suffix}, as {src} does: a document keeps its format")
    yield src, out


def _content(path: Path) -> bytes:
    with explained(path):
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path}: more than {MOST_BYTES:,} bytes, too many for a document")
        return path.read_bytes()
