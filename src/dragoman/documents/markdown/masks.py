"""Stretches inside a paragraph that the model must not read: shortcodes, formulas, footnote marks, attribute lists.

    spans("A dog.[^1]", mdx=False)  # [Span(6, 10, "point", "footnote")]

One pass over the paragraph finds them. Each search for a closing sign that fails is not made again, so the time stays
linear.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Literal

from dragoman.documents.formulas import is_formula
from dragoman.documents.html import elements
from dragoman.documents.html.directives import end_behind_strings
from dragoman.documents.markdown.jsx import brace_pairs, tag_end
from dragoman.documents.shortcodes import SHORTCODE, has_value
from dragoman.documents.tags.pairs import pairs_of

MASK = "\ue000"
"""Character of the private use area, which stands for each character of a span while Markdown is parsed."""

MASK_SIGN = "\u2e4f"
"""Punctuation that Markdown gives no meaning: stands for a sign at an end of a span, next to which emphasis may end."""


INLINE_FOOTNOTE = "inline footnote"


@dataclass(frozen=True)
class Span:
    """A stretch of a paragraph: a point, the begin or the end of an element, or text that holds no markup."""

    start: int
    end: int
    kind: Literal["point", "open", "close", "text"]
    name: str


_TRIGGER = re.compile(r"[`\\{<$\[\]!=+^~%:]|https?://")
_TICKS = re.compile(r"`+")
_URL = re.compile(r"https?://[\w/?#&=%.+,:;@~$!*'-]+")
_ATTRIBUTES = re.compile(
    r"\{:?[ \t]*+(?:[#.][^\s{}\"'=<>]++|[\w:-][\w:.-]*+=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s{}\"']++))"
    r"(?:[ \t]++(?:[#.][^\s{}\"'=<>]++|[\w:-][\w:.-]*+(?:=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s{}\"']++))?))*+[ \t]*+\}"
)
_ROLE = re.compile(r"\{[A-Za-z][\w:.+-]*\}(?=`)")
_TARGET = re.compile(r"<[^<>`]*>\Z")
_NOTE = re.compile(r"\[\^[^\]\s\[^]+\]")
_INLINE_NOTE = re.compile(r"\^\[(?:[^\[\]]|\[[^\[\]]*\])++\]")
_CITATION = re.compile(r"\[-?@[^\[\]\n]+\](?![(\[])")
_CITED_IN = re.compile(r"\[[^\[\]\n@]{1,80}[ ]-?@\w[^\[\]\n]*(\])(?![(\[])")
"""A citation with words before its key, such as ``[see @smith]``."""
_INCLUDED = re.compile(
    r"\[!(?:(?:INCLUDE|include|code[\w-]*)[ \t]*\[[^\[\]\n]*\]\([^()\n]*\)|(?:div|VIDEO)[ \t][^\[\]\n]*)\]"
)
"""An extension of DocFX."""
_COLONS = re.compile(r":::[\w-]+(?:[ \t]+[\w-]+=\"[^\"\n]*\")*[ \t]*:::")
_KEYS = re.compile(r"\+\+(?:[\w-]+(?:\+[\w-]+)+|ctrl|alt|shift|cmd|win|enter|tab|esc|escape|space|del|f\d{1,2})\+\+")
"""Keys of a keyboard, as PyMdown writes them."""
_SLIDE = r"fit|contain|cover|auto|vertical|left(?::\d+%)?|right(?::\d+%)?|\d+%|[a-z-]{1,20}:[^\s\[\]]+"
_PICTURE = re.compile(
    rf"!\[(?:bg|[wh]:[^\s\[\]]+|width:[^\s\[\]]+|height:[^\s\[\]]+)(?:[ \t]+(?:{_SLIDE}))*\]\([^()\n]*\)"
)
"""A picture behind a slide of Marp, or one with a size."""
_LABEL = re.compile(r"\[([^\[\]\n]*)\]")
_IN_BRACKETS = re.compile(r"\[(/?)([a-z][\w-]*)(?:[= \t][^\[\]\n]*)?\](?!\()")
_QUOTES = ('"', "'", "\u201c", "\u201d", "\u2033", "&")
_MOST_OF_A_LABEL = 400
_SHORTCODE = re.compile(r"\{(?:\{[<%]|%-?)\s*(?!else|if|for|raw|set\b)([a-z][\w-]*)")
"""A shortcode of Hugo or a tag of a template, which may have an end."""
_SHORTCODE_END = re.compile(r"\{(?:\{[<%]\s*+/\s*+|%-?\s*+end)([a-z][\w-]*+)\s*+(?:[>%]\}|-?%)\}")
_PLAIN_WORD = re.compile(r"[^\W\d_](?:(?![A-Z])[^\W\d_]){3,}")
_WORD_PART = re.compile(r"~[^\s~]+~(?!~)\w*|\^[^\s^]+\^(?!\^)\w*")
_DIRECTIVE = re.compile(
    r":[a-z][\w-]*(?:(\[[^\[\]]*\])|\{(?:[^{}\"'\n]|\"[^\"\n]*\"|'[^'\n]*')*\})|:(?:br|[a-z]+-[\w-]+)(?!\S)"
)
"""A directive of remark, or a component of Nuxt's MDC."""
_BLOCK_ID = re.compile(r"\^[\w-]+\s*\Z")
_DOLLAR_END = re.compile(r"(?<=[^\s\\$])\$(?![\w${])")
_VARIABLE = re.compile(r"\$\{(?:[^{}\\\n]|\$?\{[^{}\\\n]*\})*+\}(?!\^|_\{|_\w\b|\\[a-zA-Z]|\$(?![\w{$]))")
"""A variable of a shell or a template such as ``${HOST}``; a formula may begin with a group in braces too."""
_GROUP = re.compile(r"\$\{[^{}\n]*(?:\\|\}(?:[\^_$]|\\[a-zA-Z]))")
_QUOTE = re.compile(r"\"|(?<!\w)'|'(?!\w)")
"""A quotation mark, and no apostrophe inside a word."""
_COMMENT_END = re.compile(r"%%(?![\w%])")
_ESCAPED = re.compile(r"\\[_*`#|]|\A[A-Z]++\Z")
"""What a stretch between ``\\(`` and ``\\)`` has if it is text in escaped brackets: other escapes, or capitals only."""

