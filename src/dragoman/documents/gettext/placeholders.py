"""Placeholders of messages: the format flag says how they are written, and how they are numbered in another order.

syntax_of({"c-format"}).pattern.findall("%d of %'lu")    # ["%d", "%'lu"]
renumbered(FORMATS["c-format"], ["%s", "%d"], [1, 0])    # ["%2$d", "%1$s"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

WHY_REJECTED = "its translation would lose a placeholder, or mix up placeholders without numbers"
"""Reason why a translation stays out of a catalogue."""

Numbering = Literal["dollar", "brace", "bracket", ""]

_WIDTH = r"(?:\d++|\*(?:\d++\$)?)?(?:\.(?:\d++|\*(?:\d++\$)?)?)?"
_C = rf"%(?:\d++\$)?[-+ #0'I]*+{_WIDTH}"
_C_LENGTH = r"(?:hh|h|ll|l|q|j|z|t|L|Z|w\d\d)?"
_C_FULL = _C + rf"(?:{_C_LENGTH}[diouxXeEfFgGaAcsCSpnm]|<PRI[A-Za-z0-9]+>)"
_JAVA = rf"%(?:\d++\$|<)?[-+ #0,(]*+{_WIDTH}(?:[bBhHsScCdoxXeEfgGaAn]|[tT][A-Za-z])"
_OBJC = _C + r"(?:hh|h|ll|l|q|j|z|t|L)?[@diouxXeEfFgGaAcsCSpn]"
_PYTHON = rf"%(?:\([^()\n]*\))?[-+ #0]*+{_WIDTH}[hlL]?[diouxXeEfFgGcrsa]"
_GCC_QUOTE = r"%<[^%\n]*+(?:%[qwlzt+#]*+[A-Za-z][^%\n]*+)?%>"
_BRACE = r"\{(?!\{)(?:[^{}\n]|\{[^{}\n]*\})*\}"


_UNIT = r"(?:px|ms|min|st|nd|rd|th|[kKMGT]i?[Bb]|[smhx])"
"""A unit that stands behind a number without a space, and belongs to it then."""


@dataclass(frozen=True)
class Syntax:
    """The form of a format's placeholders."""

    pattern: re.Pattern[str]
    doubled: str = ""  # characters that a message doubles
    numbering: Numbering = ""  # how placeholders get a number; "" if they cannot have any
    number: re.Pattern[str] | None = None  # matches the placeholders that have a name or number, in any order
    unnumbered: bool = True  # False if each placeholder has a name or number
    has_numbered_widths: bool = False  # True if a width such as ``*`` may have a number
    has_quotes: bool = False  # True if nothing between two apostrophes is a placeholder


_NUMBERED = re.compile(r"%\d+\$|%\*?\d*m$|%%$|%\([^()]*\)|%<(?!PRI)|%\{")
_NUMBERED_GCC = re.compile(r"%\d+\$|%\*?\d*m$|%[%>'R}]|%<(?:[^%]*%>)?$")
_NAMED_BRACE = re.compile(r"\{\s*[^\s{}:!,.]")
_C_LIKE = Syntax(re.compile(_C_FULL), "%", "dollar", _NUMBERED, has_numbered_widths=True)
_LISP = Syntax(re.compile(r"~(?:(?:'\S|[-+]?\d++|[vV#])?,?){0,8}+[:@]{0,2}[A-Za-z%&|~;()<>^*?_$/{}\[\]\n]"))
_PERCENT_NUMBER = Syntax(re.compile(r"%L?[1-9]\d?"), unnumbered=False)

