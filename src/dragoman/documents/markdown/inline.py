"""The text of a paragraph, heading or cell as units: its tags and what the model must not read become tags."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

from dragoman.documents.document import Untranslated
from dragoman.documents.html.attributes import quoted
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.markdown.escaping import in_quotes, in_title, outside_code
from dragoman.documents.markdown.masks import CODE_ELEMENTS, INLINE_FOOTNOTE, MASK, Span, masked, spans
from dragoman.documents.markdown.programs import TEXT_OF_YAML
from dragoman.documents.units import Part, Tag, Unit, join_notes, join_points, units_of
from dragoman.errors import ConfigError, not_installed

if TYPE_CHECKING:
    from markdown_it.token import Token

SPACE = "\ue001"
"""Stands behind an entity that is a space, until the spaces around it are taken away."""

_TITLE = re.compile(
    r"(?<=\s)(?:\"(?:[^\"\\]|\\.)*\"\s*\)\Z|'(?:[^'\\]|\\.)*'\s*\)\Z|\((?:[^()\\]|\\.)*\)\s*\)\Z)", re.DOTALL
)
_VALUE = r"=(?:\"([^\"\\]*)\"|'([^'\\]*)'|\{[ \t]*+(?:\"([^\"\\\n]*)\"|'([^'\\\n]*)')[ \t]*+\})"
_SHOWN = re.compile(
    r"(?<=[\s{])(?:title|alt|caption|label|description|heading|placeholder|summary|subtitle|aria-label|alt-text)"
    + _VALUE
)
"""An attribute that readers see, of a tag or a shortcode."""
_CONTENT = re.compile(r"(?<=[\s{])(?:content|text|message|body)" + _VALUE)
"""An attribute of a component or a shortcode that holds what it shows, if it has words."""
_HAS_CONTENT = re.compile(r"\{|<[A-Z]")
_OPENED, _CLOSED = re.compile(r"<([A-Za-z][\w.:-]*)"), re.compile(r"</([A-Za-z][\w.:-]*)")
_HTML_NAME = re.compile(r"</?([A-Za-z][\w.:-]*)")
_HIDDEN = re.compile(r"\btranslate\s*=\s*[\"']?no\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]+`")
_BRACKETS = frozenset("()[]")
_KINDS = {
    "em_open": "open", "strong_open": "open", "s_open": "open", "em_close": "close", "strong_close": "close",
    "s_close": "close",
}  # fmt: skip


@cache
def parser() -> Any:
    """Return the parser of the text inside paragraphs."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise ConfigError(not_installed("reading Markdown", "markdown-it-py")) from None
    from dragoman.documents.markdown.places import PlacedInline

    made: Any = MarkdownIt("commonmark", {"maxNesting": 40})
    made.inline = PlacedInline()
    made.normalizeLink, made.validateLink = str, bool  # addresses are compared as they are written
    made.inline.ruler.enableOnly([*made.get_active_rules()["inline"], "strikethrough"])
    made.inline.ruler.disable("linkify")
    made.inline.ruler2.disable("fragments_join")
    return made


def tokens_of(source: str, references: dict[str, Any], mdx: bool) -> tuple[list[Token], list[Span]]:
    """Return the tokens of a paragraph's source with their places, and its spans."""
    from dragoman.documents.markdown.places import merged

    found_spans = spans(source, mdx, references)
    made = parser()
    return merged(made.inline.parse(masked(source, found_spans), made, {"references": references}, [])), found_spans


@dataclass(frozen=True)
class Paragraph:
    """The source of a paragraph without the markers of quotes and lists in front of its lines."""

    text: str
    between: tuple[str, ...]
    """Source between two lines: the line end and the markers of the next line."""


@dataclass(frozen=True)
class Wrapped:
    """A unit with line breaks in its source, which the model reads as spaces."""

    unit: Unit
    breaks: tuple[tuple[int, str], ...]
    """For each line break: its place in the source with a space for each break, and its own source."""
    size: int
    """Number of characters of that source."""


def units(
    paragraph: Paragraph, references: dict[str, Any], mdx: bool, escape: Callable[[str], str]
) -> tuple[list[Part], list[Wrapped], list[Untranslated]] | None:
    """Return the units of a paragraph, divided by hard line breaks, and words in its tags that stay.

    Returns None if its tokens are not in its order.
    """
    tokens, found_spans = tokens_of(paragraph.text, references, mdx)
    walk = _Walk(paragraph, found_spans, escape, lambda inside: units(inside, references, mdx, escape))
    if not walk.follow(tokens, 0) or walk.at != len(paragraph.text):
        return None
    walk.end_unit()
    return walk.parts, walk.wrapped, walk.left


