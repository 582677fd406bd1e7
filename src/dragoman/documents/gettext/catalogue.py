"""Entries of a gettext catalogue: fields with their places, strings with escapes, lines as gettext wraps them.

The grammar is that of gettext's own reader: no space is needed after a keyword, comments may stand anywhere, strings
may share a line. Lines that break the grammar spoil their own entry only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTH = 80
"""Number of columns of a line in a catalogue that is wrapped; gettext's programs keep one free."""

_TOKEN = re.compile(
    r'(?P<space>[^\S\n]++)|(?P<line_end>\n)|(?P<comment>#[^\n]*+)|(?P<string>"(?:[^"\\\n]|\\[^\n])*+")'
    r"|(?P<word>(?:msgid_plural|msgid|msgstr|msgctxt|domain)(?:[^\S\n]*+\[[^\S\n]*+(?P<index>\d{1,9})[^\S\n]*+\])?+)|(?P<other>[^\s\"]++|\"[^\n]*+)"
)
_STRING = re.compile(r'"((?:[^"\\\n]|\\[^\n])*+)"?')
_ESCAPE = re.compile(r"(?:\\[0-7]{1,3}|\\x[0-9A-Fa-f]{1,8})++|\\([^\n])")
_BYTE = re.compile(r"\\(?:x([0-9A-Fa-f]+)|([0-7]+))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPES = {character: f"\\{letter}" for letter, character in _SIMPLE.items()}


@dataclass(frozen=True)
class Field:
    """A keyword with its strings."""

    name: str  # such as msgid
    index: int | None  # of a plural form
    start: int  # place of the keyword in the file
    strings_start: int
    end: int  # after the last string
    source: str  # the strings as they are written

    @property
    def value(self) -> str:
        """Text of the strings, escapes resolved."""
        return decoded(self.source)


@dataclass
class Entry:
    """A message of a catalogue."""

    start: int = 0  # place of its first comment or keyword
    line: int = 0
    comments: list[str] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    fault: str = ""  # the first thing that breaks the grammar
    fault_line: int = 0

    def get(self, name: str) -> Field | None:
        """Return the first field with this keyword."""
        return next((own for own in self.fields if own.name == name), None)

    @property
    def forms(self) -> list[Field]:
        """Its translations: ``msgstr``, or one for each plural form."""
        return [own for own in self.fields if own.name == "msgstr"]

    @property
    def flags(self) -> frozenset[str]:
        """Its flags, such as ``c-format``."""
        lines = [comment[2:] for comment in self.comments if comment.startswith("#,")]
        return frozenset(flag.strip() for line in lines for flag in line.split(","))

    @property
    def is_header(self) -> bool:
        """True for the entry about the file itself."""
        msgid = self.get("msgid")
        return msgid is not None and not msgid.value and self.get("msgctxt") is None


_ORDER = {
    "msgctxt": ("",),
    "msgid": ("", "msgctxt"),
    "msgid_plural": ("msgid",),
    "msgstr": ("msgid", "msgid_plural", "msgstr"),
}
"""For a keyword: those that may stand before it in an entry."""


def entries(text: str) -> list[Entry]:
    """Return the entries of a catalogue, in order; those with a ``fault`` break the grammar."""
    reader = _Reader()
    for match in _TOKEN.finditer(text):
        reader.take(match)
    reader.end_field()
    reader.end_entry()
    return reader.entries


class _Reader:
    """Puts tokens together to entries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.entry = Entry()
        self.keyword: re.Match[str] | None = None
        self.strings: list[re.Match[str]] = []
        self.line, self.at_line_start = 1, True

    def take(self, match: re.Match[str]) -> None:
        """Take the next token."""
        if match["line_end"]:
            self.line, self.at_line_start = self.line + 1, True
            return
        if match["space"]:
            return
        if match["comment"]:
            self._comment(match)
        elif match["string"] and self.keyword is not None:
            self.strings.append(match)
        elif match["word"]:
            self._keyword(match)
        else:
            self._begin(match)
            self._spoil(match[0])
        self.at_line_start = False

    def _comment(self, match: re.Match[str]) -> None:
        if self.at_line_start and self.strings and self.keyword is not None and _name(self.keyword) == "msgstr":
            self.end_field()
            self.end_entry()
        if match[0].startswith("#~") and not self.entry.fields and self.keyword is None:
            self.entry = Entry()  # the comments above belong to an obsolete message
            return
        self._begin(match)
        self.entry.comments.append(match[0])

    def _keyword(self, match: re.Match[str]) -> None:
        self.end_field()
        name = _name(match)
        before = self.entry.fields[-1].name if self.entry.fields else ""
        is_next = name in ("msgctxt", "msgid") and (before == "msgstr" or self.entry.fault)
        if is_next or name == "domain":
            self.end_entry()
            before = ""
        self._begin(match)
        self.keyword = match
        if name != "domain" and before not in _ORDER[name]:
            self._spoil(match[0])

    def _begin(self, match: re.Match[str]) -> None:
        if not self.entry.line:
            self.entry.start, self.entry.line = match.start(), self.line

    def _spoil(self, text: str) -> None:
        if not self.entry.fault:
            self.entry.fault, self.entry.fault_line = text, self.line

    def end_field(self) -> None:
        """Add the keyword and strings that were read to the entry."""
        if self.keyword is None:
            return
        if not self.strings:
            self._spoil(self.keyword[0])
        elif _name(self.keyword) != "domain":
            first, last = self.strings[0].start(), self.strings[-1].end()
            index = self.keyword["index"]
            source = self.keyword.string[first:last]
            own = Field(_name(self.keyword), int(index) if index else None, self.keyword.start(), first, last, source)
            self.entry.fields.append(own)
        self.keyword, self.strings = None, []

    def end_entry(self) -> None:
        """Add the entry that was read, if it has a message or a fault."""
        if self.entry.fields and not self.entry.forms:
            self._spoil(self.entry.fields[-1].name)
        if self.entry.fields or self.entry.fault:
            self.entries.append(self.entry)
        self.entry = Entry()


def _name(keyword: re.Match[str]) -> str:
    return keyword[0].partition("[")[0].rstrip()


def decoded(source: str) -> str:
    """Return the text of quoted strings, escapes resolved.

    An unknown escape stays as it is, a backslash and a letter. Bytes that are no UTF-8 become lone surrogates, as with
    the error handler ``surrogateescape``; a NUL becomes one too.
    """
    return _ESCAPE.sub(_resolved, "".join(match[1] for match in _STRING.finditer(source)))


def _resolved(match: re.Match[str]) -> str:
    if match[1] is not None:
        return _SIMPLE.get(match[1], match[0])
    numbers = [int(six, 16) if six else int(eight, 8) for six, eight in _BYTE.findall(match[0])]
    text = bytes(number & 0xFF for number in numbers).decode("utf-8", "surrogateescape")
    return text.replace("\0", "\udc00")


def spellings(source: str) -> dict[str, str]:
    """Return how quoted strings write their control characters, such as ``\\x1b``."""
    written: dict[str, str] = {}
    for match in _ESCAPE.finditer("".join(match[1] for match in _STRING.finditer(source))):
        if match[1] is None:
            for code in _BYTE.finditer(match[0]):
                text = _resolved_byte(code[0])
                if len(text) == 1 and (text < " " or text == "\x7f" or "\udc00" <= text <= "\udcff"):
                    written.setdefault(text, code[0])
    return written


def _resolved_byte(code: str) -> str:
    match = _ESCAPE.match(code)
    return _resolved(match) if match else code


def _escaped(text: str, spelling: dict[str, str]) -> str:
    """Return text with the escapes that a quoted string needs."""
    return "".join(_escape(character, spelling) for character in text)


def _escape(character: str, spelling: dict[str, str]) -> str:
    if character in spelling:
        return spelling[character]
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character < " " or character == "\x7f" or "\udc00" <= character <= "\udcff":
        return f"\\{ord(character) & 0xFF:03o}"
    return character


@dataclass(frozen=True)
class Style:
    """The form of a file's strings."""

    line_end: str = "\n"
    is_wrapped: bool = True


def style_of(text: str, all_entries: list[Entry]) -> Style:
    """Return how a file writes its strings; it is wrapped unless it has a longer line and no wrapped message."""
    sources = [own.source for entry in all_entries for own in entry.fields]
    lines = [line.strip() for source in sources for line in source.split("\n")]
    has_long = any(len(line) > WIDTH and " " in line for line in lines)
    is_wrapped = not has_long or any(
        line and not line.endswith('\\n"') for source in sources for line in _inner_lines(source)
    )
    return Style("\r\n" if "\r\n" in text else "\n", is_wrapped)


def _inner_lines(source: str) -> list[str]:
    """Return the lines of a field between its first, which is often empty, and its last."""
    return [line.strip() for line in source.split("\n")[1:-1]]


def quoted(keyword: str, text: str, style: Style, spelling: dict[str, str]) -> str:
    """Return the strings of a field as gettext's programs write them: a line each, at most 79 columns where wrapped.

    Args:
        keyword: What stands before the strings, such as ``msgstr``.
        text: The message.
        style: See ``Style``.
        spelling: See ``spellings``.
    """
    whole = _escaped(text, spelling)
    has_lines = "\n" in text[:-1]
    fits = not style.is_wrapped or len(keyword) + 3 + _columns(whole) < WIDTH
    if not has_lines and fits:
        return f'"{whole}"'
    lines = ['""']
    for line in _lines(text):
        pieces = _wrapped(line, spelling) if style.is_wrapped else [_escaped(line, spelling)]
        lines += [f'"{piece}"' for piece in pieces]
    return style.line_end.join(lines)


def _lines(text: str) -> list[str]:
    """Return the lines of a text, each with the LF that ends it."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


_WORD = re.compile(r"\s*[^\s\u2e80-\ufe6f\uff00-\uffef]++\s*+|\s*[\u2e80-\ufe6f\uff00-\uffef][^\w\s]*+\s*+|\s++")


def _wrapped(line: str, spelling: dict[str, str]) -> Iterator[str]:
    """Yield the pieces of a line of text, escaped, each of at most 77 columns where its words allow it."""
    piece, n_columns = "", 0
    for match in _WORD.finditer(line):
        word = _escaped(match[0], spelling)
        width = _columns(word)
        if piece and n_columns + width - (len(word) - len(word.rstrip())) > WIDTH - 3:
            yield piece
            piece, n_columns = "", 0
        piece, n_columns = piece + word, n_columns + width
    if piece:
        yield piece


def _columns(text: str) -> int:
    """Return the number of columns of a text; East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
