"""Text with HTML or XML tags, cut into units.

    parse("<p>A <b>dog</b>.</p>", "html")  # ["<p>", Unit("A dog.", tags=<b>, </b>), "</p>"]

A unit is the text between two tags that end a sentence, such as those of a paragraph or a cell. In XML only line ends
and the elements that the caller names do so. Inline tags stay in their unit with their places. Only translated text is
rewritten, with ``&``, ``<`` and ``>`` escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from typing import Literal

from dragoman.documents.units import Part, Tag, Unit

Kind = Literal["html", "xml"]

TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?[A-Za-z].*?(?:\?>|\Z)|<![A-Za-z][^<>]*>"
    r"|</?[A-Za-z_:][^\s/>\"'<]*+(?:\s(?:[^\"'<>]++|\"[^\"]*+\"|'[^']*+')*+)?+/?>",
    re.DOTALL,
)
"""A comment, CDATA or processing instruction (each may lack its end), a doctype or a tag. Any other ``<`` is text."""

_NAME = re.compile(r"</?([A-Za-z_:][^\s/>\"'<]*)")
_NOT_TRANSLATED = re.compile(r"\btranslate\s*=\s*[\"']?no\b|\bclass\s*=\s*[\"'][^\"']*\bnotranslate\b", re.IGNORECASE)


def _names(text: str) -> frozenset[str]:
    """Return the names that a text lists, separated by spaces."""
    return frozenset(text.split())


_OPAQUE = _names("script style code pre kbd samp var textarea svg math noscript template")
"""HTML elements whose content is not translated."""

_BLOCKS = _names(
    "address article aside base blockquote body br caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe "
    "legend li link main menu meta nav ol optgroup option p section summary table tbody td tfoot th thead "
    "title tr ul"
)
"""HTML elements that end a sentence; all others, unknown ones too, stand inside a sentence."""

_VOID = _names("area base br col embed hr img input link meta source track wbr")
"""HTML elements that have no closing tag."""


def parse(
    source: str, kind: Kind, *, ignored: Collection[str] = (), splitting: Collection[str] = (),
    non_splitting: Collection[str] = (), attributes: bool = False,
) -> list[Part]:  # fmt: skip
    """Cut a text with tags into units.

    Args:
        source: Any text; malformed markup counts as text, so nothing is refused.
        ignored: Elements whose content is not translated; they stay inside their sentence.
        splitting, non_splitting: Elements that end a sentence, or do not, against the default for their name.
        attributes: Translate attributes that a reader sees too, such as ``alt``.
    """
    units = _Units(kind)
    skipped: list[str] = []  # names of the open elements whose content is not translated, innermost last
    opaque = ""  # their source so far
    at = 0
    for match in TOKEN.finditer(source):
        before, tag, at = source[at : match.start()], match[0], match.end()
        named = _NAME.match(tag)
        name = named[1].lower() if named else ""
        closes = tag.startswith("</")
        is_single = tag.endswith("/>") or not named or (kind == "html" and name in _VOID)  # has no closing tag
        if skipped:
            opaque += before + tag
            if closes and name == skipped[-1]:
                skipped.pop()
            elif not closes and not is_single and name == skipped[0]:
                skipped.append(name)
            if not skipped:
                units.inside(opaque, tag=opaque)
            continue
        units.text(before)
        hidden = name in ignored or bool(_NOT_TRANSLATED.search(tag)) or (kind == "html" and name in _OPAQUE)
        tag_parts = _attributes(tag) if attributes and not hidden and not closes else [tag]
        if hidden and not closes and not is_single:
            if _ends_sentence(name, kind, splitting, non_splitting) and name not in ignored:
                units.close()
            skipped, opaque = [name], tag
        elif named and _ends_sentence(name, kind, splitting, non_splitting):
            units.close()
            units.parts += tag_parts
        elif not (closes and not before and named and units.close_empty(named[1], tag)):
            units.inside(*tag_parts, tag=tag)
    if skipped:  # an element that is never closed hides the text to the end
        units.inside(opaque + source[at:], tag=opaque + source[at:])
    else:
        units.text(source[at:])
    units.close()
    return units.parts


class _Units:
    """Collects the units of a text; the last one is still open."""

    def __init__(self, kind: Kind) -> None:
        self._kind, self._unit = kind, Unit()
        self.parts: list[Part] = []

    def close(self) -> None:
        """End the open unit, since a sentence ends here."""
        if self._unit.text or self._unit.tags:
            self.parts.append(self._unit)
        self._unit = Unit()

    def text(self, raw: str) -> None:
        """Add text to the open unit; in XML each line end also ends the unit."""
        for number, line in enumerate(re.split(r"(\n)", raw) if self._kind == "xml" else [raw]):
            if number % 2:
                self.close()
                self.parts.append(line)
            elif line:
                self._unit.text += html.unescape(line)
                self._unit.raw.append(line)

    def inside(self, *parts: Part, tag: str) -> None:
        """Add a tag that does not end the sentence, or a whole element that is not translated.

        Args:
            parts: The source of the tag or element, with units for its translated attributes.
            tag: The same source as one string.
        """
        named = _NAME.match(tag)
        is_void = self._kind == "html" and named is not None and named[1].lower() in _VOID
        role = "point" if named is None or is_void or tag.endswith("/>") or tag.count("<") > 1 else _role(tag)
        self._unit.tags.append(Tag(len(self._unit.text), parts, role, named[1] if named else ""))
        self._unit.raw += parts

    def close_empty(self, name: str, tag: str) -> bool:
        """Merge a closing tag with the tag that opened its element right before it; False if there is no such tag.

        An empty element such as ``<a id="x"></a>`` becomes one placeholder.
        """
        tags = self._unit.tags
        if not tags or tags[-1].kind != "open" or tags[-1].name != name:
            return False
        empty = tags.pop()
        tags.append(Tag(empty.place, (*empty.parts, tag)))
        self._unit.raw.append(tag)
        return True


def _role(tag: str) -> Literal["open", "close"]:
    """Return whether a tag opens or closes its element."""
    return "close" if tag.startswith("</") else "open"


def _ends_sentence(name: str, kind: Kind, splitting: Collection[str], non_splitting: Collection[str]) -> bool:
    """True if the tags of an element end a sentence; the caller's lists come before the defaults of HTML."""
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
_VISIBLE_VALUE = re.compile(
    r"<meta\s[^>]*(?:name|property)\s*=\s*[\"']?(?:description|keywords|og:title|og:description|twitter:title|"
    r"twitter:description)\b|<input\s[^>]*type\s*=\s*[\"']?(?:submit|button|reset)\b",
    re.IGNORECASE,
)


def _attributes(tag: str) -> list[Part]:
    """Return a tag as parts, with a unit for each attribute that a reader sees."""
    values = list(_SHOWN.finditer(tag)) + (list(_CONTENT.finditer(tag)) if _VISIBLE_VALUE.match(tag) else [])
    parts: list[Part] = []
    at = 0
    for match in sorted(values, key=lambda match: match.start()):
        start, end = match.span("text")
        parts += [tag[at:start], Unit(html.unescape(match["text"]), raw=[match["text"]], escape=html.escape)]
        at = end
    return [*parts, tag[at:]]
