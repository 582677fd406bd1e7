"""gettext: .po and .pot. Entries without a translation get one; what has one already keeps it."""

from __future__ import annotations

import re

from dragoman.documents.document import Asked, Document, Left, decode, of_text
from dragoman.documents.units import Part, Unit, says_something
from dragoman.errors import DataError

SUFFIXES = (".po", ".pot")

_FIELD = re.compile(
    r'^[^\S\n]*(msgctxt|msgid|msgid_plural|msgstr|msgstr\[(\d+)\])[^\S\n]+("(?:[^"\\\n]|\\.)*"[^\S\n]*(?:\n|\Z))',
    re.MULTILINE,
)
_MORE = re.compile(r'[^\S\n]*"(?:[^"\\\n]|\\.)*"[^\S\n]*(?:\n|\Z)')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_KNOWN_LINE = re.compile(r'\s*(?:#.*|(?:msgctxt|msgid|msgid_plural|msgstr(?:\[\d+\])?)\s+".*"|".*")?\s*')


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    declared = re.search(rb"charset=([\w-]+)", data[:4096])
    name = declared[1].decode() if declared and declared[1] != b"CHARSET" else None
    text = decode(data, asked, name)
    for number, line in enumerate(text.text.split("\n"), 1):
        if not _KNOWN_LINE.fullmatch(line):
            raise DataError(f"{asked.name}:{number}: not a line of a .po file: {line.strip()[:60]}")
    parts: list[Part] = []
    left: list[Left] = []
    at = 0
    msgid = plural = ""
    fuzzy_before = 0
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
            fuzzy_before = match.start()
        elif match[1] == "msgid_plural":
            plural = value
        elif msgid:  # msgstr; that of an empty msgid is the header
            source = msgid if match[2] in (None, "0") and not _only_form(text.text, end, match[2]) else plural or msgid
            if value:
                why = "fuzzy already" if _is_fuzzy(text.text, fuzzy_before) else "translated already"
                left.append(Left(source, why))
                continue
            own = text.text[start:end]
            line_end = own[len(own.rstrip()) :]
            parts += [text.text[at:start], *_message(source), line_end]
            at = end
    return of_text([*parts, text.text[at:]], text, left)


def _only_form(text: str, end: int, index: str | None) -> bool:
    """Is this ``msgstr[0]`` the only one, as of Chinese? Then it stands for any number."""
    following = _FIELD.match(text, end)
    return index == "0" and (following is None or following[2] is None)


def _is_fuzzy(text: str, before: int) -> bool:
    """Does the comment of the entry whose msgid begins at ``before`` say so?"""
    comment = text[text.rfind("\n\n", 0, before) + 1 : before]
    return re.search(r"^#,.*\bfuzzy\b", comment, re.MULTILINE) is not None


def _value(source: str) -> str:
    joined = "".join(match[1] for match in _STRING.finditer(source))
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), joined)


def _escape(text: str) -> str:
    shown = {value: f"\\{key}" for key, value in _ESCAPES.items()}
    return "".join(shown.get(character, character) for character in text)


def _message(source: str) -> list[Part]:
    """The string of a translation: a unit for each line of the message."""
    if "\n" not in source.rstrip("\n"):
        body = source.rstrip("\n")
        ends = _escape(source[len(body) :])
        return ['"', Unit(body, raw=[""] if says_something(body) else [_escape(body)], escape=_escape), f'{ends}"']
    parts: list[Part] = ['""']
    lines = source.split("\n")
    for number, line in enumerate(lines):
        is_last = number == len(lines) - 1
        if is_last and not line:
            break
        parts += ['\n"', Unit(line, raw=[_escape(line)], escape=_escape), '"' if is_last else '\\n"']
    return parts
