"""Text with HTML or XML tags, cut into units.

    parse("<p>A <b>dog</b>.</p>", "html")  # ["<p>", Unit("A dog.", tags=<b>, </b>), "</p>"]

A unit is the text between two tags that end a sentence, such as those of a paragraph or a cell. In XML line ends do so,
elements that touch another one, and those that the caller names. Inline tags stay in their unit with their places.
Only translated text is rewritten, with ``&``, ``<`` and ``>`` escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from typing import Literal

from dragoman.documents.html.tokens import SPACES
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.units import Part, Tag, Unit, join_notes, part_words

Kind = Literal["html", "xml"]

TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?[A-Za-z].*?(?:\?>|\Z)|<![A-Za-z][^<>]*>"
    rf"|</?[A-Za-z_:][^{SPACES}/>\"'<]*+(?:[{SPACES}](?:[^\"'<>]++|\"[^\"]*+\"|'[^']*+')*+)?+/?>",
    re.DOTALL,
)
"""Of XML: a comment, CDATA or processing instruction (each may lack its end), a doctype or a tag. Any other ``<`` is
text."""

_NAME = re.compile(rf"</?([A-Za-z_:][^{SPACES}/>\"'<]*)")
_ATTRIBUTE = re.compile(
    rf"[{SPACES}]([\w:.-]++)[{SPACES}]*+=[{SPACES}]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^{SPACES}\"'>]++))"
)


def parse(
    source: str, kind: Kind, *, ignored: Collection[str] = (), splitting: Collection[str] = (),
    non_splitting: Collection[str] = (), attributes: bool = False,
) -> list[Part]:  # fmt: skip
    """Cut a text with tags into units.

    Args:
        source: Any text; malformed markup counts as text, so nothing is refused.
        ignored: Elements whose content is not translated; they stay inside their sentence.
        splitting, non_splitting: Elements that end a sentence, or do not, against the default for their name.
        attributes: Translate attributes of HTML that a reader sees too, such as ``alt``.
    """
    if kind == "html":
        return cut(source, PageOptions(ignored, splitting, non_splitting, attributes)).parts
    return _xml(source, ignored, splitting, non_splitting)


_TOUCHING = re.compile(rf"</([A-Za-z_:][^{SPACES}/>\"'<]*+)[{SPACES}]*+><([A-Za-z_:][^{SPACES}/>\"'<]*+)")
_WITHIN = (
    "a abbr b bdi bdo big bpt bx c cite code data del dfn em ept ex font g hi i ins it kbd mark mrk n ph q s samp "
    "small span strike strong sub sup t time tt u var wbr x"
)
_INLINE = frozenset(_WITHIN.split())
"""Elements that stand within a sentence, in HTML, XLIFF and TMX, and short names of numbered ones."""


def _outline(source: str) -> set[str]:
    """Return the names of elements that touch another one, as cells and paragraphs do: each is a text of its own.

    "<k>12</k><v>15</v>" are two numbers. An element within a sentence has a usual name, or a space beside it.
    """
    names: set[str] = set()
    for match in _TOUCHING.finditer(source):
        pair = {match[1].lower(), match[2].lower()}
        if pair.isdisjoint(_INLINE) and not any(name[-1:].isdigit() for name in pair):
            names |= pair
    return names


def _xml(
    source: str, ignored: Collection[str], splitting: Collection[str], non_splitting: Collection[str]
) -> list[Part]:
    """Cut XML into units."""
    splitting = {*splitting, *(_outline(source) - set(non_splitting))}
    units = _Units()
    skipped: list[str] = []  # names of the open elements whose content is not translated, innermost last
    opaque: list[str] = []  # their source so far
    at = 0
    for match in TOKEN.finditer(source):
        before, tag, at = source[at : match.start()], match[0], match.end()
        named = _NAME.match(tag)
        name = named[1].lower() if named else ""
        closes = tag.startswith("</")
        is_single = tag.endswith("/>") or not named  # has no closing tag
        if skipped:
            opaque += [before, tag]
            if closes and name == skipped[-1]:
                skipped.pop()
            elif not closes and not is_single and name == skipped[0]:
                skipped.append(name)
            if not skipped:
                units.inside("".join(opaque))
            continue
        units.text(before)
        hidden = named and not closes and not is_single and (name in ignored or _is_kept(tag))
        if hidden:
            if name in splitting and name not in ignored:
                units.close()
            skipped, opaque = [name], [tag]
        elif named and name in splitting:
            units.close()
            units.parts.append(tag)
        elif not (closes and not before and named and units.close_empty(named[1], tag)):
            units.inside(tag)
    if skipped:  # an element that is never closed hides the text to the end
        units.inside("".join([*opaque, source[at:]]))
    else:
        units.text(source[at:])
    units.close()
    return units.parts


def _is_kept(tag: str) -> bool:
    """True if an attribute of a tag says that its element is not translated."""
    for name, quoted, single, bare in _ATTRIBUTE.findall(tag):
        value = quoted or single or bare
        if (name == "translate" and value == "no") or (name == "class" and "notranslate" in value.split()):
            return True
    return False


class _Units:
    """Collects the units of XML; the last one is still open."""

    def __init__(self) -> None:
        self._unit = Unit()
        self.parts: list[Part] = []

    def close(self) -> None:
        """End the open unit, since a sentence ends here."""
        if self._unit.text or self._unit.tags:
            part_words(self._unit)
            join_notes(self._unit)
            self.parts.append(self._unit)
        self._unit = Unit()

    def text(self, raw: str) -> None:
        """Add text to the open unit; each line end also ends the unit."""
        for number, line in enumerate(re.split(r"(\n)", raw)):
            if number % 2:
                self.close()
                self.parts.append(line)
            elif line:
                self._unit.text += html.unescape(line)
                self._unit.raw.append(line)

    def inside(self, tag: str) -> None:
        """Add a tag that does not end the sentence, or a whole element that is not translated."""
        named = _NAME.match(tag)
        role = "point" if named is None or tag.endswith("/>") or tag.count("<") > 1 else _role(tag)
        self._unit.tags.append(Tag(len(self._unit.text), (tag,), role, named[1] if named else ""))
        self._unit.raw.append(tag)

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
