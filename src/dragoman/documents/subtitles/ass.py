"""Advanced SubStation Alpha (.ass) and SubStation Alpha (.ssa): the texts of the lines ``Dialogue:``.

Styles, comments, drawings and the other fields of a line keep their bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dragoman.documents.document import DocumentInfo, Untranslated
from dragoman.documents.subtitles.cues import Cue, Film
from dragoman.documents.subtitles.overrides import override, with_ends
from dragoman.documents.subtitles.subrip import seconds
from dragoman.documents.subtitles.tokens import Token, tokenized
from dragoman.errors import DataError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_FIELD = re.compile(r"\s*([A-Za-z]+)\s*:[^\S\r\n]*")
_SECTION = re.compile(r"\s*\[([^\]\r\n]+)\]")
_TOKEN = re.compile(r"\\[Nnh]|\{[^{}\r\n]*\}")
_TIME = re.compile(r"\s*-?\d{1,6}:\d{1,2}:\d{1,2}(?:[.:,]\d{1,4})?\s*\Z")
_SUNG = re.compile(r"\\[kK][of]?\d")
_DRAWING = re.compile(r"\\p(\d+)")
_PLACE = re.compile(r"\\(?:an?\d+|(?:pos|move|org|clip)\([^()]*\))")
ASS = ("Layer", "Start", "End", "Style", "Name", "MarginL", "MarginR", "MarginV", "Effect", "Text")
"""Fields of an event where no line ``Format:`` names them."""


def tokenize(source: str) -> list[Token]:
    """Cut the text of an event into tokens; a drawing is no text."""
    tokens, draws = [], False
    for token in tokenized(source, _TOKEN, _token):
        if token.kind == "text":
            token = Token(token.source, "point") if draws else token
        else:
            scales = _DRAWING.findall(token.source)
            draws = scales[-1].strip("0") != "" if scales else draws
        tokens.append(token)
    return tokens


def _token(match: re.Match[str]) -> Token:
    source = match[0]
    if source == "\\h":
        return Token(source, text="\u00a0")
    if source[0] == "\\":
        return Token(source, "break")
    if _SUNG.search(source):
        return Token(source, "time")
    return override(source)


def read_events(text: str, info: DocumentInfo) -> Film:
    """Cut a script into its events.

    Raises:
        DataError: It has no section ``[Events]``.
    """
    skeleton: list[str | Cue] = []
    left: list[Untranslated] = []
    section, has_events = "", False
    fields: tuple[str, ...] = ASS
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[0]
        header = _SECTION.match(line)
        if header is not None:
            section, fields = header[1].strip().lower(), ASS
            has_events = has_events or section == "events"
        field = _FIELD.match(line) if section == "events" else None
        kind = field[1].lower() if field else ""
        if field is not None and kind == "format":
            fields = tuple(name.strip() for name in line[field.end() :].split(","))
        if field is None or kind != "dialogue":
            skeleton.append(line)
            continue
        values = line[field.end() :].rstrip("\r\n").split(",", len(fields) - 1)
        if why := _fault(fields, values):
            left.append(Untranslated(line.strip(), f"line {number}: {why}"))
            skeleton.append(line)
            continue
        skeleton += _event(line, field.end(), dict(zip(fields, values, strict=True)), number)
    if not has_events:
        raise DataError(f"{info.name}: has no section [Events], so it is not {info.name[-4:].lower()}")
    space = "\\h" if "\\h" in text else "\u00a0"
    return Film(skeleton, tokenize, "\\N", left=left, no_break_space=space)


def _fault(fields: Sequence[str], values: Sequence[str]) -> str:
    """Return why the values of an event are not those of its fields; "" if they are."""
    twice = next((name for name, n in Counter(fields).items() if n > 1), None)
    if twice is not None:
        return f"the line Format names {twice!r} twice"
    if "Text" not in fields:
        return "the line Format names no Text"
    return f"must have {len(fields)} fields, got {len(values)}" if len(values) < len(fields) else ""


def _event(line: str, start: int, values: dict[str, str], number: int) -> list[str | Cue]:
    """Return a line ``Dialogue:`` as the source before its text, the cue and the source after it."""
    for name, value in values.items():
        if name == "Text":
            break
        start += len(value) + 1
    source = values["Text"]
    times = [
        seconds(value) if _TIME.match(value) else None for value in (values.get("Start", ""), values.get("End", ""))
    ]
    ignored = ("Start", "End", "Text", "ReadOrder")
    place = " ".join([*_PLACE.findall(source[:400]), *["song"] * bool(_SUNG.search(source))])  # no speech goes on in it
    settings = ",".join([*(value.strip() for name, value in values.items() if name not in ignored), place])
    cue = Cue(tuple(with_ends(tokenize(source))), number, times[0], times[1], settings)
    return [line[:start], cue, line[start + len(source) :]]