_CLOSED = {
    "{{<": ">}}", "{{%": "%}}", "{{{": "}}}", "{{": "}}", "{%": "%}", "{!": "!}", "{*": "*}", "{/*": "*/}", "{# ": "#}",
    "{#-": "#}", "{>>": "<<}", "{~~": "~~}", "{::": "}", "{:": "}", "<%": "%>", "<?": "?>", "![[": "]]",
}  # fmt: skip
"""Closing signs of stretches that are kept whole, longest opening sign first where they begin alike."""

_PAIRS = {"==": "mark", "++": "insert", "^^": "insert", "{++": "added", "{--": "removed", "{==": "marked"}
_ENDS = {"{++": "++}", "{--": "--}", "{==": "==}"}


def closed(text: str, at: int) -> tuple[str, str] | None:
    """Return the opening and closing sign of the stretch that begins at a place; None if none does."""
    for length in (3, 2):
        if (sign := text[at : at + length]) in _CLOSED and text[at : at + 3] != "{*}":  # an operator of Tcl
            return sign, _CLOSED[sign]
    return None


def is_mention(text: str, at: int, sign: str, end: int) -> bool:
    """True if an opening sign comes again before the closing one at ``end``, and not in quotes: words mention it."""
    again = text.find(sign, at + len(sign), end)
    return again >= 0 and len(_QUOTE.findall(text, at, again)) % 2 == 0


def spans(text: str, mdx: bool, references: Container[str] = ()) -> list[Span]:
    """Return the spans of a paragraph's source, in order.

    Args:
        text: Source of the paragraph.
        mdx: True if tags and braces are those of MDX.
        references: Labels of links that the document defines, as Markdown compares them.
    """
    found_spans = _Scan(text, mdx, references).run()
    return _without_code(found_spans) if mdx else found_spans


CODE_ELEMENTS = elements.CODE | elements.names("math script style svg template textarea")
"""Elements whose text is not translated."""


