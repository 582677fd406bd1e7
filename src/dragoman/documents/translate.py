"""Translate a document, or a folder of documents, and report the segments that stayed untranslated.

report = translate_document(translator, "report.docx", "bericht.docx")
print(report)  # 118 of 120 segments translated; 2 left: ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.budget import run_within
from dragoman.data.sides import doubt
from dragoman.documents import opening
from dragoman.documents.document import DocumentInfo, Untranslated
from dragoman.documents.folder import files_of
from dragoman.documents.formats import check_options, options_for
from dragoman.documents.opening import DOCUMENT, fields_of
from dragoman.documents.options import FormatOptions
from dragoman.errors import ConfigError, DataError, DecodeError
from dragoman.files import check_output_in_new_folder, explained, pinned, refuse_an_input, write_output
from dragoman.options import takes
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.glossary import glossary_file
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.quality import Quality
from dragoman.translation.translator import Translator

MOST_BYTES = 1 << 28
"""Largest accepted file in bytes."""

MOST_DOUBTFUL = 5
"""Largest number of files of a folder that are named because they look like another language."""

NO_TRANSLATION = frozenset({"memory", "dropped"})
"""Kinds of notes on texts that were not translated."""


@dataclass(frozen=True)
class Report:
    """Counts of a document's segments, the untranslated segments, and notes on the translations."""

    found: int
    translated: int
    left: tuple[Untranslated, ...] = ()
    notes: tuple[Note, ...] = ()  # ``where`` is the beginning of the text, "" for the whole document
    terms: frozenset[str] = frozenset()  # source terms of the glossary that were found
    skipped: Mapping[str, int] = field(default_factory=dict)  # files of a folder that are no documents, by suffix
    qualities: Mapping[Quality, int] = field(default_factory=dict)  # number of different texts of each quality
    files: Mapping[str, Report] = field(default_factory=dict)  # reports of the documents of a folder, by path in it

    def __str__(self) -> str:
        counts = f"{self.translated:,} of {self.found:,} segments translated" if self.found else "no text to translate"
        reasons = Counter(segment.why for segment in self.left)
        lines = [counts, *(f"{n:,} left: {why}" for why, n in reasons.items())]
        if self.skipped:
            n_by_suffix = ", ".join(f"{n:,} {suffix or 'without a suffix'}" for suffix, n in self.skipped.items())
            n = sum(self.skipped.values())
            which = "1 file skipped, which is no document" if n == 1 else f"{n:,} files skipped, which are no documents"
            lines.append(f"{which}: {n_by_suffix}")
        return "; ".join(lines)

    def __add__(self, other: Report) -> Report:
        return Report(
            self.found + other.found, self.translated + other.translated, self.left + other.left,
            self.notes + other.notes, self.terms | other.terms, Counter(self.skipped) + Counter(other.skipped),
            Counter(self.qualities) + Counter(other.qualities),
            {**self.files, **other.files},
        )  # fmt: skip


@dataclass(frozen=True)
class Opened:
    """A document that a worker has read, and that waits for the translations of its texts."""

    data: bytes
    info: DocumentInfo
    texts: list[str]
    """Every text to translate, once, in document order."""

    def finish(self, translations: Mapping[str, Translation]) -> tuple[bytes, Report]:
        """Return the bytes of the translated file, and the report.

        Args:
            translations: The translation of each of ``texts``.
        """
        task = finishing(self.data, self.info, translations)
        return finished_report(run_within(DOCUMENT, self.info.name, opening.finished, **task), translations)


def open_document(data: bytes, info: DocumentInfo) -> Opened:
    """Read a document, in a worker with limits, in the format that its suffix names.

    Raises:
        DataError: The suffix is unknown, the bytes are not of its format, or reading them exceeds ``DOCUMENT``.
    """
    return Opened(data, info, run_within(DOCUMENT, info.name, opening.texts, data=data, info=fields_of(info))["texts"])


def finishing(data: bytes, info: DocumentInfo, translations: Mapping[str, Translation]) -> dict[str, Any]:
    """Return the arguments of ``opening.finished``."""
    reasons = {
        text: why for text, line in translations.items() if (why := why_missing(line.text, is_lost(line)))
    }  # fmt: skip
    usable = [line for line in translations.items() if line[0] not in reasons]
    return {
        "data": data, "info": fields_of(info), "untranslated": [[text, why] for text, why in reasons.items()],
        "translations": [[text, translation.text, translation.alignment] for text, translation in usable],
    }  # fmt: skip


def finished_report(result: Mapping[str, Any], translations: Mapping[str, Translation]) -> tuple[bytes, Report]:
    """Return the bytes of a translated file, and the report, from the result of ``opening.finished``."""
    left = tuple(Untranslated(text, why) for text, why in result["left"])
    notes = [replace(note, where=_short(text)) for text, line in translations.items() for note in line.notes]
    if result["read_as"]:
        notes.insert(0, Note("input", f"read as {result['read_as']}; the translation is written in UTF-8"))
    terms = frozenset(term for line in translations.values() for term in line.terms)
    qualities = Counter(line.quality for line in translations.values() if line.quality is not None)
    return result["content"], Report(
        result["found"], result["found"] - len(left), left, tuple(notes), terms, qualities=qualities
    )


