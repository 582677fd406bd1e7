"""Tasks that parse documents and texts with tags: top-level functions for a worker, since any file may be hostile.

Their arguments and results are bytes and plain values (``budget.Values``). A worker keeps nothing between two calls:
``finished`` parses the document again. Nothing here may import torch, which would cost each worker seconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from dragoman.budget import Budget
from dragoman.documents import checking, markup
from dragoman.documents.document import Document, DocumentInfo, DocumentOptions, Untranslated
from dragoman.documents.formats import check_options, reference_of, referenced
from dragoman.documents.tags.spaces import SPECIAL
from dragoman.documents.units import AlignedText, Lost, Part, Translations, Unit, is_like_a_tag, units_of, write
from dragoman.errors import DataError
from dragoman.languages.known import is_unspaced
from dragoman.translation.keeping.protected import has_letters

DOCUMENT = Budget(memory=4 << 30, cpu_s=300, wall_s=1200.0)
"""Limits of opening a document, and of writing its translation, from the command line and Python."""

SAMPLE = 100
"""Number of texts by which the language of a document is detected."""

with contextlib.suppress(ImportError):  # loaded when a worker starts, and not within the budget of its first document
    import lxml.etree  # noqa: F401


def texts(data: bytes, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``texts``: every text of a document to translate, once, in document order.

    Args:
        data: Bytes of the file.
        info: See ``fields_of``.

    Raises:
        DataError: The bytes are not of the format.
    """
    return {"texts": _texts(_document(data, info))}


