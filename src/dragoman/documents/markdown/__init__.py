"""Markdown as people write it: CommonMark and the dialects of GitHub, MkDocs, Docusaurus, MyST, Hugo, Jekyll and MDX.

``blocks`` finds the paragraphs, headings and cells, ``inline`` makes units of them. Emphasis, links, images and HTML
are tags inside these units. Inline code is copied, as in plain text. What the model must not read, such as a shortcode
or a formula, is a tag too, or stands between units. The result is parsed again: where characters of a translation would
become markup they are escaped, and a paragraph that would change even so is left.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dragoman.documents.document import Document, DocumentInfo, Untranslated, decode
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.markdown import front_matter
from dragoman.documents.markdown.arguments import words_of_tag, words_of_tags
from dragoman.documents.markdown.blocks import Block, Blocks, blocks_of, is_mdx
from dragoman.documents.markdown.checking import Checked, Stretch, structure
from dragoman.documents.markdown.dialects import tag_of_code
from dragoman.documents.markdown.escaping import in_cell, in_heading, in_quotes
from dragoman.documents.markdown.inline import Paragraph, Wrapped, shown_in, title_unit, units
from dragoman.documents.markdown.jsx import texts_in
from dragoman.documents.markdown.masks import spans
from dragoman.documents.markdown.wrapping import WRAPPING_SIGNS, Wrapper
from dragoman.documents.shortcodes import words_of
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError

__all__ = ["OPTIONS", "SUFFIXES", "read", "structure"]

SUFFIXES = (".md", ".markdown", ".mdx")
OPTIONS = ("front_matter",)

MOST_BYTES = 2_000_000
"""Largest accepted file in bytes."""

MOST_MARKS = 10_000
"""Largest number of a translated paragraph's characters that may be markup: the time to parse it may grow with their
square. A paragraph with more is left."""

_SIGNS = "*_~`[]<>&!\\()"
"""Characters that may be markup inside a paragraph."""

_IN_CODE = "text in JavaScript"
_IS_CODE = re.compile(r"<(?:script|style|pre|!--)", re.IGNORECASE)
_ESCAPES: dict[str, Callable[[str], str]] = {"cell": in_cell, "quoted": in_quotes}
_LINE_END = re.compile(r"\r\n?|\n")
_TITLE = re.compile(r"(?<=[\s>])(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))\s*\Z", re.DOTALL)


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut Markdown into the text of its paragraphs, headings and cells; see ``document.Format``."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{info.name}: {len(data):,} bytes of Markdown are more than {MOST_BYTES:,}: split the file")
    text = decode(data, info)
    begin = front_matter.end_of(text.text)
    left: list[Untranslated] = []
    front: list[Part] = [text.text[:begin]]
    if begin and info.options.front_matter:
        front = front_matter.parts_of(text.text[:begin], left)
    if not left and not any(isinstance(part, Unit) for part in front):
        left += front_matter.unreadable(text.text[:begin])
    lines = _Lines(text.text[begin:])
    body = _Body(lines, is_mdx(lines.text, info.name), left)
    body.cut()
    has_signs = any(sign in text.text for sign in WRAPPING_SIGNS)
    wrapper = Wrapper(
        {} if has_signs else {id(own.unit): own for own in body.wrapped}, body.blocks.references, body.mdx
    )
    checked = Checked(body.parts, body.stretches, body.blocks, wrapper)

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        return text.encode(wrapper.written(render(checked.marked([*front, *body.parts]))))

    return Document([*front, *body.parts], save, tuple(left), checked.reject, text.read_as)


def _with_marks(parts: Sequence[Part], mark: str) -> list[Part]:
    """Return parts of HTML with a mark at the beginning of each line but the first."""
    made = [piece for part in parts for piece in (_without_spaces(part) if isinstance(part, Unit) else [part])]
    return _marked(made, mark, set())


def _without_spaces(unit: Unit) -> list[Part]:
    """Return a unit and the white space around its text: written with a translation, it would not get marks."""
    if not unit.text.strip():
        return [unit]
    before, _, behind = unit.text.partition(unit.text.strip())
    first, last = unit.raw[0], unit.raw[-1]
    before = before if isinstance(first, str) and first.startswith(before) else ""
    behind = behind if isinstance(last, str) and last.endswith(behind) else ""
    if before:
        unit.raw[0] = str(unit.raw[0]).removeprefix(before)
    if behind:
        unit.raw[-1] = str(unit.raw[-1]).removesuffix(behind)
    unit.text = unit.text.removeprefix(before).removesuffix(behind)
    unit.tags = [replace(tag, place=min(max(0, tag.place - len(before)), len(unit.text))) for tag in unit.tags]
    return [before, unit, behind]


def _marked(parts: Sequence[Part], mark: str, done: set[int]) -> list[Part]:
    """Return parts with a mark behind each line end; ``done`` has the ids of finished units."""
    for part in parts:
        if isinstance(part, Unit) and id(part) not in done:
            done.add(id(part))
            part.raw = _marked(part.raw, mark, done)
            part.tags = [replace(tag, parts=tuple(_marked(tag.parts, mark, done))) for tag in part.tags]
    return [_LINE_END.sub(lambda end: end[0] + mark, part) if isinstance(part, str) else part for part in parts]


class _Lines:
    """A text and the same text with LF as its line ends, which the parser reads."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.text = re.sub("\r\n?", "\n", source)
        ends = list(re.finditer("\r\n", source))
        self._places = [match.start() - i for i, match in enumerate(ends)]  # in ``text``, of each line end CR LF

    def at(self, place: int) -> int:
        """Return the place in the source of a place in ``text``."""
        return place + bisect_right(self._places, place - 1) if self._places else place

    def between(self, start: int, end: int) -> str:
        """Return the source between two places of ``text``."""
        return self.source[self.at(start) : self.at(end)]


