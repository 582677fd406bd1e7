"""Code of template languages in a page: Jinja, Twig, Liquid, Handlebars, Go, Angular, Fluid, ERB, PHP and others.

    Templates("Hello {{ name }}!").at(6)     # Code(end=16, is_value=True)

Shortcodes of WordPress are code that writes a value. The braces of messages of ICU, which Angular has, are no code.

Code that writes a value is a placeholder in its sentence. A statement or a comment ends the sentence. What has no end,
or holds other code or tags where it should not, is text.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from functools import cached_property
from itertools import accumulate

from dragoman.documents.formulas import is_formula
from dragoman.documents.html.directives import STRING, Code, Directives, balanced, end_behind_strings
from dragoman.documents.html.elements import BLOCKS, VOID
from dragoman.documents.icu import branch_braces, message_spans
from dragoman.documents.shortcodes import SHORTCODE, Shortcodes

START = re.compile(
    r"<[%?]|</%|<[/]?[#@][A-Za-z]|\{[{%#:/@*$!A-Za-z]|[$#]\{|\[[\[(]\$|\[%[-+=~#\s]|\[/?[a-z]|%[A-Za-z_ \t]|##|@[a-z{]"
    r"|\}|\\[(\[]|\$\$"
)
"""Where code may begin; ``Templates.at`` says whether it does."""

_STATEMENT = re.compile(
    r"\{\{\{?[-~]?\s*(?:[#/^!>&*]|(?:else|if|end|range|with|define|block|template|partial|break|continue|return)\b|"
    r"\$\w{1,100}\s{0,20}:?=(?!=))"
)
_GO_COMMENT = re.compile(r"\{\{(?:- )?/\*")
_GO_COMMENT_END = re.compile(r"\*/(?: -)?\}\}")
_TAG_INSIDE = re.compile(r"</?[A-Za-z]")
_TAG = re.compile(r"<(?P<end>/)?(?P<name>[A-Za-z][\w-]*)")
_MARKUP_INSIDE = re.compile(r"<[/!?%A-Za-z]")
_STRING_OR_TAG = re.compile(rf"(?<![\w\\]){STRING}(?!\w)|{_TAG.pattern}")
_MAY_HOLD_TAGS = ("{#", "{*", "{%", "{{!--", "{{/*", "{{- /*")
"""Signs of comments, and of statements whose body may be a listing."""
_SIGN_THEN_END = re.compile(r"\{(?:%(?:[^{}%<]{0,100}%\})?|\{(?:!--|(?:- )?/\*)|[#*])</")
_REACH = 1_000
"""Number of characters before code in which the element around it is sought."""
_LITERAL = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_QUOTE_THEN_END = re.compile(r"[\"']\s*/?>")
_NAME = re.compile(r"\{%[-+~]?\s*(\w+)")
_SVELTE = re.compile(r"\{(?:#(?:if|each|await|key|snippet)\b|:(?:else|then|catch)\b|/(?:if|each|await|key|snippet)\})")
_SVELTE_VALUE = re.compile(r"\{@(?:html|render|const|debug)\b")
_BLOCK = "if|else if|for|switch|case|defer|placeholder|loading|else|empty|default|error"
_OVER_LINES = r"(?:[^{}<]|<(?![A-Za-z/!])){0,500}"
"""A condition on several lines, which may compare; with a tag in it, it would be text."""
_ANGULAR = re.compile(
    rf"@(?:{_BLOCK})\s{{0,20}}(?=[({{])(?:\((?:[^{{}}\n]{{0,500}}|{_OVER_LINES})\)\s{{0,20}})?\{{|"
    r"@let\s{1,20}[A-Za-z_$][\w$]{0,100}\s{0,20}=(?:[^;\"'`]|\"[^\"]{0,200}\"|'[^']{0,200}'|`[^`]{0,200}`){0,500}+;"
)
_FLUID = re.compile(r"\{(?:[a-z]\w{0,50}:[A-Za-z][\w.]{0,100}\(|[\w.]{1,100}\s{0,100}->\s{0,100}[a-z]\w{0,50}:)")
"""A function of TYPO3's Fluid, such as ``{f:count(subject: dogs)}`` and ``{dog.name -> f:format.raw()}``."""
_FLUID_SIGN = re.compile(r"'(?:[^'\\\n]|\\.){0,300}+'|[{}<]")
_PERCENT = re.compile(r"%(?:[A-Za-z]+(?:[._][A-Za-z]+)+|[A-Z]{3,})%")
_PHP_VALUE = re.compile(r"<\?(?:=|php\s+(?:echo|print|_e)\b)")
_PHP = re.compile(r"<\?(?:php\b|=|\s)", re.IGNORECASE)
_FREEMARKER = re.compile(r"</?[#@][A-Za-z][^<>\n]{0,500}>")
_STRING = re.compile(r"(?<![\w\\])(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")(?!\w)", re.DOTALL)
"""A string of a directive; the apostrophe of a word begins none."""
_END_OF_TAG = re.compile(r"<[A-Za-z][^<>]*\s(?:width|height|size)=\d+\Z")
"""A tag such as ``<td width=50%>`` up to the percent sign: no code ends so."""
_TOOLKIT_STATEMENT = re.compile(r"\[%[-+=~]?\s*+(?:#|[A-Z]{2,}\b)")
_BODY_IS_CODE = frozenset(["comment", "doc", "highlight", "javascript", "schema", "stylesheet", "style"])
"""Statements of Django and Liquid whose body is no text."""

