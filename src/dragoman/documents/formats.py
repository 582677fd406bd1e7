"""The list of document formats; a file's suffix chooses the format.

    format_of("report.docx").read(data, DocumentInfo("report.docx"))

To add a format, write a module that follows ``document.Format`` and append it to ``FORMATS``: the command line, the
server and the Python API all read this list. Workers read the documents, so each must be able to import a format that a
program appends: a module, or an object of a class that is made without arguments.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from dragoman.documents import gettext, markdown, package, plain, subtitles, table, web, xliff
from dragoman.documents.document import Format
from dragoman.errors import DataError

FORMATS: list[Format] = [plain, markdown, web, subtitles, table, gettext, xliff, package]

UNSUPPORTED_SUFFIXES = (".pdf", ".rtf", ".doc", ".ppt", ".xls", ".xlsx", ".ods", ".epub")
"""Suffixes of well-known documents that are not text and have no format here."""


def supported_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, such as ``.docx``, in the order of ``FORMATS``."""
    return tuple(suffix for document_format in FORMATS for suffix in document_format.SUFFIXES)


def format_of(name: str) -> Format | None:
    """Return the format that declares the suffix of a file name; None if no format does."""
    return next((candidate for candidate in FORMATS if name.lower().endswith(candidate.SUFFIXES)), None)


def reference_of(name: str) -> str:
    """Return where a worker finds the format of a file name: its module, or ``module:class``.

    Raises:
        DataError: No format declares the suffix.
    """
    chosen = format_of(name)
    if chosen is None:
        supported = ", ".join(supported_suffixes())
        raise DataError(f"{name}: not a document that can be translated; supported are {supported}")
    if isinstance(chosen, ModuleType):
        return chosen.__name__
    return f"{type(chosen).__module__}:{type(chosen).__qualname__}"


def referenced(reference: str) -> Format:
    """Return the format of a reference."""
    module, _, name = reference.partition(":")
    made: Format = importlib.import_module(module)
    return getattr(made, name)() if name else made
