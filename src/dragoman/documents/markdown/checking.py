"""Checks that a translation is the same Markdown as its source, paragraph by paragraph and as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dragoman.documents.markdown.blocks import Blocks, Kind, blocks_of
from dragoman.documents.markdown.escaping import all_escaped, escaped, in_quotes, readable
from dragoman.documents.markdown.inline import SPACE, Paragraph, tokens_of, units, without_shown
from dragoman.documents.markdown.masks import INLINE_FOOTNOTE, Span
from dragoman.documents.markdown.wrapping import Wrapper
from dragoman.documents.units import Part, Tag, Translations, Unit, units_of, write

if TYPE_CHECKING:
    from markdown_it.token import Token

MOST_ROUNDS = 8
"""Number of times that the whole translation is parsed again before all of its paragraphs are left."""

_MARK_OF_HTML = {
    "<em>": "em_open", "</em>": "em_close", "<strong>": "strong_open", "</strong>": "strong_close",
    "<del>": "s_open", "</del>": "s_close",
}  # fmt: skip
_HTML = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}
_TEXT = frozenset(["text", "softbreak", "text_special"])
_SUSPECT = re.compile(r"^\s*(?:[^\w\s\"'(]|\(\w+\)=|\d+[.)]|import\b|export\b)|\|", re.MULTILINE)
_QUOTES = re.compile(r"\n(?:[ \t]*+>)++")

Marks = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Stretch:
    """The parts of a paragraph, heading, cell or title."""

    parts: tuple[Part, ...]
    line: int
    """Number of the source's line where it begins, from 0."""
    kind: Kind

    @property
    def is_markdown(self) -> bool:
        """True if its text may become other markup of Markdown."""
        return self.kind in ("text", "cell", "title", "quoted")