def _without_code(found_spans: list[Span]) -> list[Span]:
    """Return spans with each element of code as one of them."""
    names = {f"jsx {name}" for element in CODE_ELEMENTS for name in (element, element.upper())}
    ends = {pair[0]: pair[1] for pair in pairs_of(found_spans) if found_spans[pair[0]].name in names}
    result: list[Span] = []
    i = 0
    while i < len(found_spans):
        last = ends.get(i, i)
        own = found_spans[i]
        result.append(own if last == i else Span(own.start, found_spans[last].end, "point", own.name))
        i = last + 1
    return result


def masked(text: str, found_spans: list[Span]) -> str:
    """Return a source with each span as characters that Markdown does not read as markup."""
    pieces, at = [], 0
    for span in found_spans:
        pieces += [text[at : span.start], _mask(text, span)]
        at = span.end
    return "".join([*pieces, text[at:]])


def _mask(text: str, span: Span) -> str:
    """Return the characters for a span: at its ends they are letters or signs, as they are in the source."""
    ends = (MASK if text[at].isalnum() or text[at].isspace() else MASK_SIGN for at in (span.start, span.end - 1))
    size = span.end - span.start
    first, last = ends
    return first + MASK * (size - 2) + last if size > 1 else first


def _reference(label: str) -> str:
    """Return a label as Markdown compares it."""
    from markdown_it.common.utils import normalizeReference

    return normalizeReference(label)


