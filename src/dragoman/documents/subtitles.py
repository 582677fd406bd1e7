"""Subtitles: SubRip (.srt) and WebVTT (.vtt).

A sentence that goes on in the next cue is one unit, and so are the lines of a cue. Its translation is cut again by the
time that each cue is shown, and within a cue by its lines. Times, numbers, styles and notes keep their bytes.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from dragoman.documents.document import Asked, Document, decode, of_text
from dragoman.documents.units import Part, Tag, Unit, escape
from dragoman.errors import DataError

SUFFIXES = (".srt", ".vtt")

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_CUE = re.compile(rf"^[^\S\n]*{_TIME}[^\S\n]*-->[^\S\n]*{_TIME}[^\n]*(?:\n|\Z)", re.MULTILINE)
_BODY_END = re.compile(r"\n[^\S\n]*(?:\n|\Z)|\Z")
_NUMBER = re.compile(r"(?:^|\n)[^\S\n]*\d*[^\S\n]*\n?\Z")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>|<\d[\d:.]*>|\{\\[^}\n]*\}")
_ENDED = re.compile(r"[.!?:…。！？：♪#)\]][\"'”’»」』)]*\s*$")
_BEGINS = re.compile(r"\s*(?:[-–—]\s*\S|[♪#(\[])")  # another speaker, a song, a sound

LONGEST_PAUSE_S = 1.5
"""Between two cues of one sentence."""

MOST_CUES = 8
"""Of one sentence."""


@dataclass
class _Line:
    """A line of a cue."""

    source: str
    cue: int
    start_s: float  # when it is shown; a cue's time is dealt to its lines by their length
    end_s: float
    before: str  # what stands between it and the line before


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    text = decode(data, asked)
    is_vtt = asked.name.lower().endswith(".vtt")
    if is_vtt and not text.text.startswith("WEBVTT"):
        raise DataError(f"{asked.name}: does not begin with WEBVTT, as every .vtt does")
    cues = list(_CUE.finditer(text.text.replace("\r", " ")))  # of the same length
    if not cues and text.text.strip() and not is_vtt:
        raise DataError(f"{asked.name}: has no times such as 00:00:01,000 --> 00:00:02,000, so it is no .srt")
    lines: list[_Line] = []
    at = 0
    for number, cue in enumerate(cues):
        start_s, end_s = (_seconds(cue.groups()[i : i + 4]) for i in (0, 4))
        if end_s < start_s:
            where = text.text.count("\n", 0, cue.start()) + 1
            raise DataError(f"{asked.name}:{where}: this cue ends before it begins")
        end = _BODY_END.search(text.text, cue.end() - 1)
        limit = cues[number + 1].start() if number + 1 < len(cues) else len(text.text)
        body = text.text[cue.end() : max(cue.end(), min(end.start() if end else limit, limit))]
        if cue.end() + len(body) == limit < len(text.text):  # no blank line before the next cue
            body = _NUMBER.sub("", body)
        n_chars = max(1, len(body))
        place = cue.end()
        for source in body.split("\n"):
            first = start_s + (end_s - start_s) * (place - cue.end()) / n_chars
            last = start_s + (end_s - start_s) * (place + len(source) - cue.end()) / n_chars
            kept = source.rstrip("\r")
            lines.append(_Line(kept, number, first, last, text.text[at:place]))
            at = place + len(kept)
            place += len(source) + 1
    parts: list[Part] = []
    sentence: list[_Line] = []
    for line in lines:
        if sentence and not _goes_on(sentence, line):
            parts += _unit(sentence, is_vtt)
            sentence = []
        sentence.append(line)
    parts += _unit(sentence, is_vtt) if sentence else []
    return of_text([*parts, text.text[at:]], text)


def _seconds(fields: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, part = (field or "0" for field in fields)
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds) + int(part) / 10 ** len(part)


def _goes_on(sentence: list[_Line], line: _Line) -> bool:
    """Is ``line`` a part of the sentence?"""
    before = _TAG.sub("", sentence[-1].source)
    here = _TAG.sub("", line.source)
    if not before.strip() or not here.strip() or _ENDED.search(before) or _BEGINS.match(here):
        return False
    pause_s = line.start_s - sentence[-1].end_s if line.cue != sentence[-1].cue else 0.0
    return -0.5 <= pause_s <= LONGEST_PAUSE_S and line.cue - sentence[0].cue < MOST_CUES


def _unit(sentence: list[_Line], is_vtt: bool) -> list[Part]:
    """The lines as one unit, cut by time."""
    unit = Unit(escape=escape if is_vtt else str)
    spoken_s = [line.end_s - line.start_s for line in sentence]
    total_s = sum(spoken_s)
    for i, line in enumerate(sentence):
        if i:
            share = sum(spoken_s[:i]) / total_s if total_s > 0 else i / len(sentence)
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
    if raw:
        unit.text += html.unescape(raw) if is_vtt else raw
        unit.raw.append(raw)
