"""gettext catalogues, ``.po`` and ``.pot``: entries without a translation get one, the others keep theirs."""

from __future__ import annotations

import re

from dragoman.documents.document import Document, DocumentInfo, Untranslated, decode, text_document
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError
from dragoman.translation.keeping.protected import has_letters

SUFFIXES = (".po", ".pot")
COMPARED = ()  # a translation stands beside its source

_FIELD = re.compile(
    r'^[^\S\n]*(msgctxt|msgid|msgid_plural|msgstr|msgstr\[(\d+)\])[^\S\n]+("(?:[^"\\\n]|\\.)*"[^\S\n]*(?:\n|\Z))',
    re.MULTILINE,
)
_MORE = re.compile(r'[^\S\n]*"(?:[^"\\\n]|\\.)*"[^\S\n]*(?:\n|\Z)')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)"?')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_KNOWN_LINE = re.compile(r'\s*+(?:#.*|(?:(?:msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s++)?".*"\s*+)?')


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut a catalogue into the messages that have no translation yet; see ``document.Format``."""
    declared = re.search(rb"charset=([\w-]+)", data[:4096])
    name = declared[1].decode() if declared and declared[1] != b"CHARSET" else None
    text = decode(data, info, name)
    for number, line in enumerate(text.text.split("\n"), 1):
        if not _KNOWN_LINE.fullmatch(line):
            raise DataError(f"{info.name}:{number}: not a line of a .po file: {line.strip()[:60]}")
    parts: list[Part] = []
    left: list[Untranslated] = []
    copied_to = 0  # the source up to here is in ``parts``
    msgid = plural = ""
    msgid_start = 0
    for match in _FIELD.finditer(text.text):
        end = match.end()
        while more := _MORE.match(text.text, end):
            end = more.end()
        start = match.start(3)
        value = _value(text.text[start:end])
        if match[1] == "msgctxt":
            continue
        if match[1] == "msgid":
            msgid, plural = value, ""
            msgid_start = match.start()
        elif match[1] == "msgid_plural":
            plural = value
        elif msgid:  # a msgstr; the entry with an empty msgid is the header of the file
            source = (
                msgid if match[2] in (None, "0") and not _is_only_form(text.text, end, match[2]) else plural or msgid
            )
            if value:
                why = "fuzzy already" if _is_fuzzy(text.text, msgid_start) else "translated already"
                left.append(Untranslated(source, why))
                continue
            field = text.text[start:end]
            line_end = field[len(field.rstrip()) :]
            parts += [text.text[copied_to:start], *_message(source), line_end]
            copied_to = end
    return text_document([*parts, text.text[copied_to:]], text, left)


def _is_only_form(text: str, end: int, index: str | None) -> bool:
    """True if the ``msgstr[0]`` that ends at ``end`` is the only form, as in Chinese; it then serves any number."""
    following = _FIELD.match(text, end)
    return index == "0" and (following is None or following[2] is None)


def _is_fuzzy(text: str, msgid_start: int) -> bool:
    """True if the comment above the ``msgid`` at this place marks the entry as fuzzy, that is, to be reviewed."""
    comment = text[text.rfind("\n\n", 0, msgid_start) + 1 : msgid_start]
    return re.search(r"^#,.*\bfuzzy\b", comment, re.MULTILINE) is not None


def _value(source: str) -> str:
    """Return the text of a field: its quoted strings joined, escapes such as ``\\n`` resolved."""
    joined = "".join(match[1] for match in _STRING.finditer(source))
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), joined)


def _escape(text: str) -> str:
    """Return text with the escapes that a quoted string of a ``.po`` file needs."""
    escapes = {value: f"\\{key}" for key, value in _ESCAPES.items()}
    return "".join(escapes.get(character, character) for character in text)


def _message(source: str) -> list[Part]:
    """Return the quoted strings of a ``msgstr``, with a unit for each line of the message."""
    if "\n" not in source.rstrip("\n"):
        body = source.rstrip("\n")
        ends = _escape(source[len(body) :])
        return ['"', Unit(body, raw=[""] if has_letters(body) else [_escape(body)], escape=_escape), f'{ends}"']
    parts: list[Part] = ['""']
    lines = source.split("\n")
    for number, line in enumerate(lines):
        is_last = number == len(lines) - 1
        if is_last and not line:
            break
        parts += ['\n"', Unit(line, raw=[_escape(line)], escape=_escape), '"' if is_last else '\\n"']
    return parts