FORMATS = {
    "c-format": _C_LIKE,
    "objc-format": Syntax(re.compile(_OBJC), "%", "dollar", _NUMBERED),
    "c++-format": Syntax(re.compile(_BRACE), "{}", "brace", _NAMED_BRACE),
    "python-format": Syntax(re.compile(_PYTHON), "%", "", _NUMBERED),
    "python-brace-format": Syntax(re.compile(_BRACE), "{}", "brace", _NAMED_BRACE),
    "java-format": Syntax(re.compile(r"\{\d+(?:,[^{}\n]*)?\}"), "'", unnumbered=False, has_quotes=True),
    "java-printf-format": Syntax(re.compile(_JAVA), "%", "dollar", _NUMBERED),
    "csharp-format": Syntax(re.compile(r"\{\d+(?:[,:][^{}\n]*+)?\}"), "{}", unnumbered=False),
    "javascript-format": Syntax(re.compile(_C + r"[dsfjoOicxXbeEgGaA]"), "%", "dollar", _NUMBERED),
    "scheme-format": _LISP,
    "lisp-format": _LISP,
    "elisp-format": Syntax(re.compile(_C + r"[sSdoxXcefg]"), "%", "dollar", _NUMBERED),
    "librep-format": Syntax(re.compile(_C + r"[sSdoxXc]"), "%", "dollar", _NUMBERED),
    "rust-format": Syntax(re.compile(_BRACE), "{}", "brace", _NAMED_BRACE),
    "go-format": Syntax(
        re.compile(r"%[-+# 0]*+(?:\[\d+\])?(?:\d++|\*)?(?:\.(?:\d++|\*)?)?(?:\[\d+\])?[A-Za-z]"), "%", "bracket",
        re.compile(r"%[^\[%]*\["),
    ),
    "sh-format": Syntax(re.compile(r"\$[A-Za-z_]\w*|\$\{\w+\}"), unnumbered=False),
    "sh-printf-format": Syntax(re.compile(_C + r"[cdiouxXeEfFgGaAsb]"), "%", "dollar", _NUMBERED),
    "awk-format": Syntax(re.compile(_C + r"[cdieEfFgGosuxXaA]"), "%", "dollar", _NUMBERED),
    "lua-format": Syntax(re.compile(_C + r"[cdieEfgGouXxaAsq]"), "%", "", _NUMBERED),
    "object-pascal-format": Syntax(
        re.compile(r"%(?:\d+:)?-?(?:\d+|\*)?(?:\.(?:\d+|\*))?[dDuUeEfFgGnNmMpPsSxX]"), "%", "", re.compile(r"%\d+:|%%")
    ),
    "smalltalk-format": _PERCENT_NUMBER,
    "qt-format": Syntax(re.compile(r"%L?\d{1,2}|%L?n"), unnumbered=False),
    "qt-plural-format": Syntax(re.compile(r"%L?\d{1,2}|%L?n"), unnumbered=False),
    "kde-format": Syntax(re.compile(r"%\d{1,2}"), unnumbered=False),
    "kde-kuit-format": Syntax(re.compile(r"%\d{1,2}"), unnumbered=False),
    "boost-format": Syntax(re.compile(rf"%\d+%|%\|[^|\n]*\|[A-Za-z]?|{_C_FULL}"), "%", "dollar",
                           re.compile(r"%\d+[%$]|%\|\d+[$%]")),
    "tcl-format": Syntax(re.compile(_C + r"(?:ll|[hlLqjzt])?[diouxXeEfgGcsb]"), "%", "dollar", _NUMBERED),
    "perl-format": Syntax(re.compile(_C + r"(?:v|hh|ll|[hlqLV])?[csduoxXeEfgGbBpniDUOF]"), "%", "dollar", _NUMBERED),
    "perl-brace-format": Syntax(re.compile(r"\{[A-Za-z_]\w*\}"), unnumbered=False),
    "php-format": Syntax(
        re.compile(r"%(?:\d+\$)?[-+]*+(?:0|'[^\n])?\d*+(?:\.\d+)?[bcdeEfFgGhHosuxX]"),
        "%", "dollar", _NUMBERED,
    ),
    "gcc-internal-format": Syntax(
        re.compile(rf"{_GCC_QUOTE}|%[<>'R}}]|{_C}[qwlzt+#]*[diouxXeEfFgGcspmA-Z@r{{}}R]|%[qwlzt+#]*[A-Za-z@]"),
        "%", "dollar", _NUMBERED_GCC,
    ),
    "gfc-internal-format": Syntax(
        re.compile(rf"{_GCC_QUOTE}|%[<>']|%(?:\d+\$)?[lhiducsCLef]+"), "%", "dollar", _NUMBERED_GCC
    ),
    "ruby-format": Syntax(
        re.compile(rf"%[-+ #0]*+(?:\{{\w+\}}|<\w+>{_WIDTH}[A-Za-z])|{_C}[diouxXeEfgGaAcspbB]"),
        "%", "dollar", _NUMBERED,
    ),
    "d-format": Syntax(re.compile(rf"{_C}[A-Za-z]|%\([^\n]{0,200}?%\)"), "%", "dollar", _NUMBERED),
    "ycp-format": _PERCENT_NUMBER,
}  # fmt: skip
"""The syntax of each format flag."""

