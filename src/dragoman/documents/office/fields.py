"""Words in the codes of fields (OOXML), which a program shows once it updates them: the translation only names them.

The codes are listed in ECMA-376, part 1, 17.16.5
(https://ecma-international.org/publications-and-standards/standards/ecma-376/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.documents.document import Untranslated
from dragoman.documents.xml import Token
from dragoman.translation.keeping.protected import has_letters

_WITH_WORDS = frozenset(["IF", "QUOTE", "XE", "TC", "TA", "FILLIN", "ASK", "SET", "COMPARE", "AUTOTEXTLIST"])
_WITH_LABEL = re.compile(r"\s*(?:MACROBUTTON|GOTOBUTTON)\s+\S+\s+(.+)", re.DOTALL | re.IGNORECASE)
_ARGUMENT = re.compile(r"(?:(\\[^\s\"]{0,3})\s{0,9})?\"([^\"]*+)\"")
_SWITCHES_WITH_WORDS = ("\\t", "\\d", "\\o", "\\l", "")
"""Switches before words that people read: such as the default of a question; others have patterns and names."""


def words_of_fields(tokens: Iterable[Token]) -> Iterator[Untranslated]:
    """Yield the words in the codes of the fields of an archive member, each once."""
    for words in dict.fromkeys(word for code in _codes(tokens) for word in _words(code)):
        if has_letters(words):
            yield Untranslated(words, "words in the code of a field, which shows them when it is updated")


def _codes(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the code of each field; that of a field inside the code of another one is a code of its own."""
    codes: list[str] = []  # of the fields whose code goes on here
    is_code = False
    for token in tokens:
        kind = token.get("w:fldCharType") if token.name == "w:fldChar" and token.kind != "close" else None
        if kind == "begin":
            codes.append("")
        elif kind in ("separate", "end") and codes:
            yield codes.pop()
        elif token.name == "w:fldSimple" and token.kind != "close":
            yield token.get("w:instr") or ""
        elif token.name == "w:instrText":
            is_code = token.kind == "open"
        elif is_code and codes and token.kind == "text":
            codes[-1] += token.text


def _words(code: str) -> list[str]:
    if label := _WITH_LABEL.match(code):
        return [" ".join(label[1].split())]
    name = code.split(None, 1)[0].upper() if code.strip() else ""
    if name not in _WITH_WORDS:
        return []
    found = [(switch or "", " ".join(words.split())) for switch, words in _ARGUMENT.findall(code)]
    return [words for switch, words in found if switch.lower() in _SWITCHES_WITH_WORDS]
