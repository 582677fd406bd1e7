"""Words in the codes of fields (OOXML), which a program shows once it updates them: the translation only names them.

Variables of OpenDocument are here too, for a condition may read them: with another value it would be another condition.

The codes are listed in ECMA-376, part 1, 17.16.5
(https://ecma-international.org/publications-and-standards/standards/ecma-376/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dragoman.documents.document import Untranslated
from dragoman.documents.xml import Token, tokens
from dragoman.translation.keeping.protected import has_letters

_WITH_WORDS = frozenset(["IF", "QUOTE", "XE", "TC", "TA", "FILLIN", "ASK", "SET", "COMPARE", "AUTOTEXTLIST"])
_WITH_LABEL = re.compile(r"\s*(?:MACROBUTTON|GOTOBUTTON)\s+\S+\s+(.+)", re.DOTALL | re.IGNORECASE)
_ARGUMENT = re.compile(r"(?:(\\[^\s\"]{0,3})\s{0,9})?\"([^\"]*+)\"")
_SWITCHES_WITH_WORDS = ("\\t", "\\d", "\\o", "\\l", "")
"""Switches before words that people read: such as the default of a question; others have patterns and names."""

READ = "the value of a variable that a condition or a formula reads"
"""Why such a value stays as it is."""
_VARIABLES = frozenset(["text:user-field-decl", "text:variable-set", "text:variable-input"])
_FORMULAS = ("text:condition", "text:formula")
_QUOTED = re.compile(r"\"[^\"]*+\"")
_WORD = re.compile(r"\w++")


def words_of_fields(member: Iterable[Token]) -> Iterator[Untranslated]:
    """Yield the words in the codes of the fields of an archive member, each once."""
    for words in dict.fromkeys(word for code in _codes(member) for word in _words(code)):
        if has_letters(words):
            yield Untranslated(words, "words in the code of a field, which shows them when it is updated")


def _codes(member: Iterable[Token]) -> Iterator[str]:
    """Yield the code of each field; that of a field inside the code of another one is a code of its own."""
    codes: list[str] = []  # of the fields whose code goes on here
    is_code = False
    for token in member:
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


@dataclass(frozen=True)
class Formulas:
    """The formulas and conditions of an OpenDocument package."""

    words: str  # with a space around each

    @classmethod
    def of(cls, texts: Iterable[str]) -> Formulas:
        """Return those of some members of a package."""
        with_some = [text for text in texts if any(name in text for name in _FORMULAS)]
        values = [token.get(name) for text in with_some for token in tokens(text, {}) for name in _FORMULAS]
        return cls(_spaced(_QUOTED.sub(" ", "\n".join(value for value in values if value))))

    def read(self, token: Token) -> bool:
        """True if a token is a variable that one of them reads."""
        name = token.get("text:name") if token.name in _VARIABLES else None
        return name is not None and _spaced(name) in self.words


def _spaced(text: str) -> str:
    """Return the words of a formula or of a name, with a space around each; LibreOffice does not heed their case."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
