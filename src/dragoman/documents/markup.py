"""Text with HTML or XML tags: what is translated, and what is not.

A unit is the text between two tags that end a sentence (a paragraph's, a cell's; in XML only those named, and line
ends); inside it, inline tags are taken out with their places, as ``units`` has them. Only translated text is rewritten,
with ``&``, ``<`` and ``>`` escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from typing import Literal

from dragoman.documents.units import Part, Tag, Unit

Kind = Literal["html", "xml"]

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?[A-Za-z].*?(?:\?>|\Z)|<![A-Za-z][^<>]*>"
    r"|</?[A-Za-z_:][^\s/>\"'<]*(?:\s+(?:\"[^\"]*\"|'[^']*'|[^\"'<>])*)?/?>",
    re.DOTALL,
)
"""A comment, CDATA, a processing instruction (all of which may have no end), a doctype or a tag; a ``<`` that begins
none of these is text."""

_NAME = re.compile(r"</?([A-Za-z_:][^\s/>\"'<]*)")
_NOT_TRANSLATED = re.compile(r"\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*[\"'][^\"']*\bnotranslate\b", re.IGNORECASE)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPAQUE = _names("script style code pre kbd samp var textarea svg math noscript template")
"""HTML elements whose content is no text to translate."""

_BLOCKS = _names(
    "address article aside base blockquote body br caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe "
    "legend li link main menu meta nav ol optgroup option p section summary table tbody td tfoot th thead "
    "title tr ul"
)
"""HTML elements that end a sentence; all others, unknown ones too, are inside one."""

_VOID = _names("area base br col embed hr img input link meta source track wbr")


def parse(
    source: str, kind: Kind, *, ignored: Collection[str] = (), splitting: Collection[str] = (),
    non_splitting: Collection[str] = (), attributes: bool = False,
) -> list[Part]:  # fmt: skip
    """Cut a text with tags into units.

    Args:
        source: Any text: what is no tag is text, so nothing is refused.
        ignored: Elements whose content is left as it is; they stay in their sentence.
        splitting, non_splitting: Elements that end a sentence, or do not, whatever they usually do.
        attributes: Whether attributes that a reader sees, such as ``alt``, are translated too.
    """
    units = _Units(kind)
    skipped: list[str] = []  # the open elements that are not translated, innermost last
    opaque = ""  # what they hold so far
    at = 0
    for match in _TOKEN.finditer(source):
        before, tag, at = source[at : match.start()], match[0], match.end()
        named = _NAME.match(tag)
        name = named[1].lower() if named else ""
        closes, alone = tag.startswith("</"), tag.endswith("/>") or not named or (kind == "html" and name in _VOID)
        if skipped:
            opaque += before + tag
            if closes and name == skipped[-1]:
                skipped.pop()
            elif not closes and not alone and name == skipped[0]:
                skipped.append(name)
            if not skipped:
                units.inside(opaque, tag=opaque)
            continue
        units.text(before)
        hidden = name in ignored or bool(_NOT_TRANSLATED.search(tag)) or (kind == "html" and name in _OPAQUE)
        own = _attributes(tag) if attributes and not hidden and not closes else [tag]
        if hidden and not closes and not alone:
            if _ends_sentence(name, kind, splitting, non_splitting) and name not in ignored:
                units.close()
            skipped, opaque = [name], tag
        elif named and _ends_sentence(name, kind, splitting, non_splitting):
            units.close()
            units.parts += own
        elif not (closes and not before and named and units.emptied(named[1], tag)):
            units.inside(*own, tag=tag)
    if skipped:  # never closed: all of it stays
        units.inside(opaque + source[at:], tag=opaque + source[at:])
    else:
        units.text(source[at:])
    units.close()
    return units.parts


class _Units:
    """The units of a text, the last of which is still open."""

    def __init__(self, kind: Kind) -> None:
        self._kind, self._unit = kind, Unit()
        self.parts: list[Part] = []

    def close(self) -> None:
        """End the sentence."""
        if self._unit.text or self._unit.tags:
            self.parts.append(self._unit)
        self._unit = Unit()

    def text(self, raw: str) -> None:
        """Add text, which in XML ends a sentence with each of its lines."""
        for number, line in enumerate(re.split(r"(\n)", raw) if self._kind == "xml" else [raw]):
            if number % 2:
                self.close()
                self.parts.append(line)
            elif line:
                self._unit.text += html.unescape(line)
                self._unit.raw.append(line)

    def inside(self, *own: Part, tag: str) -> None:
        """Add a tag that does not end the sentence, or all of an element that is not translated."""
        named = _NAME.match(tag)
        is_void = self._kind == "html" and named is not None and named[1].lower() in _VOID
        role = "point" if named is None or is_void or tag.endswith("/>") or tag.count("<") > 1 else _role(tag)
        self._unit.tags.append(Tag(len(self._unit.text), own, role, named[1] if named else ""))
        self._unit.raw += own

    def emptied(self, name: str, tag: str) -> bool:
        """Whether a closing tag ends the element that the last tag opened: then both are one placeholder."""
        tags = self._unit.tags
        if not tags or tags[-1].kind != "open" or tags[-1].name != name:
            return False
        empty = tags.pop()
        tags.append(Tag(empty.place, (*empty.parts, tag)))
        self._unit.raw.append(tag)
        return True


def _role(tag: str) -> Literal["open", "close"]:
    return "close" if tag.startswith("</") else "open"


def _ends_sentence(name: str, kind: Kind, splitting: Collection[str], non_splitting: Collection[str]) -> bool:
    if name in splitting:
        return True
    if name in non_splitting or kind == "xml":
        return False
    return name in _BLOCKS or name in ("pre", "script", "style", "template", "textarea")


_SHOWN = re.compile(
    r"(?<=\s)(?:alt|title|placeholder|aria-label|summary|label)\s*=\s*(?P<quote>[\"'])(?P<text>.*?)(?P=quote)",
    re.DOTALL | re.IGNORECASE,
)
_CONTENT = re.compile(
    r"(?<=\s)(?:content|value)\s*=\s*(?P<quote>[\"'])(?P<text>.*?)(?P=quote)", re.DOTALL | re.IGNORECASE
)
_SPEAKS = re.compile(
    r"<meta\s[^>]*(?:name|property)\s*=\s*[\"']?(?:description|keywords|og:title|og:description|twitter:title|"
    r"twitter:description)\b|<input\s[^>]*type\s*=\s*[\"']?(?:submit|button|reset)\b",
    re.IGNORECASE,
)


def _attributes(tag: str) -> list[Part]:
    """A tag with the attributes that a reader sees as units."""
    found = list(_SHOWN.finditer(tag)) + (list(_CONTENT.finditer(tag)) if _SPEAKS.match(tag) else [])
    parts: list[Part] = []
    at = 0
    for match in sorted(found, key=lambda match: match.start()):
        start, end = match.span("text")
        parts += [tag[at:start], Unit(html.unescape(match["text"]), raw=[match["text"]], escape=html.escape)]
        at = end
    return [*parts, tag[at:]]
