"""SubRip (.srt) and YouTube's captions (.sbv): a line with two times, then the text up to the next such line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.documents.document import DocumentInfo, Untranslated
from dragoman.documents.subtitles.cues import Cue, Film
from dragoman.documents.subtitles.overrides import override, with_ends
from dragoman.documents.subtitles.tokens import Token, tokenized
from dragoman.errors import DataError

_NUMBERS = re.compile(r"-?\d+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIME = r"-?\d{1,6}(?:[^\S\r\n]?[:;.,，：][^\S\r\n]?-?\d{1,9}){1,4}"
_ARROW = r"[^\S\r\n]*(?:[-–—−]{1,3}[^\S\r\n]?[>〉＞]|→)[^\S\r\n]*"
TIMES = re.compile(rf"[^\S\r\n]*({_TIME}){_ARROW}({_TIME})(?![\d:])(.*)")
SBV_TIMES = re.compile(
    r"[^\S\r\n]*(\d{1,6}:\d{1,2}:\d{1,2}[.,]\d{1,3})[,;][^\S\r\n]*(\d{1,6}:\d{1,2}:\d{1,2}[.,]\d{1,3})()[^\S\r\n]*\Z"
)
_LIKE_TIMES = re.compile(r"[^\S\r\n]*-?\d{1,6}[:;.,].*(?:-->|,\d{1,6}:)|.*\d[^\S\r\n]*-->|[^\S\r\n]*-->")
_TAG = re.compile(r"\r\n|\r|\n|</?[A-Za-z][^<>\r\n]*>|< {0,3}/ {0,3}(?:[ibus]|font) {0,3}>|\{\\[^{}\r\n]*\}|\[br\]")
_PLACE = re.compile(r"\{\\an?\d+\}|\\(?:pos|move)\([^()]*\)")
_TAG_NAME = re.compile(r"< {0,3}(/?) {0,3}([A-Za-z]+)")


def tokenize(source: str) -> list[Token]:
    """Cut the text of a caption into tokens."""
    return tokenized(source, _TAG, _token)


def _token(match: re.Match[str]) -> Token:
    source = match[0]
    if source[0] in "\r\n" or source == "[br]":
        return Token(source, "break")
    name = _TAG_NAME.match(source)
    if name is None:
        return override(source)
    return Token(source, "close" if name[1] else "open", name=name[2].lower())


def seconds(time: str) -> float:
    """Return a time such as ``00:01:02,500``, ``1:02.5`` or ``62`` in seconds."""
    numbers = _NUMBERS.findall(time)
    fraction = (
        float(f"0.{numbers.pop().lstrip('-')}")
        if len(numbers) == 4 or (len(numbers) > 1 and _has_fraction(time))
        else 0.0
    )
    total = 0.0
    for number in numbers:
        total = total * 60 + abs(int(number))
    return -(total + fraction) if time.lstrip().startswith("-") else total + fraction


def _has_fraction(time: str) -> bool:
    """True if a comma or a full stop parts the last number from the others."""
    return any(mark in ".,，" for mark in time if not mark.isdigit() and not mark.isspace())


@dataclass(frozen=True)
class _TimeLine:
    """A line with the times of a cue."""

    first: int  # number of the line that begins the cue: its number, or its times
    line: int  # number of the line with the times, from 0
    start_s: float | None
    end_s: float | None
    settings: str = ""


def read_lines(text: str, info: DocumentInfo) -> Film:
    """Cut a file into cues.

    Raises:
        DataError: No line has times.
    """
    lines = [match[0] for match in _LINE.finditer(text) if match[0]]
    is_sbv = info.name.lower().endswith(".sbv")
    times, left = _time_lines(lines, SBV_TIMES if is_sbv else TIMES)
    if not times and text.strip():
        example = "0:00:01.000,0:00:02.000" if is_sbv else "00:00:01,000 --> 00:00:02,000"
        raise DataError(f"{info.name}: has no times such as {example}, so it is not {'.sbv' if is_sbv else '.srt'}")
    head = "".join(lines[: times[0].first]) if times else text
    if any(map(str.isalpha, head)):
        left.insert(0, Untranslated(head.strip(), "line 1: stands before the first times, so no player shows it"))
    skeleton: list[str | Cue] = [head]
    for cue, after in zip(times, [*(other.first for other in times[1:]), len(lines)], strict=False):
        skeleton.append("".join(lines[cue.first : cue.line + 1]))
        body = "".join(lines[cue.line + 1 : after])
        tokens = with_ends(_body(body))
        place = " ".join(_PLACE.findall(body[:200]))
        skeleton.append(Cue(tuple(tokens), cue.line + 1, cue.start_s, cue.end_s, f"{cue.settings} {place}"))
    line_break = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    return Film(skeleton, tokenize, line_break, left=left)


def _time_lines(lines: Sequence[str], pattern: re.Pattern[str]) -> tuple[list[_TimeLine], list[Untranslated]]:
    """Return the lines with times, and those whose times are wrong."""
    times: list[_TimeLine] = []
    left: list[Untranslated] = []
    for i, line in enumerate(lines):
        match = pattern.match(line.rstrip("\r\n"))
        is_numbered = i > 0 and lines[i - 1].strip().isdecimal()
        may_begin = i == 0 or is_numbered or not lines[i - 1].strip()
        if match is None and not (may_begin and _LIKE_TIMES.match(line)):
            continue
        last = times[-1].line if times else -1
        first = i - 1 if is_numbered and i - 1 > last else i
        if match is None:
            why = f"line {i + 1}: has no times that can be read; they stay as they are"
            left.append(Untranslated(line.strip(), why))
            times.append(_TimeLine(first, i, None, None, f"line {i}"))
            continue
        start_s, end_s = seconds(match[1]), seconds(match[2])
        if end_s < start_s:
            why = f"line {i + 1}: this cue ends before it begins; its times stay as they are"
            left.append(Untranslated(line.strip(), why))
        times.append(_TimeLine(first, i, start_s, end_s, match[3].strip()))
    return times, left


def _body(body: str) -> list[Token]:
    """Return the tokens of a cue; no sentence continues after an empty line."""
    tokens: list[Token] = []
    n_breaks, blank = 1, ""  # since the last text
    for token in tokenize(body):
        if token.kind == "break" and n_breaks:
            tokens.append(Token(blank + token.source, "stop"))
            blank = ""
        elif token.kind == "text" and not token.text.strip() and n_breaks:
            blank += token.source
            continue
        else:
            tokens += [Token(blank, text=blank)] if blank else []
            tokens.append(token)
            blank = ""
        n_breaks = n_breaks + 1 if token.kind in ("break", "stop") else 0
    return [*tokens, Token(blank, text=blank)] if blank else tokens
