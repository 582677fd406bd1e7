"""The list of document formats; a file's suffix chooses the format.

    format_of("report.docx").read(data, DocumentInfo("report.docx"))

To add a format, write a module that follows ``document.Format`` and append it to ``FORMATS``: the command line, the
server and the Python API all read this list. Workers read the documents, so each must be able to import a format that a
program appends: a module, or an object of a class that is made without arguments.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import PurePath
from types import ModuleType

from dragoman.data.text_names import COMPRESSED, is_plain_text
from dragoman.documents import gettext, markdown, plain, subtitles, table, web, xliff
from dragoman.documents.document import DocumentInfo, DocumentOptions, Format
from dragoman.documents.office import package
from dragoman.errors import ConfigError, DataError

FORMATS: list[Format] = [plain, markdown, web, subtitles, table, gettext, xliff, package]

_MESSAGES = "to .po or .xliff, for example with the Translate Toolkit"
_MARKUP = "to .md or .html, for example with pandoc"
_ADVICE = {
    ".docx": ".pdf .rtf .doc .wps .pages", ".pptx": ".ppt .pps .key",
    ".csv": ".xls .xlsx .xlsm .ods .numbers .parquet .jsonl .ndjson", ".odt": ".fodt .sxw",
    _MESSAGES: ".json .arb .properties .strings .stringsdict .xcstrings .xml .resx .ts .yml .yaml .php .ini .toml .js",
    _MARKUP: ".rst .adoc .asciidoc .tex .ipynb .org .textile .epub .fb2 .mdx",
    ".srt": ".ass .ssa .ttml .dfxp .sbv .sub .smi .stl .lrc", ".xliff": ".sdlxliff .mqxliff .mxliff .xlz .tmx .idml",
    ".po": ".mo", ".html": ".mht .mhtml",
}  # fmt: skip
"""Formats to convert to, each with the suffixes of files that are to be converted."""


def supported_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, such as ``.docx``, in the order of ``FORMATS``."""
    return tuple(suffix for document_format in FORMATS for suffix in document_format.SUFFIXES)


def format_of(name: str) -> Format | None:
    """Return the format that declares the suffix of a file name; None if no format does."""
    return next((candidate for candidate in FORMATS if name.lower().endswith(candidate.SUFFIXES)), None)


def _advice(suffix: str) -> str:
    """Return the formats that a file of this suffix can be converted to; "" if none is known."""
    return next((target for target, suffixes in _ADVICE.items() if suffix in suffixes.split()), "")


def not_supported(name: str) -> DataError:
    """Return the refusal of a file that is neither plain text nor of a format."""
    suffix = PurePath(name).suffix
    advice = _advice(suffix.lower())
    supported = ", ".join(supported_suffixes())
    convert = f"convert it {'' if advice.startswith('to ') else 'to '}{advice}; " if advice else ""
    return DataError(
        f"{name}: {suffix} is neither plain text nor a supported document: {convert}supported are {supported}"
    )


def options_of(name: str) -> tuple[str, ...]:
    """Return the names of the options that the format of a file name reads."""
    return getattr(format_of(name), "OPTIONS", ())


def check_options(names: Sequence[str], options: Iterable[str]) -> None:
    """Check that each option is read by the format of at least one of the files.

    Args:
        names: Names of the files.
        options: Names of the options that differ from their defaults.

    Raises:
        ConfigError: No format of the files reads an option.
    """
    for option in options:
        if not any(option in options_of(name) for name in names):
            suffixes = [suffix for suffix in supported_suffixes() if option in options_of(suffix)]
            where = names[0] if len(names) == 1 else "these files"
            raise ConfigError(f"{option} is for {', '.join(suffixes)} and has no effect on {where}: leave it out")


def options_for(name: str, info: DocumentInfo) -> DocumentInfo:
    """Return ``info`` for one file of several: with its name, and without the options that its format does not read."""
    unread = set(info.changed) - set(options_of(name))
    narrowed = replace(info.options, **{option: _DEFAULTS[option] for option in unread - {"columns"}})
    return replace(info, name=name, columns=() if "columns" in unread else info.columns, options=narrowed)


_DEFAULTS = asdict(DocumentOptions())


def reference_of(name: str) -> str:
    """Return where a worker finds the format of a file name: its module, or ``module:class``.

    Raises:
        DataError: No format declares the suffix, and plain text does not have it.
    """
    is_text = is_plain_text(name) and not name.lower().endswith(COMPRESSED)
    chosen = format_of(name) or (plain if is_text else None)
    if chosen is None:
        raise not_supported(name)
    if isinstance(chosen, ModuleType):
        return chosen.__name__
    return f"{type(chosen).__module__}:{type(chosen).__qualname__}"


def referenced(reference: str) -> Format:
    """Return the format of a reference."""
    module, _, name = reference.partition(":")
    made: Format = importlib.import_module(module)
    return getattr(made, name)() if name else made