class _Walk:
    """Follows the tokens of a paragraph and collects its units."""

    def __init__(
        self, paragraph: Paragraph, found_spans: Sequence[Span], escape: Callable[[str], str],
        inside: Callable[[Paragraph], tuple[list[Part], list[Wrapped], list[Untranslated]] | None],
    ) -> None:  # fmt: skip
        self.source, self.between, self.escape, self.inside = paragraph.text, paragraph.between, escape, inside
        self.line_ends = [match.start() for match in re.finditer("\n", paragraph.text)]
        self.spans, self.span_starts = found_spans, [span.start for span in found_spans]
        self.at = 0
        self.parts: list[Part] = []
        self.unit = Unit(escape=escape)
        self.entities: dict[str, str] = {}  # by character: the entity that wrote it
        self.escaped = Counter[str]()  # brackets of the open unit that have a backslash
        self.wrapped: list[Wrapped] = []
        self.left: list[Untranslated] = []
        self.breaks: list[tuple[int, str]] = []  # of the open unit, see ``Wrapped``
        self.start, self.shrunk = 0, 0  # where the open unit begins, and how much shorter spaces are than its breaks
        self.elements = set(_OPENED.findall(paragraph.text)) & set(_CLOSED.findall(paragraph.text))
        self.open_elements = Counter[str]()
        self.n_open = 0  # opening tags of the open unit without their closing ones
        self.opened: list[tuple[str, int]] = []  # links and images that are not closed, and where their text begins
        self.is_apart = False  # the tag to add stands between two units

    def original(self, start: int, end: int) -> str:
        """Return the document's source of a stretch, with the markers of quotes and lists in front of its lines."""
        first, last = bisect_left(self.line_ends, start), bisect_left(self.line_ends, end)
        if first == last:
            return self.source[start:end]
        pieces = []
        for i in range(first, last):
            pieces += [self.source[start : self.line_ends[i]], self.between[i]]
            start = self.line_ends[i] + 1
        return "".join([*pieces, self.source[start:end]])

    def end_unit(self) -> None:
        """Add the open unit to the parts and begin a new one."""
        # Some programs read a formula between brackets with backslashes. A unit with other brackets too gets none.
        escaped = {sign: f"\\{sign}" for sign, n in self.escaped.items() if n == self.unit.text.count(sign)}
        self.entities = {**escaped, **self.entities}
        if self.entities:
            self.unit.escape = with_entities(self.unit.escape, self.entities)
        if self.unit.raw:
            join_points(self.unit)
            if not self.breaks:
                join_notes(self.unit)
            self.parts.append(self.unit)
        if self.breaks:
            self.wrapped.append(Wrapped(self.unit, tuple(self.breaks), self.at - self.start - self.shrunk))
        self.unit, self.entities, self.breaks = Unit(escape=self.escape), {}, []
        self.escaped.clear()
        self.start, self.shrunk, self.n_open = self.at, 0, 0

    def follow(self, tokens: Sequence[Token], shift: int) -> bool:
        """Add all tokens, whose places are counted from ``shift``; False if one stands before the one before it."""
        hidden_until = -1
        closers = ends_of_untranslated(tokens, self.source, shift)
        divided = tags_around_breaks(tokens, self.source, shift)
        for i, token in enumerate(tokens):
            start, end = token.meta["at"][0] + shift, token.meta["at"][1] + shift
            if start < hidden_until:
                continue
            if end < self.at or (start < self.at and token.type not in ("text", "link_close")):
                return False
            self.is_apart = i in divided
            if token.type == "html_inline" and i in closers:
                hidden_until = closers[i]
                self._tag(max(start, self.at), hidden_until, "point", "")
            elif not self._follow_one(token, max(start, self.at), end):
                return False
        return True

    def _follow_one(self, token: Token, start: int, end: int) -> bool:
        """Add a token that stands from ``start`` to ``end``."""
        kind = token.type
        if start > self.at and kind not in ("softbreak", "hardbreak"):
            return False
        if kind == "text":
            self._text(start, end)
        elif kind == "text_special":
            self._special(start, end, token.content)
        elif kind in ("softbreak", "hardbreak"):
            return self._break(kind, end)
        elif kind in _KINDS:
            role: Any = _KINDS[kind]
            self._tag(start, end, role, token.markup)
        elif kind == "html_inline":
            self._html(start, end)
        elif kind == "code_inline":
            source = self.source[start:end]
            # Plain code stays in the text: translation copies it, and the alignment finds its place.
            if _CODE.fullmatch(source) and MASK not in source and source.strip("` "):
                self._add_text(source, source, end)
            else:
                self._tag(start, end, "point", "")
        elif kind == "link_open" and token.markup == "autolink":
            self._tag(start, end, "point", "")
        elif kind == "link_open":
            self._part_elements(start, "link")
            self.opened.append(("link", end))
            self._tag(start, end, "open", "link")
        elif kind == "link_close":
            return token.markup == "autolink" or self._end_of_link("link", end)
        elif kind == "image":
            self.opened.append(("image", start + 2))
            self._tag(start, start + 2, "open", "image")
            from dragoman.documents.markdown.places import merged

            return self.follow(merged(token.children or []), start + 2) and self._end_of_link("image", end)
        else:
            return False
        return True

    def _part_elements(self, start: int, name: str) -> None:
        """End the unit between two links or shortcodes side by side, whose words would run together."""
        tags = self.unit.tags
        is_behind_one = bool(tags) and tags[-1].name == name and tags[-1].kind == "close"
        if is_behind_one and tags[-1].place == len(self.unit.text) and start == self.at and not self.n_open:
            self.end_unit()

    def _add_text(self, source: str, text: str, end: int) -> None:
        self.unit.text += text
        self.unit.raw.append(source)
        self.at = end

    def _text(self, start: int, end: int) -> None:
        """Add text, with the spans inside it as tags."""
        i = max(0, bisect_right(self.span_starts, start) - 1)
        while start < end:
            while i < len(self.spans) and self.spans[i].end <= start:
                i += 1
            span = self.spans[i] if i < len(self.spans) and self.spans[i].start < end else None
            if span is None or span.start > start:
                stop = end if span is None else span.start
                self._add_text(self.original(start, stop), self.source[start:stop], stop)
            elif span.kind == "text":
                stop = min(end, span.end)
                self._add_text(self.original(start, stop), self.source[start:stop], stop)
            else:
                stop = min(end, span.end)
                if span.kind == "open" and span.name == "shortcode":
                    self._part_elements(start, span.name)
                if span.name.startswith("jsx"):
                    self._html(start, stop, span)
                elif span.name == INLINE_FOOTNOTE:
                    self._tag(start, stop, "point", span.name, *self._footnote(start, stop))
                else:
                    shown = self._with_markers(shown_in(self.source[start:stop]), start)
                    self._tag(start, stop, span.kind, span.name, *shown)
            start = stop

    def _footnote(self, start: int, end: int) -> list[Part]:
        """Return a footnote such as ``^[A dog.]`` with units of its own: its words are no part of the sentence."""
        first, last = bisect_left(self.line_ends, start), bisect_left(self.line_ends, end)
        made = self.inside(Paragraph(self.source[start + 2 : end - 1], self.between[first:last]))
        self.left += [] if made is None else made[2]
        return [self.original(start, end)] if made is None else ["^[", *made[0], "]"]

    def _special(self, start: int, end: int, text: str) -> None:
        """Add an escaped character or an entity."""
        source = self.source[start:end]
        if source.startswith("\\"):
            if text in _BRACKETS:
                self.escaped[text] += 1
            self._add_text(source, text, end)
        elif text.isspace():
            self.unit.tags.append(Tag(len(self.unit.text), (source + SPACE,)))
            self._add_text(source, " ", end)
        elif text.isprintable():
            self.entities.setdefault(text, source)
            self._add_text(source, text, end)
        else:  # a soft hyphen, a mark of direction
            self._tag(start, end, "point", "")

    def _tag(self, start: int, end: int, kind: Literal["open", "close", "point"], name: str, *parts: Part) -> None:
        """Add a tag to the open unit; one that ``is_apart`` ends the unit."""
        written = parts or (self.original(start, end),)
        if self.is_apart:
            self.end_unit()
            self.parts += written
            self.at = self.start = end
            return
        self.unit.tags.append(Tag(len(self.unit.text), written, kind, name))
        self.n_open += (kind == "open") - (kind == "close")
        self.unit.raw += written
        self.at = end

    def _html(self, start: int, end: int, span: Span | None = None) -> None:
        """Add an HTML or JSX tag, with units for what people read of its attributes."""
        source = self.source[start:end]
        named = _HTML_NAME.match(source)
        if named is not None and named[1].lower() == "br":
            self.end_unit()
            self.parts.append(self.original(start, end))
            self.at = self.start = end
            return
        is_single = named is None or source.endswith("/>") or named[1].lower() in ("img", "input", "hr", "wbr")
        kind: Any = span.kind if span is not None else "point"
        if span is None and not is_single and named is not None:
            kind = "close" if source.startswith("</") else "open"
            # half of an element, such as <source>: it stands where its neighbours do
            if named[1] not in self.elements or (kind == "close" and not self.open_elements[named[1]]):
                kind = "point"
            else:
                self.open_elements[named[1]] += 1 if kind == "open" else -1
        is_component = span is not None or _HAS_CONTENT.match(source)
        shown = shown_in(source) if is_component else attributes(source, self.left)
        self._tag(start, end, kind, named[1] if named else "", *self._with_markers(shown, start))

    def _with_markers(self, parts: Sequence[Part], start: int) -> list[Part]:
        """Return the parts of a tag that begins at ``start`` with the markers in front of its lines."""
        marked: list[Part] = []
        for part in parts:
            end = start + len(part if isinstance(part, str) else "".join(map(str, part.raw)))
            source = self.original(start, end)
            marked.append(source if isinstance(part, str) else replace(part, raw=[source]))
            start = end
        return marked

    def _end_of_link(self, name: str, end: int) -> bool:
        """Add the end of a link or image with its address and title.

        A link such as ``[label]`` refers to a definition by its text. The translation gets ``[text][label]`` instead.
        """
        if not self.opened or self.opened[-1][0] != name:
            return False
        _, text_start = self.opened.pop()
        start, source = self.at, self.original(self.at, end)
        if source in ("]", "][]"):
            label = " ".join(self.source[text_start:start].split())
            self.unit.tags.append(Tag(len(self.unit.text), (f"][{label}]",), "close", name))
            self.n_open -= 1
            self.unit.raw.append(source)
            self.at = end
            return True
        title = _TITLE.search(source)
        if title is None or not source.startswith("](") or not source[: title.start()].strip(" \n\t]("):
            self._tag(start, end, "close", name)
            return True
        first = title.start() + 1
        last = first + len(title[0][:-1].rstrip()) - 2
        self._tag(
            start, end, "close", name, source[:first], title_unit(source[first:last], source[first - 1]), source[last:]
        )
        return True

    def _break(self, kind: str, end: int) -> bool:
        """Move past a line break: a hard break ends the unit, a soft break becomes a space inside it."""
        start = self.at
        line_end = self.source.find("\n", start, end)
        if line_end < 0:
            return False
        written = self.original(start, end)
        if kind == "hardbreak":
            self.end_unit()
            self.parts.append(written)
            self.at = self.start = end
        else:
            self.breaks.append((start - self.start - self.shrunk, written))
            self.shrunk += end - start - 1
            self._add_text(written, " ", end)
        return True


