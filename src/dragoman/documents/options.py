"""Options of document formats, declared once: the command line, Python and HTTP are made from the declarations.

    options = FormatOptions(line_length=42, reading_speed=17)
    info = DocumentInfo("film.srt", "en", "de", options=options.for_formats())

Formats receive the plain record ``document.DocumentOptions``, so that the workers that read files start fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.documents.document import DocumentOptions
from dragoman.options import Options, option, option_group


@option_group
class FormatOptions(Options):
    """Options of document formats; each concerns the formats that declare it in ``OPTIONS``."""

    set_lang: bool = option(
        False, "Documents", "Write the target language where a page declares its language, as in <html lang>."
    )
    front_matter: bool = option(False, "Documents", "Translate title and description in the front matter of Markdown.")
    line_length: int | None = option(
        None, "Documents", "Largest number of columns in a line of subtitles, such as 42.", ge=10, le=1000
    )
    reading_speed: float | None = option(
        None, "Documents", "Largest reading speed of subtitles in characters per second, such as 17.", gt=0, le=1000
    )

    def for_formats(self) -> DocumentOptions:
        """Return the options as formats receive them."""
        return DocumentOptions(**self.changed())

    def changed(self) -> Mapping[str, Any]:
        """Return the options that have not their default, by name."""
        defaults = FormatOptions()
        return {
            name: getattr(self, name) for name in self.names() if getattr(self, name) != getattr(defaults, name)
        }  # fmt: skip
