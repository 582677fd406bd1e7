"""Tokens of a page by the tokenizer of the HTML standard, with their places in the source.

    [token.kind for token in tokens('<p class="a"">A dog.')]     # ["open", "text"]

The content of a script or a style ends at its end tag; comments, stray quotes and values without quotes are read as
browsers read them. Code of template languages is a token of its own, and may stand anywhere within a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from dragoman.documents.html.elements import names
from dragoman.documents.html.templates import START, Templates

Kind = Literal["text", "open", "close", "comment", "cdata", "value", "statement", "hidden"]
"""``comment``: also a doctype and what a browser reads as a comment; ``value`` and ``statement``: code of a template;
``hidden``: text that no one sees, of a script, a style, a frame or a tag without an end."""

RAW = frozenset(["script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"])
"""Elements whose content is no HTML."""
ESCAPABLE = frozenset(["textarea", "title"])
"""Elements whose content is text without tags."""
_HTML_IN_SVG = frozenset(["foreignobject", "desc", "title"])
_HTML_IN_MATH = frozenset(["mi", "mo", "mn", "ms", "mtext", "annotation-xml"])
_ENDS_FOREIGN = names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
"""Elements before which an SVG or a formula that is still open ends."""

_SPECIAL = re.compile(rf"<|{START.pattern}")
_COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE(?:[^<>\"'\[]++|\"[^\"]*+\"|'[^']*+')*+(?:>|(\[))")
"""That of XML: its addresses may have any sign, and declarations stand in brackets."""
_TAG = re.compile(r"</?[A-Za-z]")
SPACES = r" \t\n\f\r"
"""What divides the parts of a tag; a no-break space, for one, is part of a value without quotes."""

_GAP = re.compile(rf"[{SPACES}/]*")
_NAME = re.compile(rf"[^{SPACES}/>{{<]*")
_ATTRIBUTE = re.compile(rf"=?[^{SPACES}/>={{<]*")
_EQUALS = re.compile(rf"[{SPACES}]*=[{SPACES}]*")
_INSIDE = {'"': re.compile(r'[^"{<]*'), "'": re.compile(r"[^'{<]*"), "": re.compile(rf"[^{SPACES}>{{<]*")}
_SCRIPT = re.compile(rf"<!--|-->|<(/?)script(?=[{SPACES}/>])", re.IGNORECASE)
_END_TAG = re.compile(rf"</(style|xmp|iframe|noembed|noframes|textarea|title)(?=[{SPACES}/>])", re.IGNORECASE)


@dataclass(frozen=True)
class Attribute:
    """An attribute of a tag: its name in lower case, and where its value stands, without quotes."""

    name: str
    start: int
    end: int
    quote: str = ""


@dataclass
class Token:
    """A part of the source; the tokens of a page, one after another, are its source."""

    kind: Kind
    start: int
    end: int
    name: str = ""
    attributes: list[Attribute] = field(default_factory=list)
    is_single: bool = False  # its tag ends in "/>"
    is_foreign: bool = False  # stands in an SVG or a formula
    half: Literal["open", "close", ""] = ""  # of a pair of shortcodes


def tokens(source: str, is_xml: bool = False) -> Iterator[Token]:
    """Yield the tokens of a page.

    Args:
        source: Any text.
        is_xml: True for XHTML: CDATA is text everywhere, and a tag that ends in ``/>`` opens nothing.
    """
    return _Tokenizer(source, is_xml).tokens()


class _Tokenizer:
    def __init__(self, source: str, is_xml: bool) -> None:
        self._source, self._is_xml = source, is_xml
        self._templates = Templates(source)
        self._foreign: list[str] = []  # SVGs and formulas that are open, and the HTML in them, innermost last

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens of the source."""
        at = 0
        while at < len(self._source):
            for token in self._text(at, len(self._source)):
                yield token
                at = token.end
            if at == len(self._source):
                return
            token = self._markup(at)
            at = token.end
            yield token
            if token.kind == "open" and not token.is_foreign and not (token.is_single and self._is_xml):
                for content in self._content(token.name, at):
                    yield content
                    at = content.end

    def _text(self, at: int, end: int, tags: bool = True) -> Iterator[Token]:
        """Yield text and code up to ``end``, or up to the next markup if ``tags``."""
        start = at
        while at < end:
            special = _SPECIAL.search(self._source, at, end)
            if special is None:
                break
            at = special.start()
            code = self._templates.at(at)
            if code and code.end <= end:
                if start < at:
                    yield Token("text", start, at)
                kind: Kind = "value" if code.is_value else "statement"
                yield Token(kind, at, code.end, code.name, half=code.half)
                start = at = code.end
            elif tags and special[0][0] == "<" and self._is_markup(at):
                if start < at:
                    yield Token("text", start, at)
                return
            else:
                at += 1
        if start < end:
            yield Token("text", start, end)

    def _is_markup(self, at: int) -> bool:
        following = self._source[at + 1 : at + 2]
        if following in ("!", "?") or (following.isascii() and following.isalpha()):
            return True
        if following == "/":
            return at + 2 < len(self._source)
        return following == "{" and self._templates.at(at + 1, in_text=False) is not None

    def _markup(self, at: int) -> Token:
        source = self._source
        if source.startswith("<!--", at):
            match = _COMMENT.match(source, at)
            assert match is not None
            return Token("comment", at, match.end())
        if source.startswith("<![CDATA[", at) and (self._is_xml or self._is_foreign()):
            end = source.find("]]>", at)
            return Token("cdata", at, len(source) if end < 0 else end + 3)
        named = _TAG.match(source, at)
        code_at = at + 1 + source.startswith("/", at + 1)
        if named or (source.startswith("{", code_at) and self._templates.at(code_at, in_text=False)):
            return self._tag(at)
        doctype = _DOCTYPE.match(source, at) if self._is_xml else None
        if doctype is not None and doctype[1]:
            end = source.find("]>", at)
            return Token("comment", at, len(source) if end < 0 else end + 2)
        if doctype is not None:
            return Token("comment", at, doctype.end())
        end = source.find(">", at)
        return Token("comment", at, len(source) if end < 0 else end + 1)

    def _is_foreign(self) -> bool:
        return bool(self._foreign) and self._foreign[-1] in ("svg", "math")

    def _tag(self, at: int) -> Token:
        closes = self._source.startswith("</", at)
        start = at + 1 + closes
        name_end = self._run(_NAME, start)
        token = Token("close" if closes else "open", at, at, self._source[start:name_end].lower())
        at = name_end
        size = len(self._source)
        while True:
            gap = _GAP.match(self._source, at)
            assert gap is not None
            at = gap.end()
            if at >= size:  # a browser drops a tag that never ends
                return Token("hidden", token.start, size)
            if self._source[at] == ">":
                token.end, token.is_single = at + 1, self._source[at - 1] == "/"
                break
            code = self._templates.at(at, in_text=False)
            at = code.end if code else self._attribute(at, token.attributes)
        token.is_foreign = self._is_foreign()
        self._follow(token)
        return token

    def _run(self, pattern: re.Pattern[str], at: int) -> int:
        """Return the end of a name or a value, past the code in it."""
        while True:
            match = pattern.match(self._source, at)
            assert match is not None
            at = match.end()
            if self._source[at : at + 1] not in ("{", "<"):
                return at
            code = self._templates.at(at, in_text=False)
            at = code.end if code else at + 1

    def _attribute(self, at: int, attributes: list[Attribute]) -> int:
        """Read an attribute; return the end of it."""
        name_end = max(self._run(_ATTRIBUTE, at), at + 1)
        name = self._source[at:name_end].lower()
        equals = _EQUALS.match(self._source, name_end)
        if equals is None:
            attributes.append(Attribute(name, name_end, name_end))
            return name_end
        start = equals.end()
        quote = self._source[start : start + 1]
        if quote == ">":
            return start
        quote = quote if quote in ('"', "'") else ""
        start += len(quote)
        end = self._run(_INSIDE[quote], start)
        attributes.append(Attribute(name, start, end, quote))
        return end + len(quote)

    def _follow(self, token: Token) -> None:
        """Note what is open of SVG and formulas."""
        name = token.name
        if token.kind == "close":
            if name in self._foreign:
                del self._foreign[len(self._foreign) - 1 - self._foreign[::-1].index(name) :]
        elif name in ("svg", "math"):
            if not token.is_single and len(self._foreign) < 100:
                self._foreign.append(name)
        elif self._is_foreign() and not token.is_single:
            inside = _HTML_IN_SVG if self._foreign[-1] == "svg" else _HTML_IN_MATH
            if name in inside and len(self._foreign) < 100:
                self._foreign.append(name)
            elif name in _ENDS_FOREIGN:
                token.is_foreign = False
                while self._is_foreign():
                    self._foreign.pop()

    def _content(self, name: str, at: int) -> Iterator[Token]:
        """Yield the content of an element that has no tags inside."""
        if name in ESCAPABLE:
            end = self._end(name, at)
            yield from self._text(at, end, tags=False)
        elif name in RAW:
            end = len(self._source)
            if name == "script":
                end = self._end_of_script(at)
            elif name != "plaintext":
                end = self._end(name, at)
            if at < end:
                yield Token("hidden", at, end, name)

    def _end(self, name: str, at: int) -> int:
        ends = (match.start() for match in _END_TAG.finditer(self._source, at) if match[1].lower() == name)
        return next(ends, len(self._source))

    def _end_of_script(self, at: int) -> int:
        """Return where a script ends: in a comment within it, another script may open and close."""
        in_comment = in_script = False
        for match in _SCRIPT.finditer(self._source, at):
            if match[0] == "<!--":
                in_comment = True
            elif match[0] == "-->":
                in_comment = in_script = False
            elif not match[1]:
                in_script = in_comment
            elif in_script:
                in_script = False
            else:
                return match.start()
        return len(self._source)