def ends_of_untranslated(tokens: Sequence[Token], source: str, shift: int) -> dict[int, int]:
    """Return for the number of each tag whose element is not translated the place behind the element's end."""
    last: dict[str, list[int]] = {}
    ends: dict[int, int] = {}
    for i in range(len(tokens) - 1, -1, -1):
        if tokens[i].type != "html_inline":
            continue
        start, end = tokens[i].meta["at"][0] + shift, tokens[i].meta["at"][1] + shift
        named = _HTML_NAME.match(source, start)
        if named is None or source.endswith("/>", start, end):
            continue
        name = named[1].lower()
        if source.startswith("</", start):
            last.setdefault(name, []).append(end)
        elif closing := last.get(name):
            behind = closing.pop()
            if name in CODE_ELEMENTS or _HIDDEN.search(source, start, end):
                ends[i] = behind
    return ends


def tags_around_breaks(tokens: Sequence[Token], source: str, shift: int) -> set[int]:
    """Return the numbers of both tags of each element that a hard line break divides.

    The words around such an element are units of their own: they must not come inside it, and it stays whole.
    """
    waiting: list[tuple[int, str, int]] = []  # of each open element: its tag, its name, and the breaks before it
    n_breaks = 0
    divided: set[int] = set()
    for i, token in enumerate(tokens):
        kind, name = token.nesting, token.tag
        if token.type == "html_inline":
            start, end = token.meta["at"][0] + shift, token.meta["at"][1] + shift
            named = _HTML_NAME.match(source, start)
            name = f"<{named[1].lower()}" if named is not None else ""
            kind = -1 if source.startswith("</", start) else 0 if source.endswith("/>", start, end) else 1
        if token.type == "hardbreak" or name == "<br":
            n_breaks += 1
        elif kind == 1 and name:
            waiting.append((i, name, n_breaks))
        elif kind == -1 and any(own == name for _, own, _ in waiting[-MOST_ELEMENTS:]):
            while waiting[-1][1] != name:  # nobody closes it
                waiting.pop()
            first, _, n_before = waiting.pop()
            divided |= {first, i} if n_breaks > n_before else set()
    return divided


