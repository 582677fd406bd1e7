"""Checks a translated document with the reader of its format: nothing of the source's markup may be missing.

losses(source, result)    # two documents; [Untranslated("<em> (2 times)", "the translation lacks ...")]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from dragoman.documents.document import Document, Untranslated
from dragoman.documents.units import Part, units_of

MOST_NAMED = 20
"""Largest number of missing pieces that are named one by one."""

Compared = Literal["markup", "segments"]
COMPARED: tuple[Compared, ...] = ("markup", "segments")
"""Everything that is compared. A format that keeps less of it, as it writes the translation elsewhere, says so."""

STYLE_SIGNS = frozenset(["*", "**", "***", "_", "__", "___", "<em>", "</em>", "<strong>", "</strong>"])
"""Signs of emphasis in Markdown, which are written in either way."""


def losses(source: Document, result: Document, compared: Collection[Compared] = COMPARED) -> list[Untranslated]:
    """Return the pieces of a document's markup that its translation lacks, and the number of segments that it lacks.

    A piece is a tag, or a word between units of text. Their order may change, and the result may have more of them.
    """
    missing = _markup(source.parts) - _markup(result.parts) if "markup" in compared else Counter[str]()
    why = "the translation lacks this piece of the document: look at the place"
    named = [Untranslated(f"{piece} ({n} times)" if n > 1 else piece, why) for piece, n in missing.items()]
    if len(named) > MOST_NAMED:
        n_more = sum(list(missing.values())[MOST_NAMED:])
        named = [*named[:MOST_NAMED], Untranslated(f"{n_more:,} more pieces", why)]
    n_empty = _n_with_text(source) - _n_with_text(result)
    if "segments" in compared and n_empty > 0:
        named.append(Untranslated(f"{n_empty:,} segments", "they are empty in the translation, or run into others"))
    return named


def _markup(parts: Sequence[Part]) -> Counter[str]:
    """Return the numbers of tags and of words in all that is not text to translate."""
    pieces: list[str] = []

    def collect(parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            pieces.append(" ")
            for tag in part.tags:
                collect(tag.parts)
                pieces.append(" ")

    collect(parts)
    source = "".join(pieces).replace("&lt;", " &lt;").replace("&gt;", "&gt; ")  # a page inside XML
    counts = Counter(source.translate(_APART).split())
    for sign in STYLE_SIGNS:
        del counts[sign]
    return counts


_APART = str.maketrans({"<": " <", ">": "> ", "\0": " ", **{sign: f" {sign} " for sign in '"{}#'}})
"""Signs between which a piece ends; braces and ``#`` are those of an ICU message, whose branches are text."""


def _n_with_text(document: Document) -> int:
    return sum(1 for unit in units_of(document.parts) if unit.plain)