def survey(data: bytes, info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server must know before it accepts a document: its first texts, and the characters of all.

    Raises:
        DataError: See ``texts``.
    """
    all_texts = _texts(_document(data, info))
    return {"sample": all_texts[:SAMPLE], "n_chars": sum(map(len, all_texts))}


def finished(
    data: bytes, info: Mapping[str, Any], translations: Sequence[Any], untranslated: Sequence[Any]
) -> dict[str, Any]:
    """Return the translated file.

    Args:
        data, info: See ``texts``.
        translations: (text, translation, alignment) of each text.
        untranslated: (text, reason) of each text without a usable translation.

    Returns:
        ``content``, the bytes; ``found``, the number of segments; ``left``, (text, reason) of each untranslated one;
        ``read_as``, see ``Document``.
    """
    document, about = _document(data, info), _info(info)
    reasons: dict[str, str] = dict(untranslated)
    aligned = _aligned(translations)
    usable = Translations(aligned, is_unspaced(about.src_lang), is_unspaced(about.tgt_lang))
    rejected = document.reject(usable)
    reasons |= dict.fromkeys(rejected, document.why_rejected)
    usable = replace(usable, by_text={text: line for text, line in aligned.items() if text not in rejected})
    segments = [unit for unit in units_of(document.parts) if unit.plain in aligned or unit.plain in reasons]
    concerns = document.concerns(lambda parts: write(parts, usable))
    tag_like = [unit for unit in units_of(document.parts) if is_like_a_tag(unit.plain)]
    reasons |= {unit.plain: "it looks like a tag" for unit in tag_like if unit.plain not in aligned}
    # A caller that has read the document in another way, such as another version, may lack some of its texts.
    treated = aligned.keys() | reasons.keys()
    missing = [unit for unit in units_of(document.parts) if unit.plain not in treated and has_letters(unit.plain)]
    reasons |= dict.fromkeys((unit.plain for unit in missing), "no translation was made")
    known = {unit.plain for unit in segments}
    segments += [unit for unit in [*tag_like, *missing] if unit.plain not in known]
    left = [Untranslated(unit.shown, reasons[unit.plain]) for unit in segments if unit.plain in reasons]
    lost: list[Lost] = []
    content = document.save(lambda parts: write(parts, usable, lost))
    concerns = (*concerns, *_losses(document, content, info))
    left = [*document.left, *left, *(Untranslated(unit.text, unit.why) for unit in lost), *concerns]
    return {
        "content": content, "found": len(segments) + len(document.left) + len(concerns),
        "left": [[segment.text, segment.why] for segment in left], "read_as": document.read_as,
    }  # fmt: skip


def _losses(document: Document, content: bytes, info: Mapping[str, Any]) -> list[Untranslated]:
    """Read a translated file again, and return what it lacks of its source."""
    compared = getattr(referenced(info["format"]), "COMPARED", checking.COMPARED)
    try:
        return checking.losses(document, _document(content, info), compared)
    except DataError as error:
        return [Untranslated(str(error), "the translation cannot be read again: look at it before you use it")]


def fields_of(info: DocumentInfo) -> dict[str, Any]:
    """Return the argument ``info`` of the tasks: the fields of a ``DocumentInfo``, and where its format is.

    Raises:
        DataError: No format declares the suffix.
        ConfigError: The format does not read an option.
    """
    reference = reference_of(info.name)
    check_options([info.name], info.changed)
    return {**asdict(info), "format": reference}


def _document(data: bytes, info: Mapping[str, Any]) -> Document:
    """Read a document in the format that its suffix names."""
    return referenced(info["format"]).read(data, _info(info))


def _info(fields: Mapping[str, Any]) -> DocumentInfo:
    options = DocumentOptions(**fields["options"])
    return DocumentInfo(fields["name"], fields["src_lang"], fields["tgt_lang"], tuple(fields["columns"]), options)


def _texts(document: Document) -> list[str]:
    return list(dict.fromkeys(unit.plain for unit in units_of(document.parts) if has_letters(unit.plain)))


# --- texts with tags --------------------------------------------------------------------------------------------------


def tagged_texts(sources: Sequence[str], kind: markup.Kind, elements: Mapping[str, Any]) -> dict[str, Any]:
    """Return the units of texts with tags.

    Args:
        sources: The texts.
        kind: Their markup.
        elements: Lists of elements, by the names of ``markup.parse``.

    Returns:
        ``units``, the plain text of each unit of all texts; ``counts``, the number of units of each text; ``tagged``,
        true if any unit has tags, or spaces that need an alignment to return to their places.
    """
    units = [_units(markup.parse(source, kind, **elements)) for source in sources]
    return {
        "units": [unit.plain for own in units for unit in own], "counts": [len(own) for own in units],
        "tagged": any(unit.tags or SPECIAL.search(unit.text) for own in units for unit in own),
    }  # fmt: skip


def tagged_translations(
    sources: Sequence[str], kind: markup.Kind, elements: Mapping[str, Any], translations: Sequence[Any],
    languages: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Return ``texts``: texts with their units translated.

    Args:
        sources, kind, elements: See ``tagged_texts``.
        translations: (text, translation, alignment) of each unit.
        languages: Source and target.

    Raises:
        LookupError: A unit has no translation.
    """
    aligned = _aligned(translations)
    usable = Translations(aligned, is_unspaced(languages[0]), is_unspaced(languages[1]))
    texts = []
    for source in sources:
        parts = markup.parse(source, kind, **elements)
        if any(unit.plain not in aligned for unit in _units(parts)):
            raise LookupError("a unit of a text has no translation: the text was cut into other units before")
        texts.append(write(parts, usable))
    return {"texts": texts}


def _units(parts: Sequence[Part]) -> list[Unit]:
    return [unit for unit in units_of(parts) if unit.plain]


def _aligned(translations: Sequence[Any]) -> dict[str, AlignedText]:
    """Return translations by their texts; two spaces together, which no text has that a model reads, become one."""
    return {
        text: AlignedText(_single_spaced(translation), links and tuple((src, tgt) for src, tgt in links))
        for text, translation, links in translations
    }


def _single_spaced(text: str) -> str:
    while "  " in text:
        text = text.replace("  ", " ")
    return text