MOST_ELEMENTS = 40
"""Number of open elements among which the opening tag of a closing one is sought."""


def attributes(tag: str, left: list[Untranslated]) -> list[Part]:
    """Return an HTML tag as parts, with a unit for each attribute that people read; words that stay go to ``left``."""
    if "=" not in tag:
        return [tag]
    parts: list[Part] = []
    page = cut(tag, PageOptions(attributes=True))
    left += page.left
    for part in page.parts:
        is_text = isinstance(part, str) or bool(part.plain)
        parts += [part] if is_text else [piece for inside in part.tags for piece in inside.parts]  # type: ignore[union-attr]
    written = "".join(part if isinstance(part, str) else "".join(map(str, part.raw)) for part in parts)
    return parts if written == tag and any(unit.plain for unit in units_of(parts)) else [tag]


def shown_in(source: str) -> list[Part]:
    """Return a component or a shortcode as parts, with a unit for each quoted attribute that people read."""
    if "=" not in source or not source.startswith(("<", ":", "{:", "{{<", "{{%", "{%")) or source.startswith("<%"):
        return [source]
    is_html = source.startswith(("<", ":"))
    parts: list[Part] = []
    at = 0
    for match in _shown(source):
        group = match.lastindex or 0
        raw, quote = match[group], source[match.end(group)]
        has_code, in_script = "{" in raw or "}" in raw, group > 2  # groups 3 and 4 are strings of JavaScript
        if (has_code and in_script) or (not is_html and (has_code or in_script)):
            continue
        if has_code:
            unit = quoted(raw, quote)
        elif in_script:
            unit = [Unit(raw, raw=[raw], escape=partial(_in_string, quote=quote))]
        elif is_html:
            unit = [Unit(html.unescape(raw), raw=[raw], escape=partial(_in_attribute, quote=quote))]
        else:
            unit = [Unit(raw, raw=[raw], escape=in_quotes)]
        parts += [source[at : match.start(group)], *unit]
        at = match.end(group)
    return [*parts, source[at:]]