class Checked:
    """The check of a document's translation: its ``reject`` stands in ``Document``."""

    def __init__(self, parts: Sequence[Part], stretches: Sequence[Stretch], source: Blocks, wrapper: Wrapper) -> None:
        self._parts, self._stretches, self._source, self._wrapper = parts, stretches, source, wrapper
        self._mdx = wrapper.mdx
        self._translations = Translations({})
        self._known: dict[str, Marks] = {}

    def unchanged(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts with the source of each unit whose translation is its own text: it keeps its line breaks."""
        texts = self._translations.by_text
        written: list[Part] = []
        for part in parts:
            is_same = isinstance(part, Unit) and (part.plain not in texts or texts[part.plain].text == part.plain)
            if is_same and isinstance(part, Unit) and SPACE not in part.raw:
                written += self.unchanged(part.raw)
            else:
                written.append(part)
        return written

    def marked(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts as they are written, with marks for their line breaks: see ``Wrapper.written``."""
        return self._wrapper.marked(self.unchanged(parts))

    def reject(self, translations: Translations) -> set[str]:
        """Choose how each unit is escaped; return the texts whose translations change the markup even so."""
        self._translations = translations
        rejected: set[str] = set()
        for stretch in filter(lambda stretch: stretch.is_markdown, self._stretches):
            for unit in _own_units(stretch.parts):
                is_usable = unit.plain in translations.by_text and unit.plain not in rejected
                if is_usable and not self._keeps_marks(unit, translations):
                    rejected.add(unit.plain)
            if stretch.kind == "text" and not self._is_paragraph(stretch, _without(translations, rejected)):
                for unit in _own_units(stretch.parts):
                    unit.escape = unit.escape if unit.escape is all_escaped else escaped
        wanted = _structure(self._source, self.marks)
        strict: set[int] = set()
        for _ in range(MOST_ROUNDS):
            written = self._written(_without(translations, rejected))
            places = _differences(wanted, _structure(blocks_of(written, self._mdx), self.marks))
            if not places:
                return rejected
            numbers = {self._culprit(place, translations, rejected) for place in places} - {None}
            if not numbers:
                break
            for number in numbers:
                stretch = self._stretches[number or 0]
                for unit in _changed(stretch.parts, translations):
                    if number in strict or not stretch.is_markdown:
                        rejected.add(unit.plain)
                for unit in filter(lambda unit: stretch.is_markdown, _own_units(stretch.parts)):
                    unit.escape = escaped
            strict |= {number for number in numbers if number is not None}
        return {unit.plain for stretch in self._stretches for unit in _changed(stretch.parts, translations)}

    def _written(self, translations: Translations) -> str:
        made = self._wrapper.written(write(self.marked(self._parts), translations))
        return re.sub("\r\n?", "\n", made)

    def _culprit(self, line: int, translations: Translations, rejected: set[str]) -> int | None:
        """Return the number of the last stretch up to a line that is translated, or of the next one behind it."""
        usable = [
            i
            for i, stretch in enumerate(self._stretches)
            if any(unit.plain not in rejected for unit in _changed(stretch.parts, translations))
        ]
        before = [i for i in usable if self._stretches[i].line <= line]
        return before[-1] if before else usable[0] if usable else None

    def _is_paragraph(self, stretch: Stretch, translations: Translations) -> bool:
        """True if the translation of a paragraph is one paragraph too."""
        text = write(self.unchanged(stretch.parts), translations)
        if not _SUSPECT.search(text):
            return True
        lines = "\n".join(line.strip() for line in text.splitlines())
        kinds = [token.type for token in blocks_of(lines, self._mdx).tokens]
        return kinds == ["paragraph_open", "inline", "paragraph_close"]

    def marks(self, source: str) -> Marks:
        """Return the marks and the code of a paragraph's source."""
        if source not in self._known:
            parsed = tokens_of(source, self._source.references, self._mdx)
            self._known[source] = _marks_of(parsed, source, self.marks)
        return self._known[source]

    def _keeps_marks(self, unit: Unit, translations: Translations) -> bool:
        """Set how a unit is escaped so that its translation has the same marks; False if no way of escaping does.

        The ways are tried in order: as it is, with what readers would not see, with all special characters escaped, and
        with emphasis written as HTML.
        """
        own, text = unit.escape, translations.by_text[unit.plain].text
        unit.escape = _after(readable, own)  # also for a footnote that stays in a sentence that does not
        if text == unit.plain:
            return True
        marks = self._marks_of_lines(write(unit.raw, translations))
        ways = ((str, False), (readable, False), (escaped, False), (all_escaped, False), (escaped, True))
        # A sign or a bracket that is text may become the partner of one that is markup, with as many of them as before.
        signs = [sign for sign, pattern in _SIGNS.items() if pattern.search(text)]
        is_misread = any(_begins(tag, sign) for tag in unit.tags for sign in signs) or (
            not _is_nested(text) and any(_begins(tag, "[") for tag in unit.tags)
        )
        for escape, as_html in ways[2 * is_misread :]:
            unit.escape = _after(escape, own)
            if as_html:
                unit.tags = [_as_html(tag) for tag in unit.tags]
            written = write([unit], translations)
            if self._marks_of_lines(written) == marks and self._shows(written, {text, unit.plain}):
                return True
        return False

    def _shows(self, written: str, texts: set[str]) -> bool:
        """True if readers see one of some texts in a unit: no backslash or entity of it is taken for markup.

        A unit whose translation cannot be written has its own text.
        """
        if not any("\\" in text or "&" in text for text in texts):
            return True
        source = self._wrapper.written(self._without_quotes(written))
        paragraph = Paragraph(source, ("\n",) * source.count("\n"))
        made = units(paragraph, self._source.references, self._mdx, str)
        shown = "".join(part.text for part in made[0] if isinstance(part, Unit)) if made is not None else ""
        return _compared(shown) in set(map(_compared, texts))

    def _marks_of_lines(self, written: str) -> Marks:
        """Return the marks of a unit, whose lines may begin with the markers of quotes."""
        return self.marks(self._without_quotes(written))

    def _without_quotes(self, written: str) -> str:
        """Return a unit without the markers of quotes in front of its lines; in MDX one may end a tag."""
        return written if self._mdx else _QUOTES.sub("\n", written)


_SIGNS = {"*": re.compile(r"\*"), "_": re.compile(r"(?<!\w)_|_(?!\w)"), "~": re.compile("~")}
"""Signs of emphasis, each with what may be one in a text; the underscore of snake_case is none."""


def _begins(tag: Tag, sign: str) -> bool:
    return isinstance(tag.parts[0], str) and tag.parts[0].startswith(sign)


def _compared(text: str) -> str:
    """Return text without white space, and with the quotes that a title between quotes may have."""
    return in_quotes("".join(text.split()))


def _is_nested(text: str) -> bool:
    """True if each bracket in a text has a partner."""
    depth = 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if depth < 0:
            return False
    return not depth


def _after(escape: Any, own: Any) -> Any:
    return lambda text: own(escape(text))


def _without(translations: Translations, rejected: set[str]) -> Translations:
    usable = {text: line for text, line in translations.by_text.items() if text not in rejected}
    return replace(translations, by_text=usable) if rejected else translations


def _own_units(parts: Sequence[Part]) -> list[Unit]:
    """Return the units of a stretch, those of a footnote before the sentence that it stands in.

    Units of attributes and titles are left out: they are written in another way.
    """
    own_units: list[Unit] = []
    for unit in (part for part in parts if isinstance(part, Unit)):
        for tag in unit.tags:
            own_units += _own_units(tag.parts) if tag.name == INLINE_FOOTNOTE else []
        own_units.append(unit)
    return own_units


def _changed(parts: Sequence[Part], translations: Translations) -> list[Unit]:
    """Return the units whose translations differ from their texts."""
    texts = translations.by_text
    return [unit for unit in units_of(parts) if unit.plain in texts and texts[unit.plain].text != unit.plain]


def _as_html(tag: Tag) -> Tag:
    """Return a tag of emphasis as HTML; other tags stay.

    Markdown does not read ``**`` as emphasis next to some characters, such as Chinese punctuation.
    """
    if tag.kind == "point" or tag.parts[0] not in _HTML:
        return tag
    slash = "/" if tag.kind == "close" else ""
    return Tag(tag.place, (f"<{slash}{_HTML[str(tag.parts[0])]}>",), tag.kind, tag.name)


def _marks_of(parsed: tuple[Sequence[Token], Sequence[Span]], source: str, inside: Callable[[str], Marks]) -> Marks:
    """Return the marks and the code of a paragraph, each sorted: a translation may have another order.

    Args:
        parsed: See ``tokens_of``.
        source: The paragraph.
        inside: Returns those of the text of a footnote in it.
    """
    tokens, spans = parsed
    marks, code = [], []
    waiting = [*tokens]
    while waiting:
        token = waiting.pop()
        if token.type == "image":
            waiting += token.children or []
        if token.type == "code_inline":
            code.append(token.content)
        elif token.type == "html_inline":
            marks.append(_MARK_OF_HTML.get(token.content, "html"))
        elif token.type not in _TEXT:
            marks.append(" ".join([token.type, *(str(value) for key, value in token.attrs.items() if key != "title")]))
    for span in spans:
        if span.name == INLINE_FOOTNOTE:
            marks.append(f"{INLINE_FOOTNOTE} {inside(source[span.start + 2 : span.end - 1])}")
        elif span.kind == "point":
            marks.append(f"point {span.name} {without_shown(source[span.start : span.end])}")
    marks += [
        _MARK_OF_HTML.get(source[span.start : span.end], f"{span.kind} {span.name}")
        for span in spans
        if span.kind in ("open", "close")
    ]
    return sorted(marks), sorted(code)


def structure(source: str) -> list[Any]:
    """Return the kinds of all blocks with their marks and code, without text and line breaks inside paragraphs."""
    blocks = blocks_of(source, False)
    return [entry for entry, _ in _structure(blocks, Checked([], [], blocks, Wrapper({}, {}, False)).marks)]


def _structure(blocks: Blocks, marks: Callable[[str], Marks]) -> list[tuple[Any, int]]:
    """Return the kind of each block with its marks or its code, and the number of its first line."""
    entries: list[tuple[Any, int]] = []
    line = 0
    for token in blocks.tokens:
        line = token.map[0] if token.map else line
        entry: Any = token.type
        if token.type in ("fence", "code_block"):
            entry = token.type, token.content
        elif token.type == "inline":
            text = "\n".join(part.strip() for part in token.content.split("\n"))
            entry = "inline", marks(text)
        entries.append((entry, line))
    return entries


def _differences(wanted: Sequence[tuple[Any, int]], made: Sequence[tuple[Any, int]]) -> list[int]:
    """Return the source's lines of the blocks that differ in the translation; of another number only the first."""
    lines = [line for (before, line), (after, _) in zip(wanted, made, strict=False) if before != after]
    if len(wanted) == len(made):
        return lines
    return lines[:1] or ([wanted[min(len(wanted), len(made)) - 1][1]] if wanted else [0])