class _Scan:
    """A pass over a paragraph."""

    def __init__(self, text: str, mdx: bool, references: Container[str]) -> None:
        self.text, self.mdx, self.references = text, mdx, references
        self.spans: list[Span] = []
        self.closers: dict[int, Span] = {}  # by place: the end of an element that was opened
        self.places: dict[str, int] = {}  # of each sign that was sought; -1 if it does not come again
        self.ticks: dict[int, list[int]] = {}  # places of runs of backticks by their length
        for match in _TICKS.finditer(text):
            self.ticks.setdefault(len(match[0]), []).append(match.start())
        self.shortcode_ends: dict[str, list[re.Match[str]]] = {}
        for match in _SHORTCODE_END.finditer(text) if "{" in text else ():
            self.shortcode_ends.setdefault(match[1], []).append(match)
        self.dollars = [match.start() for match in _DOLLAR_END.finditer(text)]
        self.percents: dict[bool, list[int]] = {True: [], False: []}  # by whether they stand behind a space
        for match in _COMMENT_END.finditer(text):
            self.percents[text[match.start() - 1].isspace()].append(match.start())
        self.braces = brace_pairs(text) if mdx else {}
        self.floor = 0  # end of the last span

    def run(self) -> list[Span]:
        """Return all spans."""
        at = 0
        for match in _TRIGGER.finditer(self.text):
            start = match.start()
            if start < at:
                continue
            if start in self.closers:
                self.spans.append(self.closers[start])
                at = self.floor = self.closers[start].end
                continue
            at = self._at(start, match[0]) or start + 1
            if at > start + 1 and self.spans:
                self.floor = max(self.floor, self.spans[-1].end)
        return sorted(self.spans, key=lambda span: span.start)

    def _at(self, at: int, sign: str) -> int:
        """Add the span that begins at a place; return where the scan goes on, 0 if nothing begins there."""
        handlers: dict[str, Callable[[int], int]] = {
            "`": self._code, "\\": self._backslash, "{": self._brace, "<": self._angle, "$": self._dollar,
            "[": self._bracket, "~": self._raised, "^": self._raised, "=": self._pair, "+": self._pair,
            ":": self._directive, "%": self._percent, "!": self._whole,
        }  # fmt: skip
        return handlers[sign](at) if sign in handlers else self._url(at)

    def _add(self, start: int, end: int, kind: Literal["point", "open", "close", "text"], name: str) -> int:
        self.spans.append(Span(start, end, kind, name))
        return end

    def _find(self, sign: str, at: int) -> int:
        """Return the place of a sign, -1 if it does not come again; ``at`` never becomes smaller."""
        if 0 <= self.places.get(sign, 0) < at:
            self.places[sign] = self.text.find(sign, at)
        return self.places[sign]

    def _code(self, at: int) -> int:
        """Pass inline code."""
        match = _TICKS.match(self.text, at)
        length = len(match[0]) if match else 1
        places = self.ticks.get(length, [])
        i = bisect_right(places, at)
        return places[i] + length if i < len(places) else at + length

    def _url(self, at: int) -> int:
        match = _URL.match(self.text, at)
        if match is None or self.text[at - 1 : at] == "<":
            return 0
        return self._add(at, at + len(match[0].rstrip("*_~.,;:!?'-")), "text", "url")

    def _backslash(self, at: int) -> int:
        """Pass an escape; add a formula between ``\\(`` and ``\\)``, or between ``\\\\(`` and ``\\\\)``.

        With two backslashes Markdown leaves one for the program that shows formulas.
        """
        is_double = self.text.startswith("\\\\", at)
        begin = at + 2 + is_double
        sign = self.text[begin - 2 : begin]
        if sign in ("\\(", "\\["):
            closing = "\\" * is_double + ("\\)" if sign == "\\(" else "\\]")
            end = self._find(closing, begin)
            inside = self.text[begin : max(begin, min(end, begin + 2000))]
            is_text = not is_formula(sign, inside) or (not is_double and bool(_ESCAPED.search(inside)))
            if end > 0 and not is_text:
                return self._add(at, end + len(closing), "point", "math")
        return at + 2

    def _whole(self, at: int) -> int:
        """Add a stretch that is kept whole."""
        if picture := _PICTURE.match(self.text, at):
            return self._add(at, picture.end(), "point", "picture")
        signs = closed(self.text, at)
        if signs is None:
            return 0
        end = self._find(signs[1], at + len(signs[0]))
        if end < 0 or is_mention(self.text, at, signs[0], end):
            return 0
        end = max(end, end_behind_strings(self.text, at + len(signs[0]), signs[1], end)) + len(signs[1])
        name = _SHORTCODE.match(self.text, at)
        ends = self.shortcode_ends.get(name[1], []) if name else []
        i = bisect_left(ends, end, key=lambda closing: closing.start())
        if i == len(ends) or not self.text[end : ends[i].start()].strip() or ends[i].start() in self.closers:
            return self._add(at, end, "point", "code")
        self.closers[ends[i].start()] = Span(*ends[i].span(), "close", "shortcode")
        return self._add(at, end, "open", "shortcode")

    def _brace(self, at: int) -> int:
        for sign, end_sign in _ENDS.items():
            if self.text.startswith(sign, at) and (end := self._find(end_sign, at + 3)) > 0:
                self.closers[end] = Span(end, end + 3, "close", _PAIRS[sign])
                return self._add(at, at + 3, "open", _PAIRS[sign])
        match = _ATTRIBUTES.match(self.text, at)
        if match:
            return self._add(at, match.end(), "point", "attributes")
        role = _ROLE.match(self.text, at)
        if role:
            return self._role(at, role.end())
        if (end := self._whole(at)) > 0:
            return end
        if at in self.braces:
            return self._add(at, self.braces[at] + 1, "point", "expression")
        return 0

    def _role(self, at: int, ticks: int) -> int:
        """Add a role such as ``{ref}`the title <label>```: its title is text, anything else is kept."""
        end = self._code(ticks)
        length = len(_TICKS.match(self.text, ticks)[0])  # type: ignore[index]
        inside = self.text[ticks + length : end - length]
        target = _TARGET.search(inside)
        if target is None or not inside[: target.start()].strip():
            return self._add(at, end, "point", "role")
        close = ticks + length + len(inside[: target.start()].rstrip())
        self.closers[close] = Span(close, end, "close", "role")
        self._add(at, ticks + length, "open", "role")
        self._add(ticks + length, close, "text", "role")
        self.spans.append(self.closers.pop(close))
        return end

    def _angle(self, at: int) -> int:
        if self.text.startswith(("<%", "<?"), at):
            return self._whole(at)
        if not self.mdx:
            return 0
        end = tag_end(self.text, at, self.braces)
        if end is None:
            return 0
        tag = self.text[at:end]
        kind: Literal["point", "open", "close"] = (
            "close" if tag.startswith("</") else "point" if tag.endswith("/>") else "open"
        )
        return self._add(at, end, kind, "jsx " + tag.strip("</>").split(None, 1)[0] if tag.strip("</>") else "jsx")

    def _dollar(self, at: int) -> int:
        if self.text.startswith("$$", at):
            end = self._find("$$", at + 2)
            return self._add(at, end + 2, "point", "math") if end > at + 2 else at + 2
        if not self.mdx and (variable := _VARIABLE.match(self.text, at)):
            return self._add(at, variable.end(), "point", "variable")
        sign = self.text[at + 1 : at + 2]
        if sign.isspace() or (sign == "{" and not _GROUP.match(self.text, at)):
            return 0
        i = bisect_right(self.dollars, at + 1)
        if i == len(self.dollars) or self.text[at - 1 : at].isalnum():
            return 0
        inside = self.text[at + 1 : self.dollars[i]]
        return 0 if "\n\n" in inside or "`" in inside else self._add(at, self.dollars[i] + 1, "point", "math")

    def _percent(self, at: int) -> int:
        """Add a comment such as ``%%words%%`` or ``%% words %%``; in ``50%%`` the signs are text."""
        before = self.text[at - 1 : at]
        if not self.text.startswith("%%", at) or before.isalnum() or before in ('"', "'", "%"):
            return 0
        has_space = self.text[at + 2 : at + 3].isspace()
        for ends in (self.percents[has_space], self.percents[not has_space]):
            if (i := bisect_right(ends, at + 2)) < len(ends):
                return self._add(at, ends[i] + 2, "point", "comment")
        return at + 2

    def _bracket(self, at: int) -> int:
        label = _LABEL.match(self.text, at)
        if label and _reference(label[1]) in self.references:
            return 0  # a link, whatever its words look like
        if self.text.startswith("[[", at):
            return self._wiki(at)
        if included := _INCLUDED.match(self.text, at):
            return self._add(at, included.end(), "point", "include")
        if cited := _CITED_IN.match(self.text, at):
            self.closers[cited.start(1)] = Span(cited.start(1), cited.end(), "close", "citation")
            return self._add(at, at + 1, "open", "citation")
        if short := _IN_BRACKETS.match(self.text, at):
            closing = short[0] if short[1] else f"[/{short[2]}]"
            if short[1]:
                return self._add(at, short.end(), "point", "shortcode")
            if (end := self._find(closing, short.end())) > 0:
                self.closers[end] = Span(end, end + len(closing), "close", "shortcode")
                return self._add(at, short.end(), "open", "shortcode")
        if lone := self._shortcode(at):
            return lone
        for pattern, name in ((_NOTE, "footnote"), (_CITATION, "citation")):
            match = pattern.match(self.text, at)
            if match and _reference(match[0][1:-1]) not in self.references:
                return self._add(at, match.end(), "point", name)
        if self.text[at - 1 : at] == "]":
            return self._foreign(at)
        attributes = _ATTRIBUTES.match(self.text, label.end()) if label and self.text[at - 1 : at] != "!" else None
        return self._bracketed(at, at, attributes) if attributes else 0

    def _shortcode(self, at: int) -> int:
        """Add a shortcode without an end, such as ``[gallery ids="1"]``; not the text of a link or of attributes."""
        match = SHORTCODE.match(self.text, at)
        if match is None or match["end"] or not has_value(match) or self.text.startswith(("[", "{"), match.end()):
            return 0
        before, *values = match["arguments"].split("=")
        if len(before.split()) > 2 and not any(value.startswith(_QUOTES) for value in values):
            return 0  # words such as [only when the value is x=1]
        is_link = _reference(match[0][1:-1]) in self.references
        return 0 if is_link else self._add(at, match.end(), "point", "shortcode")

    def _bracketed(self, at: int, bracket: int, attributes: re.Match[str]) -> int:
        """Add the signs around a text with attributes, such as ``[text]{.red}``."""
        self.closers[attributes.start() - 1] = Span(attributes.start() - 1, attributes.end(), "close", "bracketed")
        return self._add(at, bracket + 1, "open", "bracketed")

    def _foreign(self, at: int) -> int:
        """Add a link whose label another program defines, such as ``[the class][package.Class]``."""
        match = _LABEL.match(self.text, at)
        if (
            match is None
            or _reference(match[1] or "") in self.references
            or self.text[match.end() : match.end() + 1] == "("
        ):
            return 0
        start, depth = at - 1, 1
        # A picture in the text of the link may have such a label too.
        floor = max((span.end for span in self.spans[-20:] if span.name != "reference"), default=0)
        floor = floor if len(self.spans) < 20 or self.spans[-20].name != "reference" else self.floor
        while depth and at - start < _MOST_OF_A_LABEL and start > floor:
            start -= 1
            depth += {"]": 1, "[": -1}.get(self.text[start], 0)
        if depth or any(span.start <= start < span.end for span in self.spans[-20:]):
            return 0
        if not match[1]:
            if _reference(self.text[start + 1 : at - 1]) in self.references or (
                self.spans and self.spans[-1].end > start
            ):
                return 0
            return self._add(start, match.end(), "point", "reference")
        self._add(start, start + 1, "open", "reference")
        return self._add(at - 1, match.end(), "close", "reference")

    def _wiki(self, at: int) -> int:
        end = self._find("]]", at + 2)
        inside = self.text[at + 2 : end]
        if (
            end < 0
            or not inside.strip()
            or "\n" in inside
            or "[" in inside
            or self.text[end + 2 : end + 3] in ("(", "[")
        ):
            return 0
        bar = inside.find("|")
        if bar < 0:
            return self._add(at, end + 2, "point", "wiki")
        self.closers[end] = Span(end, end + 2, "close", "wiki")
        self._add(at, at + 2 + bar + 1, "open", "wiki")
        self._add(at + 2 + bar + 1, end, "text", "wiki")
        self.spans.append(self.closers.pop(end))
        return end + 2

    def _raised(self, at: int) -> int:
        """Add raised or lowered letters; a formula such as ``H~2~O`` is kept whole, a word before them is not."""
        text = self.text
        if note := _INLINE_NOTE.match(text, at):
            return self._add(at, note.end(), "point", INLINE_FOOTNOTE)
        if text.startswith("^[", at) or text.startswith("~~", at):
            return at + 2
        if text.startswith("^^", at):
            return self._pair(at)
        match = _WORD_PART.match(text, at)
        if match is None:
            if text[at] == "^" and text[at - 1 : at].isspace() and _BLOCK_ID.match(text, at):
                return self._add(at, len(text.rstrip()), "point", "block id")
            return 0
        start = at
        while start > self.floor and text[start - 1].isalnum():
            start -= 1
        if start < at and not _PLAIN_WORD.fullmatch(text, start, at):
            return self._add(start, match.end(), "point", "raised")
        close = text.index(text[at], at + 1)
        if start < at and not any(map(str.isalpha, text[at:close])):
            return self._add(at, close + 1, "point", "raised")
        self.closers[close] = Span(close, close + 1, "close", "raised")
        return self._add(at, at + 1, "open", "raised")

    def _pair(self, at: int) -> int:
        """Add the signs around marked or inserted text, such as ``==text==``."""
        text, sign = self.text, self.text[at : at + 2]
        if keys := _KEYS.match(text, at):
            return self._add(at, keys.end(), "point", "keys")
        if sign not in _PAIRS or text[at + 2 : at + 3] in ("", sign[0]) or text[at + 2].isspace():
            return at + 2 if sign in _PAIRS else 0
        if text[at - 1 : at].isalnum() or text[at - 1 : at] == sign[0]:
            return at + 2
        end = self._find(sign, at + 3)
        if end < 0 or text[end - 1].isspace() or text[end + 2 : end + 3].isalnum():
            return at + 2
        self.closers[end] = Span(end, end + 2, "close", _PAIRS[sign])
        return self._add(at, at + 2, "open", _PAIRS[sign])

    def _directive(self, at: int) -> int:
        if colons := _COLONS.match(self.text, at):
            return self._add(at, colons.end(), "point", "colons")
        match = _DIRECTIVE.match(self.text, at)
        if match is None or self.text[at - 1 : at].isalnum():
            return 0
        attributes = _ATTRIBUTES.match(self.text, match.end(1)) if match[1] else None
        if attributes:
            return self._bracketed(at, match.start(1), attributes)
        return self._add(at, match.start(1) if match[1] else match.end(), "point", "directive")