def _shown(source: str) -> list[re.Match[str]]:
    """Return the attributes of a tag, a component or a shortcode that readers see."""
    shown = list(_SHOWN.finditer(source))
    if _HAS_CONTENT.match(source):
        shown += [match for match in _CONTENT.finditer(source) if TEXT_OF_YAML.search(match[match.lastindex or 0])]
    return sorted(shown, key=re.Match.start)


def without_shown(source: str) -> str:
    """Return a tag or a shortcode without the attributes that readers see."""
    for match in reversed(_shown(source)):
        source = source[: match.start()] + source[match.end() :]
    return source


def _in_string(text: str, quote: str) -> str:
    """Return text for a string of JavaScript, with a quote that needs no escape."""
    return text.replace("\\", "\\\\").replace(quote, "\u201d" if quote == '"' else "\u2019")


def _in_attribute(text: str, quote: str) -> str:
    return html.escape(text, quote=False).replace(quote, html.escape(quote))


def title_unit(source: str, sign: str) -> Unit:
    """Return the unit of a link's title, given without its quotes, of which ``sign`` is the first."""
    from markdown_it.common.utils import unescapeAll

    return Unit(unescapeAll(source), raw=[source], escape=partial(in_title, sign=sign))


_ONE = re.compile(r"\\?.", re.DOTALL)
"""A character, and the backslash before it."""


def with_entities(escape: Callable[[str], str], entities: dict[str, str]) -> Callable[[str], str]:
    """Return a function that escapes text and writes some characters as entities, except inside code and addresses."""
    table = {ord(character): entity for character, entity in entities.items() if len(character) == 1}

    def written(text: str) -> str:
        # An entity needs no backslash, which would escape its ampersand.
        return _ONE.sub(lambda match: table.get(ord(match[0][-1]), match[0]), text)

    if "`" in entities:  # between two of them stands no code
        return lambda text: written(escape(text))
    return lambda text: outside_code(escape(text), written)
