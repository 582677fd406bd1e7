"""Parts of pages that the code decides, written into the pages, so that they are read without building the site.

    <!-- made: settings -->
    | setting | default | ...
    <!-- end of settings -->

``docs.site.tables.PARTS`` makes what stands between the two lines. ``python -m docs.site reference`` writes it again;
the tests and the build of the site name a page that says something else than the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from docs.site.problems import BrokenDocsError, place

DOCS = Path(__file__).resolve().parents[1]
MADE = re.compile(r"^<!-- made: (\w+) -->\n(?:(?:(?!<!-- (?:made|end)).*\n)*<!-- end of \1 -->\n)?", re.MULTILINE)
COMMAND = "python -m docs.site reference"


def pages() -> list[Path]:
    """Return the pages that have a part which the code decides, in either language."""
    found = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.relative_to(DOCS).parts)
    return [path for path in found if MADE.search(path.read_text(encoding="utf-8"))]


def renewed(text: str, page: str = "") -> str:
    """Return the text of a page with its parts as the code has them now.

    Raises:
        BrokenDocsError: Nothing makes a part, or something of it has no description.
    """
    return MADE.sub(
        lambda part: f"<!-- made: {part[1]} -->\n\n{_make(page, text, part)}\n\n<!-- end of {part[1]} -->\n", text
    )


def without_parts(text: str) -> str:
    """Return the text of a page without its parts; a line stays where each was."""
    return MADE.sub(lambda part: f"<!-- made: {part[1]} -->\n", text)


def _make(page: str, text: str, part: re.Match[str]) -> str:
    """Return one part, as the code has it now."""
    from docs.site.tables import PARTS  # here, since it imports all of dragoman

    if part[1] not in PARTS:
        where = place(page, text, part.start())
        raise BrokenDocsError([f"{where}: nothing makes {part[1]}: there are {', '.join(PARTS)}"])
    return _made_once(PARTS[part[1]])


@cache
def _made_once(make: Callable[[], str]) -> str:
    """Return what a function makes; both languages and several pages may have the same part."""
    return make()


def write() -> None:
    """Write the parts of all pages again."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        path.write_text(renewed(text, path.relative_to(DOCS.parent).as_posix()), encoding="utf-8")
