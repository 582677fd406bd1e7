"""Documents that keep their shape: text units out of a file, and translations back into it.

A format is one file here, which keeps the ``Protocol`` ``document.Format``: it cuts a file into what stays as it is and
units of text. Each unit is translated alone, wherever it stands, so that the same sentence has the same translation in
every format.
"""

from __future__ import annotations

SUFFIXES = (
    ".txt", ".md", ".markdown", ".html", ".htm", ".xhtml", ".srt", ".vtt", ".csv", ".tsv", ".po", ".pot", ".xliff",
    ".xlf", ".docx", ".pptx", ".odt",
)  # fmt: skip
"""Of every format; here, so that what only asks for a suffix loads none of them."""

NO_TEXT = (".pdf", ".rtf", ".doc", ".ppt", ".xls", ".xlsx", ".ods", ".odp", ".epub")
"""Of documents that are neither text nor known here."""
