"""Subtitles: SubRip (.srt) and WebVTT (.vtt).

A sentence that continues in the next cue is one unit, and so are the lines of a cue. Its translation is divided among
the cues by the time each is shown, and within a cue among its lines. Times, numbers, styles and notes keep their bytes.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from dragoman.documents.document import Document, DocumentInfo, decode, text_document
from dragoman.documents.units import Part, Tag, Unit, escape
from dragoman.errors import DataError
from dragoman.languages.sentence_ends import ENDS

SUFFIXES = (".srt", ".vtt")
OPTIONS = ("line_length", "reading_speed")

_TIME = r"(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_CUE = re.compile(rf"^[^\S\n]*{_TIME}[^\S\n]*-->[^\S\n]*{_TIME}[^\n]*(?:\n|\Z)", re.MULTILINE)
_BODY_END = re.compile(r"\n(?=[^\S\n]*(?:\n|\Z))")
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*+\d*+[^\S\n]*+\n?\Z")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>|<\d[\d:.]*>|\{\\[^{}\n]*\}")
_ENDS = tuple(ENDS + ":…：♪#)]")
_CLOSING = "\"'”’»」』)"  # may follow the sign that ends a sentence
_BEGINS = re.compile(r"\s*(?:[-–—]\s*\S|[♪#(\[])")  # another speaker, a song, a sound

LONGEST_PAUSE_S = 1.5
"""Longest pause between two cues of one sentence, in seconds."""

MOST_CUES = 8
"""Largest number of cues that one sentence may span."""


@dataclass
class _Line:
    """A line of a cue, and the time it is shown: a cue's time is divided among its lines by their length."""

    source: str
    cue: int  # number of its cue, from 0
    start_s: float
    end_s: float
    before: str  # source between the previous line and this one


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut subtitles into the sentences of their cues; see ``document.Format``."""
    text = decode(data, info)
    is_vtt = info.name.lower().endswith(".vtt")
    if is_vtt and not text.text.startswith("WEBVTT"):
        raise DataError(f"{info.name}: does not begin with WEBVTT, as every .vtt does")
    cues = list(_CUE.finditer(text.text.replace("\r", " ")))  # the replacement keeps all places
    if not cues and text.text.strip() and not is_vtt:
        raise DataError(f"{info.name}: has no times such as 00:00:01,000 --> 00:00:02,000, so it is not .srt")
    lines, copied_to = _lines(text.text, cues, info)
    parts: list[Part] = []
    sentence: list[_Line] = []
    for line in lines:
        if sentence and not _continues(sentence, line):
            parts += _unit(sentence, is_vtt)
            sentence = []
        sentence.append(line)
    parts += _unit(sentence, is_vtt) if sentence else []
    return text_document([*parts, text.text[copied_to:]], text)


def _lines(text: str, cues: Sequence[re.Match[str]], info: DocumentInfo) -> tuple[list[_Line], int]:
    """Return the lines of all cues, and the place in the text where the last one ends."""
    lines: list[_Line] = []
    copied_to = 0
    ends = [match.start() for match in _BODY_END.finditer(text)]
    for number, cue in enumerate(cues):
        start_s, end_s = (_seconds(cue.groups()[i : i + 4]) for i in (0, 4))
        if end_s < start_s:
            where = text.count("\n", 0, cue.start()) + 1
            raise DataError(f"{info.name}:{where}: this cue ends before it begins")
        next_end = bisect_left(ends, cue.end() - 1)
        limit = cues[number + 1].start() if number + 1 < len(cues) else len(text)
        body = text[cue.end() : max(cue.end(), min(ends[next_end] if next_end < len(ends) else limit, limit))]
        if cue.end() + len(body) == limit < len(text):  # no blank line before the next cue
            body = _NUMBER.sub("", body)
        n_chars = max(1, len(body))
        place = cue.end()
        for source in body.split("\n"):
            first = start_s + (end_s - start_s) * (place - cue.end()) / n_chars
            last = start_s + (end_s - start_s) * (place + len(source) - cue.end()) / n_chars
            line = source.rstrip("\r")
            lines.append(_Line(line, number, first, last, text[copied_to:place]))
            copied_to = place + len(line)
            place += len(source) + 1
    return lines, copied_to


def _seconds(fields: tuple[str | None, ...]) -> float:
    """Return hours, minutes, seconds and decimals as seconds."""
    hours, minutes, seconds, part = (field or "0" for field in fields)
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds) + int(part) / 10 ** len(part)


def _continues(sentence: list[_Line], line: _Line) -> bool:
    """True if ``line`` continues the sentence: no full stop, change of speaker or long pause lies between them."""
    previous = _TAG.sub("", sentence[-1].source)
    current = _TAG.sub("", line.source)
    if not previous.strip() or not current.strip() or _has_ended(previous) or _BEGINS.match(current):
        return False
    pause_s = line.start_s - sentence[-1].end_s if line.cue != sentence[-1].cue else 0.0
    return -0.5 <= pause_s <= LONGEST_PAUSE_S and line.cue - sentence[0].cue < MOST_CUES


def _has_ended(text: str) -> bool:
    """True if a line ends with the end of a sentence, or with a closing bracket."""
    line = text.rstrip()
    inner = line.rstrip(_CLOSING)
    return inner.endswith(_ENDS) or ")" in line[len(inner) :]


def _unit(sentence: list[_Line], is_vtt: bool) -> list[Part]:
    """Return the lines of a sentence as one unit; each line break stands at its share of the time."""
    unit = Unit(escape=escape if is_vtt else str)
    spoken_s = [line.end_s - line.start_s for line in sentence]
    total_s = sum(spoken_s)
    before_s = [0.0, *accumulate(spoken_s)]
    for i, line in enumerate(sentence):
        if i:
            share = before_s[i] / total_s if total_s > 0 else i / len(sentence)
            unit.tags.append(Tag(len(unit.text), (line.before,), share=share))
            unit.raw.append(line.before)
            unit.text += " "
        at = 0
        for match in _TAG.finditer(line.source):
            _add(unit, line.source[at : match.start()], is_vtt)
            name = re.match(r"</?([A-Za-z]+)", match[0])
            role = "point" if name is None else "close" if match[0].startswith("</") else "open"
            unit.tags.append(Tag(len(unit.text), (match[0],), role, name[1] if name else ""))  # type: ignore[arg-type]
            unit.raw.append(match[0])
            at = match.end()
        _add(unit, line.source[at:], is_vtt)
    return [sentence[0].before, unit]


def _add(unit: Unit, raw: str, is_vtt: bool) -> None:
    """Add text to a unit; WebVTT writes ``&`` and ``<`` as entities."""
    if raw:
        unit.text += html.unescape(raw) if is_vtt else raw
        unit.raw.append(raw)
