"""Tables and escaped text in Markdown, for what is made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; ``head`` names the columns, with bars between."""
    columns = head.split("|")
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines)


def linked(text: str) -> str:
    """Return the text with its addresses as links."""
    return re.sub(r"(?<![<(])https?://[^\s)>]*[^\s)>.,;:]", lambda address: f"<{address[0]}>", text)


def escaped(text: str) -> str:
    """Return a text as Markdown that shows it: what looks like HTML or emphasis is meant as it is."""
    return linked(re.sub(r"([<>*_\[\]])", r"\\\1", text))
