"""Text with HTML or XML tags: what is translated, what is not, and the tags at their places in the translation.

Tags are never shown to the model. A unit is the text between two tags that end a sentence (a paragraph's, a cell's; in
XML only those named, and line ends); inside it, inline tags are taken out with their places and put back by the word
alignment: an element encloses the translations of the words that it enclosed. The tags of a unit keep their number and
their order, hence their nesting, and every byte. Only translated text is rewritten, with ``&``, ``<`` and ``>``
escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.decoding.alignment import word_numbers
from dragoman.translation.assemble import Translation

Kind = Literal["html", "xml"]

_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<![A-Za-z][^>]*>"
    r"|</?[A-Za-z_:][^\s/>\"'<]*(?:\s+(?:\"[^\"]*\"|'[^']*'|[^\"'<>])*)?/?>",
    re.DOTALL,
)
"""A comment, CDATA, a processing instruction, a doctype or a tag; a ``<`` that begins none of these is text."""

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


@dataclass
class Unit:
    """A stretch of text that is translated in one piece, and the tags inside it."""

    text: str = ""  # entities resolved, white space as it is
    tags: list[tuple[int, str]] = field(default_factory=list)  # where in the text, and its source


@dataclass(frozen=True)
class Document:
    """A text cut into what stays as it is, and units."""

    parts: list[str | Unit]

    @property
    def units(self) -> list[Unit]:
        """Those with something to translate, in order."""
        return [part for part in self.parts if isinstance(part, Unit) and part.text.strip()]


def parse(
    source: str, kind: Kind, *, ignored: Collection[str] = (), splitting: Collection[str] = (),
    non_splitting: Collection[str] = (),
) -> Document:  # fmt: skip
    """Cut a text with tags into units.

    Args:
        source: Any text: what is no tag is text, so nothing is refused.
        ignored: Elements whose content is left as it is; they stay in their sentence.
        splitting, non_splitting: Elements that end a sentence, or do not, whatever they usually do.
    """
    parts: list[str | Unit] = []
    unit = Unit()
    skipped: list[str] = []  # the open elements that are not translated, innermost last
    opaque = ""  # what they hold so far
    at = 0

    def close() -> None:
        nonlocal unit
        if unit.text or unit.tags:
            parts.append(unit)
        unit = Unit()

    def text(raw: str) -> None:
        for number, line in enumerate(re.split(r"(\n)", raw) if kind == "xml" else [raw]):
            if number % 2:
                close()
                parts.append(line)
            else:
                unit.text += html.unescape(line)

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
                unit.tags.append((len(unit.text), opaque))
            continue
        text(before)
        hidden = name in ignored or bool(_NOT_TRANSLATED.search(tag)) or (kind == "html" and name in _OPAQUE)
        if hidden and not closes and not alone:
            if _ends_sentence(name, kind, splitting, non_splitting) and name not in ignored:
                close()
            skipped, opaque = [name], tag
        elif named and _ends_sentence(name, kind, splitting, non_splitting):
            close()
            parts.append(tag)
        elif closes and not before and unit.tags and _is_opening(unit.tags[-1][1], name):
            unit.tags[-1] = unit.tags[-1][0], unit.tags[-1][1] + tag  # an empty element: a placeholder
        else:
            unit.tags.append((len(unit.text), tag))
    if skipped:  # never closed: all of it stays
        unit.tags.append((len(unit.text), opaque + source[at:]))
    else:
        text(source[at:])
    close()
    return Document(parts)


def _is_opening(tag: str, name: str) -> bool:
    named = _NAME.fullmatch(tag.rstrip(">").split()[0]) if tag.count("<") == 1 and not tag.endswith("/>") else None
    return named is not None and not tag.startswith("</") and named[1].lower() == name


def _ends_sentence(name: str, kind: Kind, splitting: Collection[str], non_splitting: Collection[str]) -> bool:
    if name in splitting:
        return True
    if name in non_splitting or kind == "xml":
        return False
    return name in _BLOCKS or name in ("pre", "script", "style", "template", "textarea")


def plain(unit: Unit) -> str:
    """What the model is given: one line, white space as single spaces."""
    return " ".join(unit.text.split())


def rebuild(document: Document, translations: Sequence[Translation], *, src_unspaced: bool, tgt_unspaced: bool) -> str:
    """The document with its units translated.

    Args:
        translations: Of ``plain(unit)`` for each of ``document.units``, with alignments where a unit has tags.
    """
    of_unit = iter(translations)
    return "".join(
        part
        if isinstance(part, str)
        else _with_tags(part, next(of_unit), src_unspaced, tgt_unspaced)
        if part.text.strip()
        else _untouched(part)
        for part in document.parts
    )


def escape(text: str) -> str:
    """Text as it stands between tags."""
    return html.escape(text, quote=False)


def _untouched(unit: Unit) -> str:
    """White space and tags as they were."""
    out, at = [], 0
    for place, tag in unit.tags:
        out += [escape(unit.text[at:place]), tag]
        at = place
    return "".join([*out, escape(unit.text[at:])])


def _with_tags(unit: Unit, translation: Translation, src_unspaced: bool, tgt_unspaced: bool) -> str:
    """The translation of a unit with its tags, and the white space around it."""
    text = translation.text
    head = unit.text[: len(unit.text) - len(unit.text.lstrip())]
    tail = unit.text[len(unit.text.rstrip()) :]
    places = _places(unit, translation, src_unspaced, tgt_unspaced)
    out, at, headed = [""], 0, False
    last = len(unit.text)
    for place, (origin, tag) in zip(places, unit.tags, strict=True):
        place = max(place, at)  # their order is kept, and with it their nesting
        if not headed and (origin > 0 or place > 0):
            out, headed = [*out, escape(head)], True
        out.append(escape(text[at:place]))
        at = place
        if place == len(text) and origin == last and tail:
            out, tail = [*out, escape(tail)], ""
        alone = _encloses_nothing(tag)
        if alone and unit.text[origin - 1 : origin].isspace() and out[-1] and not out[-1][-1].isspace():
            out.append(" ")
        out.append(tag)
        if alone and unit.text[origin : origin + 1].isspace() and text[at : at + 1].strip() and headed:
            out.append(" ")
    return "".join([*out, escape(text[at:]) if headed else escape(head + text[at:])]) + escape(tail)


def _encloses_nothing(tag: str) -> bool:
    """A comment, an empty element, or one whose content stays as it is; not a tag of an element with text."""
    return tag.count("<") > 1 or tag.endswith("/>") or _NAME.match(tag) is None


def _places(unit: Unit, translation: Translation, src_unspaced: bool, tgt_unspaced: bool) -> list[int]:
    """Where in the translation each tag of a unit belongs, by its characters."""
    words = _spans(unit.text, src_unspaced)
    target = _spans(translation.text, tgt_unspaced)
    partners: dict[int, list[int]] = {}
    for src, tgt in translation.alignment or ():
        partners.setdefault(src, []).append(tgt)
    if not partners and words and target:  # no alignment: by position
        partners = {i: [min(len(target) - 1, i * len(target) // len(words))] for i in range(len(words))}
    places = [_of_point(place, unit.text, words, translation.text, target, partners) for place, _ in unit.tags]
    for first, last in _elements(unit.tags):
        start, end = unit.tags[first][0], unit.tags[last][0]
        inside = [i for i, (begin, stop) in enumerate(words) if begin < end and stop > start]
        found = [tgt for i in inside for tgt in partners.get(i, ())]
        if found and start < end:
            places[first] = _inward(unit.text, start, translation.text, target[min(found)][0], 1)
            places[last] = _inward(unit.text, end, translation.text, target[max(found)][1], -1)
    return places


def _of_point(
    place: int, src: str, words: Sequence[tuple[int, int]], text: str, target: Sequence[tuple[int, int]],
    partners: dict[int, list[int]],
) -> int:  # fmt: skip
    """The place of a tag that encloses nothing: where the word that it is attached to went, else the word after it."""
    if not src[:place].strip():
        return 0
    for i, (begin, end) in enumerate(words):
        if begin < place <= end and partners.get(i):
            return _inward(src, place, text, target[max(partners[i])][1], -1)
        if begin >= place and partners.get(i):
            return target[min(partners[i])][0]
    return len(text)


def _elements(tags: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """The indices of each opening tag and the tag that closes it; from the innermost out."""
    found, open_tags = [], []
    for i, (_, tag) in enumerate(tags):
        named = _NAME.match(tag)
        if named is None or tag.endswith("/>") or tag.count("<") > 1:
            continue
        if not tag.startswith("</"):
            open_tags.append((named[1], i))
        elif any(name == named[1] for name, _ in open_tags):
            while open_tags:
                name, first = open_tags.pop()
                if name == named[1]:
                    found.append((first, i))
                    break
    return found


def _inward(src: str, place: int, text: str, wanted: int, step: int) -> int:
    """Past punctuation that the tag leaves outside in the source: ``<b>Hi</b>!`` becomes ``<b>Hallo</b>!``."""
    beside = src[place - 1 : place] if step > 0 else src[place : place + 1]
    if not beside or beside.isspace() or beside.isalnum():
        return wanted
    while 0 < wanted < len(text) + (step < 0) and not (text[wanted] if step > 0 else text[wanted - 1]).isalnum():
        wanted += step
    return wanted


def _spans(text: str, unspaced: bool) -> list[tuple[int, int]]:
    """Where each word of a text begins and ends, in the numbering of ``word_numbers``."""
    spans: dict[int, tuple[int, int]] = {}
    for i, number in enumerate(word_numbers(text, unspaced)):
        if number >= 0:
            spans[number] = spans.get(number, (i, i))[0], i + 1
    return list(spans.values())