def is_lost(translation: Translation) -> bool:
    """Return True if a text was not translated, for want of memory."""
    return any(note.kind in NO_TRANSLATION for note in translation.notes)


def why_missing(translation: str, is_lost: bool) -> str:
    """Return why a text has no usable translation; "" if it has one."""
    if is_lost:
        return "out of memory"
    return "" if translation.strip() else "the model gave an empty translation"


def _short(text: str) -> str:
    """Return the first 60 characters of a text, for messages."""
    return text if len(text) <= 60 else f"{text[:57]}..."


@takes(FormatOptions, TranslateOptions)
def translate_document(
    translator: Translator, src: Path | str, out: Path | str, options: TranslateOptions | Plan | None = None, *,
    columns: Sequence[str] = (), events: Events = QUIET, **changes: Any,
) -> Report:  # fmt: skip
    """Translate a document, or a folder of documents; all but the text keeps its bytes.

    Args:
        translator: The model.
        src: A document, whose suffix names its format (``formats.FORMATS``); or a folder, with all documents below it.
        out: The file to write, with the same suffix; or the folder.
        options: As for ``Translator.translate``.
        columns: Headings of the table columns to translate.
        changes: Options by name: those of ``options``, and those of formats (``FormatOptions``), such as ``set_lang``.
        events: Callbacks for warnings and progress.

    Returns:
        The numbers of segments found and translated, and the untranslated segments with their reasons.

    Raises:
        DataError: A file cannot be read or is not of its format; it is not written.
        ConfigError: An option is unknown, cannot be combined with another, or has no effect on these files.
    """
    format_options = FormatOptions.taken_from(changes)
    requested = TranslateOptions.of(options.options if isinstance(options, Plan) else options, changes)
    try:
        plan = translator.plan(replace(requested, alignments=True))
    except ConfigError:
        plan = translator.plan(requested)  # raises if the reason was anything but the alignments
        if events.warn is not None:
            events.warn(Note("alignment", "this engine has no alignments: tags and styles are placed by position"))
    if not isinstance(plan.options.prefix, str):
        raise DecodeError("a prefix for each line is for translate(texts): give one prefix for a document")
    src, out = pinned(src), pinned(out)
    refuse_an_input(out, src)
    report = Report(0, 0)
    chosen = files_of(src, out)
    files, report = chosen.pairs, replace(report, skipped=chosen.skipped)
    glossary = glossary_file(requested.glossary)
    for _, to in files:
        check_output_in_new_folder(to, glossary)
    for link in chosen.links:
        if events.warn is not None:
            events.warn(Note("input", "a link to a folder or out of it, which is not followed", f"{link}"))

    info = DocumentInfo(f"{src}", plan.src_lang, plan.tgt_lang, tuple(columns), format_options.for_formats())
    check_options([path.name for path, _ in files], info.changed)

    def opened_from(path: Path) -> Opened:
        return open_document(_content(path), options_for(f"{path}", info))

    # Read all documents first: a bad one is refused before minutes of translating. Only one is held in memory.
    for path, _ in files[1:]:
        opened_from(path)
    # Warnings are given below with the name of the file; a text that runs out of memory is reported, not raised.
    text_events = replace(events, warn=None, failed=lambda note: None)
    n_doubtful = 0
    for path, to in files:
        opened = opened_from(path)
        texts = opened.texts
        doubtful = doubt(path, texts, plan.src_lang, f"{translator.run or 'the model'} translates from")
        n_doubtful += doubtful is not None
        if doubtful is not None and events.warn is not None and n_doubtful <= MOST_DOUBTFUL:
            more = "; further files with such text are not named" if n_doubtful == MOST_DOUBTFUL else ""
            events.warn(Note("language", f"{doubtful}{more}"))
        translations = dict(zip(texts, translator.translate_planned(texts, plan, text_events), strict=True))
        content, file_report = opened.finish(translations)
        with explained(to):
            to.parent.mkdir(parents=True, exist_ok=True)
        write_output(to, content)
        report += replace(file_report, files={str(path.relative_to(src)): file_report} if src.is_dir() else {})
        for note in file_report.notes:
            if events.warn is not None:
                events.warn(replace(note, where=f"{path}: {note.where}" if note.where else f"{path}"))
    return report


def _content(path: Path) -> bytes:
    """Read the bytes of a file."""
    with explained(path):
        if path.stat().st_size > MOST_BYTES:
            raise DataError(f"{path}: more than {MOST_BYTES:,} bytes, too many for a document")
        return path.read_bytes()
