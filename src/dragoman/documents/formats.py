"""The list of document formats; a file's suffix chooses the format.

    format_of("report.docx").read(data, DocumentInfo("report.docx"))

To add a format, write a module that follows ``document.Format`` and append it to ``FORMATS``: the command line, the
server and the Python API all read this list.
"""

from __future__ import annotations

from dragoman.documents import gettext, markdown, package, plain, subtitles, table, web, xliff
from dragoman.documents.document import Format

FORMATS: list[Format] = [plain, markdown, web, subtitles, table, gettext, xliff, package]

UNSUPPORTED_SUFFIXES = (".pdf", ".rtf", ".doc", ".ppt", ".xls", ".xlsx", ".ods", ".odp", ".epub")
"""Suffixes of well-known documents that are not text and have no format here."""


def supported_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, such as ``.docx``, in the order of ``FORMATS``."""
    return tuple(suffix for document_format in FORMATS for suffix in document_format.SUFFIXES)


def format_of(name: str) -> Format | None:
    """Return the format that declares the suffix of a file name; None if no format does."""
    return next((candidate for candidate in FORMATS if name.lower().endswith(candidate.SUFFIXES)), None)