@dataclass
class _Body:
    """The parts of a text below its front matter."""

    lines: _Lines
    mdx: bool
    left: list[Untranslated]
    parts: list[Part] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    wrapped: list[Wrapped] = field(default_factory=list)
    blocks: Blocks = field(default_factory=Blocks)

    def cut(self) -> None:
        """Cut the text into parts."""
        self.blocks = blocks_of(self.lines.text, self.mdx)
        line_ends = [match.start() for match in re.finditer("\n", self.lines.text)]
        at = 0
        for block in self.blocks.blocks:
            start, end = block.lines[0][0], block.lines[-1][1]
            if block.kind == "left" or start < at:
                why = block.why or "its Markdown could not be followed"
                self.left.append(Untranslated(" ".join(self.lines.text[start:end].split()), why))
                continue
            made = self._parts(block)
            if made is None:
                continue
            self.parts += [self.lines.between(at, start), *made]
            if any(isinstance(part, Unit) for part in made):
                self.stretches.append(Stretch(tuple(made), bisect_right(line_ends, start), block.kind))
            at = end
        self.parts.append(self.lines.between(at, len(self.lines.text)))

    def _parts(self, block: Block) -> list[Part] | None:
        """Return the parts of a block; None if nothing of it is translated."""
        start, end = block.lines[0][0], block.lines[-1][1]
        source = self.lines.between(start, end)
        if block.kind == "html":
            page = self._html(block)
            if page is None:
                self.left.append(Untranslated(" ".join(source.split()), "the markers of its quote differ"))
            return page
        if block.kind == "raw":
            shown = shown_in(source)
            if self.mdx and not _IS_CODE.match(source):
                self._name_texts_in("".join(part for part in shown if isinstance(part, str)))
            if source.startswith("{") and not tag_of_code(source):
                self.left += words_of_tags(source)
            return shown
        if block.kind == "definition":
            title = _TITLE.search(source)
            if title is None:
                return None
            first, last = title.start(1) + 1, title.end(1) - 1
            return [source[:first], title_unit(source[first:last], source[first - 1]), source[last:]]
        text = "\n".join(self.lines.text[first:last] for first, last in block.lines)
        if not text.strip():
            return None
        n_marks = sum(map(text.count, _SIGNS))
        if n_marks > MOST_MARKS:
            why = f"its paragraph has {n_marks:,} characters of markup, more than {MOST_MARKS:,}: divide it"
            self.left.append(Untranslated(" ".join(text.split())[:200], why))
            return None
        between = tuple(self.lines.between(before[1], after[0]) for before, after in pairwise(block.lines))
        paragraph = Paragraph(text, between)
        is_heading = self.lines.text[max(0, start - 20) : start].rstrip(" \t").endswith("#")
        escape = _ESCAPES.get(block.kind, in_heading if is_heading else str)
        made = units(paragraph, self.blocks.references, self.mdx, escape)
        if made is None:
            self.left.append(Untranslated(" ".join(text.split()), "its Markdown could not be followed"))
            return None
        self.wrapped += made[1]
        self.left += made[2]
        if ("[" in text and "=" in text) or "{" in text or "<%" in text:
            for span in spans(text, self.mdx, self.blocks.references):
                if span.name == "shortcode" and text[span.start] == "[":
                    self.left += [words for words in words_of(text[span.start : span.end]) if words not in made[2]]
                elif span.kind in ("point", "open") and text[span.start] in "{<":
                    self.left += words_of_tag(text[span.start : span.end])
        if self.mdx and "<" in text:
            for span in spans(text, True):
                if span.kind == "point" and text[span.start] == "{":
                    self._name_texts_in(text[span.start : span.end])
        return made[0]

    def _html(self, block: Block) -> list[Part] | None:
        """Return the parts of a block of HTML; None if its lines begin with different markers of quotes."""
        lines = block.lines
        between = [self.lines.between(before[1], after[0]) for before, after in pairwise(lines)]
        ends = [_LINE_END.match(source)[0] for source in between]  # type: ignore[index]
        markers = [source.removeprefix(end) for source, end in zip(between, ends, strict=True)]
        same = len(set(markers)) == 1
        mark = markers[0] if same else min((marker.rstrip() for marker in markers), key=len, default="")
        spaces = [marker.removeprefix(mark) for marker in markers]  # they mean nothing in HTML
        if any(map(str.strip, spaces)):
            return None
        inner = [self.lines.between(*lines[0])]
        for line, end, space in zip(lines[1:], ends, spaces, strict=True):
            inner += [end, space, self.lines.between(*line)]
        page = cut("".join(inner), PageOptions(attributes=True))
        self.left += page.left
        return _with_marks(page.parts, mark) if mark else page.parts

    def _name_texts_in(self, code: str) -> None:
        """Name the text of elements in JavaScript, which stays as it is."""
        self.left += [Untranslated(text, _IN_CODE) for text in texts_in(code)]
