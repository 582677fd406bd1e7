"""Line breaks inside a translated paragraph: those of its source, at the nearest spaces of the translation.

The model reads a paragraph as one line. Its translation gets the line ends of the source, with the markers of quotes
and lists behind them, at the spaces nearest to their places. A line never begins with what Markdown reads as a block.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from dragoman.documents.markdown.inline import SPACE, Wrapped, ends_of_untranslated, tokens_of
from dragoman.documents.units import Part, Unit

WRAPPING_SIGNS = _BEGIN, _END = "\ue002", "\ue003"
"""Characters of the private use area around a unit that gets line breaks; a text that has them itself gets none."""

_SPACE_ENTITY = re.compile(rf" ?(&#?\w+;){SPACE} ?")
_MARKED = re.compile(f"{_BEGIN}(\\d+)_([^{_BEGIN}{_END}]*){_END}")
_BEGINS_A_BLOCK = re.compile(r"[-+*#>=:|`~!?{<$/\\;%(^]|\d+[.)]|\[[\^@!]|import\b|export\b")


@dataclass(frozen=True)
class Wrapper:
    """Writes the line breaks of a document's paragraphs."""

    wrapped: Mapping[int, Wrapped]
    """By ``id`` of a unit: its line breaks."""
    references: Mapping[str, Any]
    mdx: bool

    def marked(self, parts: Sequence[Part]) -> list[Part]:
        """Return parts with marks around the units that have line breaks."""
        marked: list[Part] = []
        for part in parts:
            if isinstance(part, Unit) and id(part) in self.wrapped:
                marked += [f"{_BEGIN}{id(part)}_", part, _END]
            else:
                marked.append(part)
        return marked

    def written(self, text: str) -> str:
        """Return the text of marked parts with their line breaks, without marks."""
        return _MARKED.sub(self._broken, _SPACE_ENTITY.sub(r"\1", text))

    def _broken(self, match: re.Match[str]) -> str:
        text, own = match[2], self.wrapped.get(int(match[1]))
        if own is None or "\n" in text or "\r" in text:  # not translated
            return text
        tokens, spans = tokens_of(text, dict(self.references), self.mdx)
        code = [(tokens[i].meta["at"][0], end) for i, end in ends_of_untranslated(tokens, text, 0).items()]
        hidden = sorted(code + [(span.start, span.end) for span in spans if span.kind != "text" or span.name == "url"])
        places = []
        for token in tokens:
            if token.type == "text":
                first, last = token.meta["at"]
                places += [i for i in range(first, last) if text[i] == " "]
        starts, ends = [start for start, _ in hidden], list(accumulate((end for _, end in hidden), max))
        allowed = []
        for place in places:
            i = bisect_left(starts, place + 1) - 1
            if (i < 0 or place >= ends[i]) and 0 < place < len(text) - 1:
                allowed.append(place)
        return _with_breaks(text, allowed, own)


def _with_breaks(text: str, places: Sequence[int], own: Wrapped) -> str:
    pieces, at, first = [], 0, 0
    for offset, between in own.breaks:
        wanted = offset if len(text) == own.size else round(offset * len(text) / max(1, own.size))
        i = max(first, bisect_left(places, wanted))
        if i < len(places) and places[i] == wanted and len(text) == own.size:
            chosen = i
        else:
            near = [k for k in range(max(first, i - 4), min(len(places), i + 4)) if _may_end_here(text, places[k])]
            if not near:
                continue
            chosen = min(near, key=lambda k: abs(places[k] - wanted))
        pieces += [text[at : places[chosen]].rstrip(" "), between]
        at, first = places[chosen] + 1, chosen + 1
        while at < len(text) and text[at] == " ":
            at += 1
        first = bisect_left(places, at)
    return "".join([*pieces, text[at:]])


def _may_end_here(text: str, place: int) -> bool:
    behind = text[place:].lstrip(" ")[:12] if len(text) - place < 2_000 else text[place : place + 40].lstrip(" ")
    return not _BEGINS_A_BLOCK.match(behind)
