"""A page of HTML, cut into units: what is translated, what stays, and what the report must name.

    cut("<p>A <b>dog</b>.</p>", PageOptions()).parts     # ["<p>", Unit("A dog.", tags=<b>, </b>), "</p>"]

Elements are followed without building a tree, by the rules for closing tags that may be left out. Nothing is refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from dragoman.documents.document import Untranslated
from dragoman.documents.html.attributes import ODD, ODD_TEXT, TagReader
from dragoman.documents.html.elements import (
    ANNOTATION,
    BLOCKS,
    CODE,
    IN_SVG,
    SCOPES,
    TEXT_OF_SVG,
    VOID,
    closed_by,
    is_kept,
)
from dragoman.documents.html.sentences import Sentence
from dragoman.documents.html.spelling import Spelling
from dragoman.documents.html.tokens import ESCAPABLE, RAW, Token, tokens
from dragoman.documents.icu import UNREADABLE, has_message, with_messages
from dragoman.documents.shortcodes import words_in
from dragoman.documents.units import Part, Unit, possible, units_of

_CLOSING = re.compile(r"</([A-Za-z][^\s/>]*)")
_COMMENT = re.compile(r"<!--(?!\[|<!\[)|</")
"""A comment that is no condition of a browser, and an odd end tag, which is a comment to browsers."""
_TEMPLATE_TYPE = re.compile(r"html|template|handlebars|mustache", re.IGNORECASE)
_RUBY = "the reading of a word of the source (ruby)"
_PAST_SCOPES = SCOPES | {"tr", "tbody", "thead", "tfoot", "body"}
_FALLBACK = "shown only where the element around it is not"
_NOT_SHOWN = "text of an SVG outside its text elements"
_NO_END = "a tag without an end, which browsers drop with all that follows"
_MOST_PARTS = 400
"""Largest number of parts of a page among which the end of a message is sought."""
_IN_SCRIPT = "a template in a script"


@dataclass(frozen=True)
class PageOptions:
    """Options of cutting a page."""

    ignored: Collection[str] = ()  # elements whose content is not translated; they stay inside their sentence
    splitting: Collection[str] = ()  # elements that end a sentence, against the default for their name
    non_splitting: Collection[str] = ()  # elements that do not
    attributes: bool = False  # translate attributes that a reader sees
    languages: tuple[str | None, str] | None = None  # of the page and its translation: written where the page says it
    is_xml: bool = False  # XHTML
    tgt_lang: str | None = None  # whose plural forms the messages of ICU get


@dataclass(frozen=True)
class Page:
    """The parts of a page, and what stays untranslated."""

    parts: list[Part]
    left: list[Untranslated]
    is_whole: bool = True  # False if a tag or a comment has no end, or another tag in it: browsers show less than all


def cut(source: str, options: PageOptions) -> Page:
    """Cut a page into units."""
    reader = _Reader(source, options)
    for token in tokens(source, options.is_xml):
        reader.read(token)
    page = reader.end()
    for unit in units_of(page.parts if options.is_xml else []):
        unit.escape = _InXml(unit.escape)
    if not has_message(source):
        return page
    left = list(page.left)
    return replace(page, parts=_with_messages(page.parts, options.tgt_lang, left), left=left)


@dataclass(frozen=True)
class _InXml:
    """Writes a translation as the page does, without characters that XML cannot hold."""

    first: Callable[[str], str]

    def __call__(self, text: str) -> str:
        return self.first(possible(text))


def _with_messages(parts: Sequence[Part], tgt_lang: str | None, left: list[Untranslated]) -> list[Part]:
    """Return parts whose messages of ICU, as Angular has them, are translated by their branches, or named in ``left``.

    The units inside tags, such as those of attributes, have messages too.
    """
    read: list[Part] = []
    until = 0  # index of the part behind a message that cannot be read
    for i, part in enumerate(parts):
        if isinstance(part, str):
            read.append(part)
            continue
        unit = _with_messages_in_tags(part, tgt_lang, left)
        branches: Unit | None = unit
        if i >= until and has_message(unit.text):
            branches = with_messages(unit, tgt_lang)
            until = until if branches else _end_of_message(parts, i)
        if i >= until and branches is not None:
            read.append(branches)
        else:
            left.append(Untranslated(unit.plain, UNREADABLE))
            read += unit.raw
    return read


def _with_messages_in_tags(unit: Unit, tgt_lang: str | None, left: list[Untranslated]) -> Unit:
    """Return a unit with the messages of ICU in the units of its tags; its source has the same units as its tags."""
    read: dict[int, list[Part]] = {}  # for the identity of a unit of a tag: what it becomes
    for part in (part for tag in unit.tags for part in tag.parts):
        if isinstance(part, Unit) and any(has_message(own.text) for own in units_of([part])):
            read[id(part)] = _with_messages([part], tgt_lang, left)
    if not read:
        return unit

    def changed(parts: Sequence[Part]) -> list[Part]:
        return [new for part in parts for new in read.get(id(part), [part])]

    tags = [replace(tag, parts=tuple(changed(tag.parts))) for tag in unit.tags]
    return replace(unit, tags=tags, raw=changed(unit.raw))


def _end_of_message(parts: Sequence[Part], first: int) -> int:
    """Return the index of the part behind those up to the brace that closes a message; other elements divide it."""
    depth = 0
    for i, part in enumerate(parts[first : first + _MOST_PARTS], first + 1):
        depth += part.text.count("{") - part.text.count("}") if isinstance(part, Unit) else 0
        if depth <= 0:
            return i
    return first + 1


@dataclass(frozen=True)
class _Element:
    """An element that is open."""

    name: str = ""
    is_translated: bool = True  # by the attribute translate
    is_code: bool = False  # its text is kept
    drawing: str = ""  # svg or math, if it stands in one of them
    breaks: bool = True  # its tags end a sentence
    kind: str = ""  # type of a script

    @property
    def is_shown(self) -> bool:
        """True if its text is translated."""
        return self.is_translated and not self.is_code and not self.drawing


@dataclass
class _Region:
    """An element inside a sentence whose text is kept; what is translated in it all the same has its own units."""

    depth: int  # number of elements around it
    name: str
    parts: list[Part]
    sentence: Sentence
    text: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self, source: str, options: PageOptions) -> None:
        self._source, self._options = source, options
        self._closed = {name.lower() for name in _CLOSING.findall(source)}
        self._tags = TagReader(source, options.attributes, options.languages)
        self._parts: list[Part] = []
        self._sentence = Sentence(self._closed)
        self._region: _Region | None = None
        self._annotations: list[Part] = []  # of the ruby that is open
        self._open: list[_Element] = []
        self._places: dict[str, list[int]] = defaultdict(list)  # for a name: where it stands among the open elements
        self._scopes: list[int] = []
        self._is_whole = True

    def read(self, token: Token) -> None:
        """Read the next token."""
        raw = self._source[token.start : token.end]
        self._is_whole &= _has_end(token, raw)
        if token.kind == "open":
            self._opened(token)
        elif token.kind == "close":
            self._closing(token, raw)
        elif token.kind == "hidden":
            self._name_hidden(token, raw)
            self._boundary([raw])
        elif token.kind == "text" and self._region and self._region.name in ANNOTATION:
            self._region.text.append(Spelling.of(raw).text)
            self._boundary([raw])
        elif token.kind == "text" and self._top.drawing == "svg" and self._top.is_translated and raw.strip():
            self._tags.left.append(Untranslated(Spelling.of(raw).text.strip(), _NOT_SHOWN))
            self._boundary([raw])
        elif (
            token.kind == "statement" or not self._top.is_shown or (token.kind == "comment" and not _COMMENT.match(raw))
        ):
            self._boundary([raw])
        elif token.kind == "text" and ODD.search(raw):
            self._tags.left.append(Untranslated(ODD.sub("\ufffd", raw), ODD_TEXT))
            self._boundary([raw])
        elif token.kind == "text":
            self._text(raw)
        elif token.kind == "cdata":
            self._current.text(raw, raw[9:].removesuffix("]]>"))
        else:
            self._tags.left += words_in(raw) if raw.startswith("[") else []
            self._current.tag(token.half or "edge", token.name, [raw])

    def end(self) -> Page:
        """Return the page."""
        self._leave(0)
        self._boundary([])
        return Page(self._parts, self._tags.left, self._is_whole)

    @property
    def _top(self) -> _Element:
        return self._open[-1] if self._open else _Element()

    @property
    def _current(self) -> Sentence:
        return self._region.sentence if self._region else self._sentence

    def _boundary(self, parts: Sequence[Part]) -> None:
        """End the sentence, and write source behind it."""
        if self._region:
            self._region.parts += [*self._region.sentence.end(), *parts]
            return
        self._flush_annotations()
        self._parts += [*self._sentence.end(), *parts]

    def _flush_annotations(self) -> None:
        if self._annotations:
            self._sentence.tag("point", "", self._annotations)
            self._annotations = []

    def _text(self, raw: str) -> None:
        if raw.strip() and not self._region:
            self._flush_annotations()
        if self._top.name != "textarea":
            self._current.text(raw)
            return
        for number, line in enumerate(re.split(r"(\r?\n)", raw)):  # the lines of a text field stay lines
            if number % 2:
                self._boundary([line])
            elif line:
                self._current.text(line)

    def _name_hidden(self, token: Token, raw: str) -> None:
        """Name text that stays though someone may see it."""
        why = {"iframe": _FALLBACK, "noembed": _FALLBACK, "noframes": _FALLBACK, "": _NO_END}.get(token.name)
        if token.name == "script" and _TEMPLATE_TYPE.search(self._top.kind):
            why = _IN_SCRIPT
        if why and self._top.is_translated and any(map(str.isalpha, raw)):
            self._tags.left.append(Untranslated(raw, why))

    # --- elements ---

    def _opened(self, token: Token) -> None:
        closes = frozenset() if token.is_foreign else closed_by(token.name)
        while self._open and self._open[-1].name in closes:
            self._leave(len(self._open) - 1)
        while self._top.drawing and not token.is_foreign:
            self._leave(len(self._open) - 1)
        if token.name not in ANNOTATION and not self._region:
            self._flush_annotations()
        values = self._tags.values(token)
        element = self._element(token, values)
        parts = self._tags.parts(token, values, element.is_translated)
        is_void = token.name in VOID and not token.is_foreign
        is_single = is_void or (token.is_single and self._is_single(token))
        around = self._top
        if not element.is_shown and around.is_shown and not element.breaks and not self._region and not is_single:
            self._region = _Region(len(self._open), token.name, parts, Sentence(self._closed))
        elif not around.is_shown or element.breaks or not (element.is_shown or is_single):
            self._boundary(parts)
        elif is_single:
            self._current.tag("edge" if is_void else "point", token.name, parts)
        else:
            self._current.tag("open", token.name, parts)
        if not is_single:
            self._places[token.name].append(len(self._open))
            if token.name in SCOPES:
                self._scopes.append(len(self._open))
            self._open.append(element)

    def _is_single(self, token: Token) -> bool:
        """True if a tag that ends in ``/>`` opens nothing; browsers do not heed the slash of HTML's own elements."""
        if self._options.is_xml or token.is_foreign or token.name in ("svg", "math"):
            return True
        return token.name not in BLOCKS and token.name not in RAW and token.name not in ESCAPABLE

    def _element(self, token: Token, values: dict[str, str]) -> _Element:
        around, name = self._top, token.name
        translate = values.get("translate", "-").strip().lower()
        is_translated, is_code, drawing = around.is_translated, around.is_code, around.drawing
        if translate == "no" or "notranslate" in values.get("class", "").split():
            is_translated = False
        if name in CODE or name in self._options.ignored:
            is_code = True
        if "class" in values and is_kept(values["class"], self._source[token.end : token.end + 40]):
            is_code = True
        if name in ANNOTATION and self._places["ruby"] and not token.is_foreign:
            is_code = True
        if translate in ("yes", ""):
            is_translated, is_code = True, name in self._options.ignored
        if name in ("svg", "math"):
            drawing = name
        elif token.is_foreign and name in TEXT_OF_SVG:
            drawing = ""
        return _Element(name, is_translated, is_code, drawing, self._breaks(token), values.get("type", ""))

    def _breaks(self, token: Token) -> bool:
        """True if the tags of an element end a sentence; the caller's lists come before the defaults of HTML."""
        name = token.name
        if name in self._options.splitting:
            return True
        if name in self._options.non_splitting or name in self._options.ignored:
            return False
        if token.is_foreign:
            return name in IN_SVG
        return name in BLOCKS or "{" in name or "<" in name

    def _closing(self, token: Token, raw: str) -> None:
        places = self._places.get(token.name)
        scope = self._scopes[-1] if self._scopes and token.name not in _PAST_SCOPES else -1
        if not places or places[-1] < scope:
            if not self._top.is_shown or self._breaks(token):
                self._boundary([raw])
            else:
                self._current.tag("edge", token.name, [raw])
            return
        depth = places[-1]
        self._leave(depth + 1)
        element = self._open[depth]
        if self._region and self._region.depth == depth:
            self._boundary([raw])
            self._leave(depth)
            return
        self._leave(depth)
        if not element.is_shown or not self._top.is_shown or element.breaks:
            self._boundary([raw])
        elif token.name == "ruby" and not self._region:
            self._sentence.tag("close", "ruby", [*self._annotations, raw])
            self._annotations = []
        else:
            self._current.tag("close", token.name, [raw])

    def _leave(self, depth: int) -> None:
        """Close the elements from a depth on."""
        while len(self._open) > depth:
            element = self._open.pop()
            self._places[element.name].pop()
            if self._scopes and self._scopes[-1] == len(self._open):
                self._scopes.pop()
            if self._region and self._region.depth == len(self._open):
                self._end_region(self._region)

    def _end_region(self, region: _Region) -> None:
        self._boundary([])
        self._region = None
        if region.name not in ANNOTATION:
            self._sentence.tag("edge" if region.name in ("svg", "math") else "point", region.name, region.parts)
            return
        self._annotations += region.parts
        text = "".join(region.text).strip()
        if region.name != "rp" and any(map(str.isalpha, text)):
            self._tags.left.append(Untranslated(text, _RUBY))


def _has_end(token: Token, raw: str) -> bool:
    """Return whether markup ends before the page does and before the next tag, unlike ``values <min are <b>``."""
    if token.kind == "text" or (token.kind == "hidden" and token.name):
        return True
    return (raw.endswith(">") or not raw.startswith("<")) and not any("<" in own.name for own in token.attributes)
