r"""Formulas in the signs of TeX, in pages and in Markdown: ``\(x^2\)`` is one, ``\(see below\)`` is text.

is_formula("\\(", "x^2")     # True
"""

from __future__ import annotations

import re

from dragoman.documents.shortcodes import TWO_WORDS

_LETTER = r"[^\W\d_]"
_SINGLE_LETTERS = rf"(?:[\W\d_]|{_LETTER}(?!{_LETTER}))*+\Z"
"""Signs, digits, and letters of which no two stand together, such as ``f(x) + y``."""
_IN_LINE = re.compile(
    r"\\[a-zA-Z]{2}|[\w}][\^_][\w{\\]|\d\s?[=+<>]|[=+<>]\s?\d|\A\W*\w\W*\Z"
    rf"|\A\s*+[A-Z]{{2,3}}\s*+\Z|\A(?=[\W\d_]*+{_LETTER}){_SINGLE_LETTERS}"
)
_ON_ITS_OWN = re.compile(
    r"\\[a-zA-Z]{2}|[\w}][\^_]\{|\w\s?=\s?\w|[\w})]\^[\w(]"
    rf"|\A(?=[^-+*/<>(]*+[-+*/<>(])(?=[\W\d_]*+{_LETTER}){_SINGLE_LETTERS}"
)

_COMMAND = re.compile(r"\\[a-zA-Z]++\*?(?:\{[^{}]*+\})*+|\bd[a-z]\b")
"""A command with its arguments, such as ``\\text{if it rains}``, or a differential."""
_BETWEEN_PRICES = re.compile(
    r"\A[ \t]{0,99}(?:[,;)]|[-+*/<>.:!?]\s)|(?:\s[-+*/<>]|\()\s{0,99}\Z"
    rf"|\A[ \t]{{1,99}}(?:\({_LETTER}{{1,99}}\)\W*+\Z|{_LETTER}{{2,99}}[,;]?[ \t]{{1,9}}\w)"
    r"|\A[ \t][^\n]*\w[,;]?[ \t]{1,9}[^\W\d_A-Z]{3}|\w[,;]?[ \t]{1,9}[^\W\d_A-Z]{3,99}[.,;]?[ \t]{1,9}\Z"
)
"""What stands between two signs of dollars if a sentence goes on behind the first one, or before the second one."""


def is_formula(sign: str, inside: str) -> bool:
    r"""Return True if a stretch that begins with ``\(``, ``\[`` or ``$$`` is a formula, and no text."""
    outside_commands = _COMMAND.sub(r"\\", inside)
    if TWO_WORDS.search(outside_commands):
        return False
    if sign == "$$" and _BETWEEN_PRICES.search(outside_commands):
        return False
    return bool((_IN_LINE if sign == "\\(" else _ON_ITS_OWN).search(inside))
