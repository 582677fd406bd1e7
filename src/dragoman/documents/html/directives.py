"""Code of Smarty, Blade and Mako in a page, which begins with a brace, an ``@`` or a percent sign.

    Directives("{if $dogs}A dog{/if}").smarty(0)     # Code(end=10, is_value=False)

``Templates`` asks for it where one of these signs stands. Blade's directives, which look like names of people, and
Mako's lines are read only in a page that has one that cannot be anything else.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

LONGEST = 2_000
"""Most characters of a piece of code in brackets."""

LONGEST_BODY = 50_000
"""Most characters of a comment, or of a body that is code."""

MOST_DEPTH = 8
"""Most brackets of a piece of code, one in another."""

_WITH_ARGUMENTS = (
    "if|elseif|foreach|for|while|section|include_php|include|extends|block|assign|append|capture|function|call|"
    "config_load|insert|textformat|setfilter"
)
_WITHOUT = "else|foreachelse|forelse|sectionelse|literal|strip|nocache|php|debug|break|continue|capture"
_SMARTY = re.compile(
    rf"\{{(?:(?:{_WITH_ARGUMENTS})\s(?=[^{{}}]{{0,200}}[$=(\"'])|(?:{_WITHOUT})\s{{0,20}}\}}|/[a-z]\w{{0,50}}\}})"
)
_SMARTY_VALUE = re.compile(r"\{(?:\$[A-Za-z_]|[lr]delim\}|[a-z]\w{0,50}\s{1,20}[a-z]\w{0,50}=[\"'$])")
STRING = r"(?:'(?:[^'\\\n]|\\.){0,300}+'|\"(?:[^\"\\\n]|\\.){0,300}+\")"
"""A string in code, on one line."""
_STRING_IN_CODE = re.compile(rf"(?<![\w\\]){STRING}(?!\w)")
"""A string; the apostrophe of a word begins none."""
_ENDS_BEHIND_STRINGS = frozenset(["}}", "}}}", "%}", "%}}", ">}}"])
LONGEST_WITH_STRINGS = 1_000
"""Most characters of code whose strings hold the mark of its end."""
_SIGN_IN_BRACES = re.compile(STRING + r"|[{}]|</?[A-Za-z!]")
_SIGN_IN_BRACKETS = re.compile(STRING + r"|[()]|</?[A-Za-z!]")

_IS_BLADE = re.compile(r"(?<!\w)@(?:(?:if|foreach|forelse|unless|extends|section|yield|include)\s?\(|csrf\b|endif\b)")
_BLADE = re.compile(r"@([a-z][A-Za-z]{1,30})( ?\()?")
_BLADE_ALONE = re.compile(
    r"else|end[a-z]+|csrf|parent|stop|show|append|php|verbatim|once|auth|guest|default|empty|break"
)
_BLADE_VALUES = frozenset(["lang", "choice", "json", "yield", "js"])

_MAKO_NAMES = "inherit|def|block|namespace|include|page|call|text|doc"
_MAKO_TAG = re.compile(rf"<%(?:({_MAKO_NAMES})|\w+:\w+)(?=[\s>/])(?:[^<>\"']|\"[^\"]*\"|'[^']*'){{0,1000}}>")
_MAKO_END = re.compile(r"</%[\w:]{1,50}\s{0,20}>")
_CONTROL = (
    r"%[ \t]*(?:(?:if|elif|for|while|except|with)\b[^\n]{0,500}:|(?:else|try|finally|except)[ \t]*:|"
    r"end(?:if|for|while|try|with)\b)[ \t]*(?:##[^\n]{0,500})?\r?$"
)
_MAKO_LINE = re.compile(rf"{_CONTROL}|##[^\n]{{0,500}}$", re.MULTILINE)
_IS_MAKO = re.compile(rf"<%(?:{_MAKO_NAMES})[\s>]|^[ \t]*{_CONTROL}", re.MULTILINE)


def end_behind_strings(source: str, at: int, mark: str, first: int) -> int:
    """Return the place of the mark that ends code, if strings hold the first one, as in ``{{ env('{{ dog }}') }}``.

    Args:
        source: The text.
        at: Index of the first character of the code, behind its opening sign.
        mark: The mark that ends it.
        first: Index of the first such mark.

    Returns:
        The index; -1 if the first mark is the end, or there is none outside strings.
    """
    end, limit = first, at + LONGEST_WITH_STRINGS
    if mark not in _ENDS_BEHIND_STRINGS or not at < first < limit:
        return -1
    for string in _STRING_IN_CODE.finditer(source, at, limit):
        if not string.start() < end:
            break
        if string.end() > end:
            end = source.find(mark, string.end(), limit)
    return end if end > first else -1


class Code(NamedTuple):
    """Code of a template."""

    end: int  # index of the character after it
    is_value: bool  # True if it writes a value, False for a statement or a comment
    half: Literal["open", "close", ""] = ""  # of a pair of shortcodes, which encloses words as an element does
    name: str = ""  # of a shortcode, in brackets: no element has such a name


def balanced(source: str, at: int, signs: re.Pattern[str], brackets: str) -> int:
    """Return the place behind the bracket that closes the one at ``at``; 0 if none does, or a tag stands before it.

    Args:
        signs: Finds both brackets, literals that may hold some, and tags.
        brackets: The opening one and the closing one.
    """
    depth = 0
    for sign in signs.finditer(source, at, at + LONGEST):
        depth += (sign[0] == brackets[0]) - (sign[0] == brackets[1])
        if not depth:
            return sign.end()
        if depth > MOST_DEPTH or sign[0][0] == "<":
            break
    return 0


class Directives:
    """Finds the code of these three languages in a page."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._last: dict[str, int] = {}  # place of the last mark that ends code, by the mark
        self._is_blade = "@" in source and _IS_BLADE.search(source) is not None
        self._is_mako = "%" in source and _IS_MAKO.search(source) is not None

    def smarty(self, at: int) -> Code | None:
        """Return the code of Smarty that begins with a brace, or Blade's value without escapes."""
        if self._source.startswith("{*", at):
            return self._up_to("*}", at) if not self._source.startswith("{*}", at) else None
        if self._source.startswith("{!!", at):
            end = self._source.find("!!}", at + 3, at + LONGEST)
            return Code(end + 3, True) if end >= 0 else None
        is_value = _SMARTY_VALUE.match(self._source, at) is not None
        if not is_value and not _SMARTY.match(self._source, at):
            return None
        end = balanced(self._source, at, _SIGN_IN_BRACES, "{}")
        return Code(end, is_value) if end else None

    def blade(self, at: int) -> Code | None:
        """Return the directive of Blade that begins with an ``@``."""
        match = _BLADE.match(self._source, at) if self._is_blade else None
        if match is None or self._source[at - 1 : at].isalnum():
            return None
        if match[2]:
            end = balanced(self._source, match.end() - 1, _SIGN_IN_BRACKETS, "()")
            return Code(end, match[1] in _BLADE_VALUES) if end else None
        if match[1] == "php":
            return self._up_to("@endphp", at)
        following = self._source[match.end() : match.end() + 1]
        is_alone = _BLADE_ALONE.fullmatch(match[1]) and not following.isalnum() and following not in ("_", ".", "-")
        return Code(match.end(), False) if is_alone else None

    def mako_tag(self, at: int) -> Code | None:
        """Return the tag of Mako that begins with ``<%`` or ``</%``; code of ERB ends in ``%>``."""
        if ending := _MAKO_END.match(self._source, at):
            return Code(ending.end(), False)
        match = _MAKO_TAG.match(self._source, at)
        if match is None or match[0].endswith("%>"):
            return None
        return self._up_to("</%doc>", at) if match[1] == "doc" else Code(match.end(), False)

    def mako_line(self, at: int) -> Code | None:
        """Return the line of Mako that begins with a percent sign, or two number signs, behind nothing but blanks."""
        if not self._is_mako:
            return None
        before = self._source[max(0, at - 100) : at].rpartition("\n")[2]
        match = _MAKO_LINE.match(self._source, at) if not before.strip(" \t") else None
        return Code(match.end(), False) if match else None

    def _up_to(self, mark: str, at: int) -> Code | None:
        if mark not in self._last:
            self._last[mark] = self._source.rfind(mark)
        if self._last[mark] < at + 2:
            return None  # else each sign without an end would be searched for to the end of the page
        end = self._source.find(mark, at + 2, at + LONGEST_BODY)
        return Code(end + len(mark), False) if end >= 0 else None