USUAL = Syntax(
    re.compile(
        r"\$?\{\{[^{}\n]{1,80}\}\}|[$#%@]?\{[^{}\s]{0,64}\}"
        rf"|%\([^()\s]+\)[-+ #0]*+{_WIDTH}[diouxXeEfFgGcrsa](?!\w)"
        r"|%(?:\d++\$)?[-+#0',(]*+\d*+(?:\.\d++)?(?:hh|h|ll|l|q|j|z|t|L)?[diouxXeEfFgGcsp@]"
        rf"(?:(?!\w)|x(?=%)|(?<=[dsfu]){_UNIT}(?!\w))"
        r"|%L?[1-9]\d?(?![\w%$]|[.,]\d)|%n(?:(?![\w%])|(?=%n|[A-Z]))|(?<![\w%])%[A-Za-z_]\w{2,}%(?!\w)"
        r"|(?<!\w)@[A-Z][A-Z0-9_]*@|(?<![\w:.]):[a-z]\w++(?![\w:`])|(?<![\w$])\$[A-Za-z_]\w*|%%"
    ),
    "", "", re.compile(r"%\d+\$|[^%]|%\(|%\{|%[A-Za-z_]\w*%|%L?\d|%n|%%"),
)  # fmt: skip
"""What is taken for a placeholder without a flag."""


def syntax_of(flags: Collection[str]) -> Syntax:
    """Return the syntax that the flags of a message name; the usual one if they name none."""
    return next((syntax for flag, syntax in FORMATS.items() if flag in flags), USUAL)


def is_ordered(syntax: Syntax, placeholder: str) -> bool:
    """True if a placeholder has neither name nor number, so that its order says what it stands for."""
    if not syntax.unnumbered:
        return False
    return syntax.number is None or syntax.number.match(placeholder) is None


_QUOTED = re.compile(r"''|'(?:[^']|'')*+(?:'|\Z)")


def effective(text: str, syntax: Syntax) -> list[str]:
    """Return the placeholders of a text that get a value, sorted: in quotes they are text."""
    return sorted(syntax.pattern.findall(_QUOTED.sub("\0", text) if syntax.has_quotes else text))


def ordered(text: str) -> list[str]:
    """Return the placeholders of a text without a flag of which only the order says what they stand for."""
    return [match[0] for match in USUAL.pattern.finditer(text) if is_ordered(USUAL, match[0])]


def renumbered(syntax: Syntax, placeholders: Sequence[str], order: Sequence[int]) -> list[str] | None:
    """Return placeholders in another order, with numbers where that is needed.

    Args:
        syntax: That of the message.
        placeholders: Those of the source, in its order.
        order: Indices into ``placeholders``, as they follow each other in the translation.

    Returns:
        The placeholders of the translation; None if the format has no numbers for them.
    """
    ordered = [i for i in order if is_ordered(syntax, placeholders[i])]
    if all(before < after for before, after in pairwise(ordered)):
        return [placeholders[i] for i in order]
    has_widths = any("*" in placeholders[i] for i in ordered)
    if not syntax.numbering or (has_widths and not syntax.has_numbered_widths):
        return None
    numbers, at = {}, 1
    for i, placeholder in enumerate(placeholders):
        if is_ordered(syntax, placeholder):
            numbers[i], at = _numbered(placeholder, at, syntax.numbering)
    return [numbers.get(i, placeholders[i]) for i in order]


def _numbered(placeholder: str, at: int, numbering: Numbering) -> tuple[str, int]:
    """Return a placeholder that names its argument, ``at``, and the number of the next argument."""
    if numbering == "brace":
        return f"{{{at - 1}{placeholder[1:].lstrip()}", at + 1
    if numbering == "bracket":
        return f"{placeholder[:-1]}[{at}]{placeholder[-1]}", at + 1
    if placeholder.startswith("%<") and placeholder.endswith(
        "%>"
    ):  # a quotation with an argument inside, such as %<%s%>
        start, end = placeholder.index("%", 1), len(placeholder) - 2
        inner, at = _numbered(placeholder[start:end], at, numbering)
        return placeholder[:start] + inner + placeholder[end:], at
    first, *after_stars = placeholder.split("*")
    for piece in after_stars:  # a width is an argument too
        first, at = f"{first}*{at}${piece}", at + 1
    return f"%{at}${first[1:]}", at + 1