LONGEST_VALUE = 20_000
LONGEST = 50_000
"""Most characters of a value, and of a statement or a comment."""

LONGEST_FORMULA = 2_000
"""Most characters of a formula."""

MOST_STRINGS = 8
"""Most strings in backticks of one value."""


class Templates:
    """Finds the code in a page, from its beginning to its end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._next: dict[str, tuple[int, int]] = {}  # for a mark: where it was sought from, and where it is
        self._depth = 0  # number of open blocks of Angular
        self._torn_at = -1  # end of an element that cannot stand in code which begins before it
        self._mentioned: set[int] = set()  # ends of what begins with a mention: each is judged once
        self._searchable = START.search(source) is not None
        self._directives = Directives(source)

    def at(self, at: int, in_text: bool = True) -> Code | None:
        """Return the code that begins at a character; None if none does.

        Args:
            at: Index of the character.
            in_text: False within a tag, where there are no blocks of Angular.
        """
        code = self._code(at, in_text) if self._searchable else None
        return None if code is not None and self._is_mention(at, code.end) else code

    def _is_mention(self, at: int, end: int) -> bool:
        """True if a text names signs of code, as in ``<code>{#</code> and <code>#}</code>``: the element around ends.

        A comment or a listing may hold the ends of blocks, unless its sign is all that the element around it holds. PHP
        and ERB code begins with ``<``, so a text that mentions it is written with ``&lt;``.
        """
        if self._source[at] == "<" or self._source.find("<", at, end) < 0:
            return False
        if at < self._torn_at < end:
            return True
        around = self._around(at)
        may_end = around in BLOCKS and self._source.startswith(_MAY_HOLD_TAGS, at)
        if may_end and not self._is_alone(at, around):
            return False
        if may_end and end in self._mentioned:
            return True
        depth, place = 0, -1
        for tag in _STRING_OR_TAG.finditer(self._source, at, end) if around else ():
            if (tag["name"] or "").lower() == around:
                depth += -1 if tag["end"] else 1
            if depth < 0 and place < 0:
                place = tag.start()
                if not may_end:
                    break
        if place < 0 or (may_end and depth < 0):
            return False
        self._torn_at = place  # code that begins before it would hold it too
        self._mentioned.add(end)
        return True

    def _is_alone(self, at: int, around: str) -> bool:
        """True if the element around a sign holds nothing else, as in ``<td>{#</td>``."""
        before = self._source[max(0, self._source.rfind("<", max(0, at - _REACH), at)) : at]
        tag = _TAG.match(before)
        is_begin = tag is not None and not tag["end"] and tag["name"].lower() == around and before.endswith(">")
        return is_begin and _SIGN_THEN_END.match(self._source, at) is not None

    def _around(self, at: int) -> str:
        """Return the name of the innermost element around a character, as far as the tags shortly before it tell."""
        ended = Counter[str]()
        for tag in reversed([*_TAG.finditer(self._source, max(0, at - _REACH), at)]):
            name = tag["name"].lower()
            if tag["end"]:
                ended[name] += 1
            elif ended[name]:
                ended[name] -= 1
            elif name not in VOID:
                return name
        return ""

    def _code(self, at: int, in_text: bool) -> Code | None:
        """Return the code that begins at a character, or what looks like it."""
        start = self._source[at : at + 2]
        if start in ("\\(", "\\[", "$$"):
            return self._formula(at)
        if start[:1] == "}":
            return self._closing_brace(at) if in_text else None
        if start == "@{":  # Blade's sign that the braces are for another program
            code = self._braces(at + 1) if self._source.startswith("{{", at + 1) else None
            return code if code is not None and code.is_value else None
        if start[:1] == "@":
            return (self._angular(at) or self._directives.blade(at)) if in_text else None
        if start == "{{":
            return self._braces(at)
        if start == "{%":
            return self._statement(at)
        if start in ("{#", "{:", "{/", "{@"):
            return self._comment(at) or (self._directives.smarty(at) if start == "{/" else None)
        if start in ("##", "% ", "%\t") or (start[:1] == "%" and in_text):
            code = self._directives.mako_line(at) if in_text else None
            if code or start[1] in "# \t":
                return code
        if (start == "<%" or self._source.startswith("</%", at)) and (code := self._directives.mako_tag(at)):
            return code
        if start == "<%":
            value = self._source[at + 2 : at + 3] in ("=", "-") and self._source[at + 2 : at + 4] != "--"
            return self._until(at, "--%>" if self._source.startswith("<%--", at) else "%>", LONGEST, value)
        if start == "<?":
            return self._php(at)
        if start in ("${", "#{"):
            if not self._source.startswith("{", at + 2):
                return self._line(at, "}", 300)
            code = self._braces(at + 1)  # a sign before a value stays with it
            return code if code is not None and code.is_value else None
        if start[:1] == "{":
            return self._directives.smarty(at) or self._function(at)
        if start == "[%":
            return self._until(at, "%]", LONGEST, _TOOLKIT_STATEMENT.match(self._source, at) is None)
        if start[:1] == "[" and (start[1:] == "/" or start[1:].islower()):
            return self._shortcode(at)
        if start in ("[[", "[("):
            return (
                self._line(at, "]]" if start == "[[" else ")]", 300) if self._source[at + 2 : at + 4] == "${" else None
            )
        pattern = _PERCENT if start[:1] == "%" else _FREEMARKER
        match = pattern.match(self._source, at)
        return Code(match.end(), pattern is _PERCENT) if match else None

    def _find(self, mark: str, at: int) -> int:
        """Return where a mark comes next; each part of the source is searched once, as places only grow."""
        since, place = self._next.get(mark, (0, -2))
        if place == -2 or at < since or -1 < place < at:
            self._next[mark] = at, self._source.find(mark, at)
        return self._next[mark][1]

    def _until(self, at: int, mark: str, longest: int, is_value: bool) -> Code | None:
        end = self._find(mark, at + 2)
        if (behind := end_behind_strings(self._source, at + 2, mark, end)) > 0:
            end = behind
        elif end < 0 or end - at > longest or 0 <= self._find(self._source[at : at + 2], at + 2) < end:
            return None
        return Code(end + len(mark), is_value) if _may_be_code(self._source[at + 2 : end], mark) else None

    def _line(self, at: int, mark: str, longest: int) -> Code | None:
        """Return a value that ends on its line."""
        end = self._find(mark, at + 2)
        line_end = self._find("\n", at)
        if end < 0 or end - at > longest or 0 <= line_end < end:
            return None
        inside = self._source[at + 2 : end]
        return None if "<" in inside or "{" in inside[2:] else Code(end + len(mark), True)

    def _braces(self, at: int) -> Code | None:
        if at in self._branch_braces:  # the first brace is that of a message, such as in ``other {{{count}} dogs}``
            return None
        if self._source.startswith("{{!--", at):
            end = self._find("--}}", at + 5)
            return Code(end + 4, False) if at < end < at + LONGEST else None
        if _GO_COMMENT.match(self._source, at):
            end = self._find("*/", at + 3)
            close = _GO_COMMENT_END.match(self._source, end) if 0 < end < at + LONGEST else None
            return Code(close.end(), False) if close else None
        mark = "}}}" if self._source.startswith("{{{", at) else "}}"
        inner = at + len(mark)
        if at < self._find("`", at) < self._find("}}", inner) and (end := self._behind_raw_strings(at)) > 0:
            return Code(end, not _STATEMENT.match(self._source, at))
        end = self._find(mark, inner)
        if (behind := end_behind_strings(self._source, inner, mark, end)) > 0:
            end, inside = behind, _STRING.sub("", self._source[inner:behind])
        elif 0 <= self._find("{{", inner) < end:
            return None
        else:
            for _ in range(3):  # a value may hold a literal such as {"a": {"b": 1}}
                if end < 0 or end - at > LONGEST_VALUE:
                    return None
                inside = self._source[inner:end]
                if inside.count("{") <= inside.count("}"):
                    break
                end = self._source.find(mark, end + 1, at + LONGEST_VALUE)
        outside_literals = _LITERAL.sub("", inside) if '">' in inside or "'>" in inside else inside
        if "{{" in inside or ("\n" in inside and _TAG_INSIDE.search(inside)):
            return None
        if _QUOTE_THEN_END.search(outside_literals):  # the braces belong to an attribute, which ends first
            return None
        while self._source.startswith("}", end + len(mark)) and mark == "}}" and inside.count("{") > inside.count("}"):
            end += 1
        return Code(end + len(mark), not _STATEMENT.match(self._source, at))

    def _behind_raw_strings(self, at: int) -> int:
        """Return the end of code that has strings in backticks, as in Go; they may hold braces. -1 if it has none."""
        limit, place = at + LONGEST_VALUE, at
        for _ in range(MOST_STRINGS):
            opening, end = self._source.find("`", place, limit), self._source.find("}}", place, limit)
            if opening < 0 or end < opening:
                return end + 2 if end >= 0 else -1
            place = self._source.find("`", opening + 1, limit) + 1
            if not place:
                return -1
        return -1

    def _statement(self, at: int) -> Code | None:
        code = self._until(at, "%}", LONGEST, False)
        name = _NAME.match(self._source, at)
        if code and name and name[1] in _BODY_IS_CODE:
            closing = self._find(f"end{name[1]}", code.end)
            end = self._source.find("%}", closing, closing + 100)
            if code.end <= closing < at + LONGEST and end >= 0 and not self._is_mention(at, end + 2):
                return Code(end + 2, False)
        return code

    def _comment(self, at: int) -> Code | None:
        """Return a comment of Jinja, or a statement or a value of Svelte."""
        if self._source[at + 1] == "#" and self._is_in_message(at):
            return None  # a branch that begins with the number
        if _SVELTE.match(self._source, at) or _SVELTE_VALUE.match(self._source, at):
            code = self._line(at, "}", 500)
            if code and self._source[code.end - 2] != "#":
                return Code(code.end, self._source[at + 1] == "@")
        return self._until(at, "#}", LONGEST, False) if self._source[at + 1] == "#" else None

    def _formula(self, at: int) -> Code | None:
        """Return a formula of MathJax or KaTeX, by the rule of Markdown; signs of dollars around words are none."""
        sign = self._source[at : at + 2]
        mark = {"\\(": "\\)", "\\[": "\\]"}.get(sign, sign)
        end = self._find(mark, at + 2)
        if end < 0 or end - at > LONGEST_FORMULA or self._source[at - 1 : at] in ("\\", "$"):
            return None
        inside = self._source[at + 2 : end]
        if _MARKUP_INSIDE.search(inside) or (sign != mark and sign in inside):
            return None
        return Code(end + 2, True) if is_formula(sign, html.unescape(inside)) else None

    def _php(self, at: int) -> Code | None:
        """Return code of PHP, or an instruction of XML; what has no ``?>`` is a comment to a browser."""
        if not _PHP.match(self._source, at):
            first = self._find(">", at)
            return Code(first + 1, False) if first > at and self._source[first - 1] == "?" else None
        end = self._find("?>", at + 2)
        if end < 0:
            return Code(len(self._source), False) if self._source.startswith("<?php", at) else None
        return Code(end + 2, bool(_PHP_VALUE.match(self._source, at)))

    def _function(self, at: int) -> Code | None:
        """Return a function of Fluid."""
        if not _FLUID.match(self._source, at):
            return None
        end = balanced(self._source, at, _FLUID_SIGN, "{}")
        return Code(end, True) if end else None

    def _angular(self, at: int) -> Code | None:
        match = _ANGULAR.match(self._source, at)
        if match is None or self._is_mention(at, match.end()):
            return None
        self._depth += match[0].endswith("{")
        return Code(match.end(), False)

    def _closing_brace(self, at: int) -> Code | None:
        if not self._depth or self._is_in_message(at):
            return None
        self._depth -= 1
        return Code(at + 1, False)

    @cached_property
    def _messages(self) -> list[tuple[int, int]]:
        return message_spans(self._source)

    @cached_property
    def _branch_braces(self) -> frozenset[int]:
        return branch_braces(self._source)

    def _is_in_message(self, at: int) -> bool:
        """True if a character is inside a message of ICU."""
        i = bisect_right(self._messages, (at, 0)) - 1
        return i >= 0 and self._messages[i][0] < at < self._messages[i][1]

    def _shortcode(self, at: int) -> Code | None:
        match = SHORTCODE.match(self._source, at)
        if match is None or not self._shortcodes.has(match):
            return None
        half = self._shortcodes.halves.get(at)
        return Code(match.end(), True, half, f"[{match['name']}]") if half else Code(match.end(), True)

    @cached_property
    def _shortcodes(self) -> Shortcodes:
        return Shortcodes.of(self._source)


def _may_be_code(inside: str, mark: str) -> bool:
    """Return whether code up to its end ``mark`` can have this text in it; comments can have any.

    Outside strings its brackets nest, unlike those of ``Share [% of GDP], growth [in %]``.
    """
    if mark == "%>":
        return _END_OF_TAG.search(inside) is None
    opening = {"%]": "[", "%}": "{"}.get(mark)
    if opening is None or inside.lstrip("-+=~ \t\r\n").startswith("#"):
        return True
    signs = _STRING.sub("", inside)
    depths = list(accumulate(((sign == opening) - (sign == mark[1]) for sign in signs), initial=0))
    return min(depths) == depths[-1] == 0
