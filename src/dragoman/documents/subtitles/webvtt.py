"""WebVTT (.vtt), cut into blocks as the standard cuts it: https://www.w3.org/TR/webvtt1/#file-parsing."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman.documents.document import DocumentInfo, Untranslated
from dragoman.documents.subtitles.cues import Cue, Film
from dragoman.documents.subtitles.overrides import override, with_ends
from dragoman.documents.subtitles.tokens import Token, tokenized
from dragoman.errors import DataError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TIME = r"(?:(\d{1,9}):)?(\d{2}):(\d{2})\.(\d{3})"
_TIMES = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t]++(.*+))?\Z")
_NEARLY = re.compile(
    r"[ \t]*(?:(\d{1,9})[:.])?(\d{1,2})[:.](\d{1,2})[.,:](\d{1,9})[ \t]*-->"
    r"[ \t]*(?:(\d{1,9})[:.])?(\d{1,2})[:.](\d{1,2})[.,:](\d{1,9})(?:[ \t]++(.*+))?\Z"
)
"""Times that other programs write, with too few digits or a comma."""

_TOKEN = re.compile(
    r"\r\n|\r|\n|&#?[A-Za-z\d]{1,32};?|<rt[^<>]*>[^<>]*(?:</rt[^<>]*>)?|"
    r"<\d[\d:.]*>|<[A-Za-z][^<>]*(?:>|\Z)|</[^<>]*(?:>|\Z)|<>|\{\\[^{}\r\n]*\}"
)
_NO_END = re.compile(r"</?[A-Za-z][^<>]*\Z")
_TAG_NAME = re.compile(r"</?([A-Za-z]+)")


def tokenize(source: str) -> list[Token]:
    """Cut the text of a caption into tokens."""
    return tokenized(source, _TOKEN, _token)


def _token(match: re.Match[str]) -> Token:
    source = match[0]
    if source[0] in "\r\n":
        return Token(source, "break")
    if source[0] == "&":
        return Token(source, text=html.unescape(source))
    if source[1].isdigit():
        return Token(source, "time")
    if source[0] == "{":
        return override(source)
    name = _TAG_NAME.match(source)
    kind = name[1] if name else "rt"
    if kind == "v":
        return Token(source, "turn", name="" if source.startswith("</") else source)
    if kind == "rt" or source[-1] != ">":  # the reading of a word, or no tag
        return Token(source, "point")
    return Token(source, "close" if source.startswith("</") else "open", name=kind)


@dataclass
class _Blocks:
    """The blocks of a file while they are read."""

    skeleton: list[str | Cue] = field(default_factory=list)
    left: list[Untranslated] = field(default_factory=list)


def read_blocks(text: str, info: DocumentInfo) -> Film:
    """Cut a file into cues.

    Raises:
        DataError: The file does not begin with WEBVTT.
    """
    lines = [match[0] for match in _LINE.finditer(text) if match[0]]
    first = lines[0].rstrip("\r\n") if lines else ""
    if not first.startswith("WEBVTT") or first[6:7].strip():
        raise DataError(f"{info.name}: does not begin with WEBVTT, as every .vtt does")
    blocks = _Blocks()
    start = next((i for i, line in enumerate(lines) if not line.strip("\r\n") or (i and "-->" in line)), len(lines))
    blocks.skeleton.append("".join(lines[:start]))
    while start < len(lines):
        end = _end_of_block(lines, start)
        _add(blocks, lines[start:end], start)
        start = end
    line_break = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    return Film(blocks.skeleton, tokenize, line_break, is_escaped=True, left=blocks.left)


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Return the number of the line after a block: an empty line or one with times ends it."""
    end, has_times = start, False
    while end < len(lines) and lines[end].strip("\r\n"):
        if "-->" in lines[end]:
            if has_times or end > start + 1:
                break
            has_times = True
        end += 1
    return max(end, start + 1)


def _add(blocks: _Blocks, lines: Sequence[str], start: int) -> None:
    """Add a block: a cue, or one that no player shows."""
    number = next((i for i, line in enumerate(lines[:2]) if "-->" in line), -1)
    is_note = number == 0 and lines[0].startswith("NOTE")
    if number < 0 or is_note:
        source = "".join(lines)
        blocks.skeleton.append(source)
        is_kept = source.startswith(("NOTE", "STYLE", "REGION"))
        if not is_kept and any(map(str.isalpha, source)):
            why = f"line {start + 1}: stands outside the cues, as after an empty line, so no player shows it"
            blocks.left.append(Untranslated(source.strip(), why))
        return
    times = lines[number].rstrip("\r\n")
    blocks.skeleton.append("".join(lines[: number + 1]))
    match, line = _TIMES.match(times), start + number + 1
    start_s, end_s, settings = _read_times(match or _NEARLY.match(times))
    if match is None:
        blocks.left.append(
            Untranslated(times.strip(), f"line {line}: has no times that can be read; they stay as they are")
        )
        settings += f" line {line}"
    elif start_s is not None and end_s is not None and end_s < start_s:
        why = f"line {line}: this cue ends before it begins; its times stay as they are"
        blocks.left.append(Untranslated(times.strip(), why))
    tokens = tuple(with_ends(tokenize("".join(lines[number + 1 :]))))
    blocks.left += [
        Untranslated(token.source.strip(), f"line {line}: a tag without an end, which players drop with all behind it")
        for token in tokens
        if _NO_END.match(token.source) and any(map(str.isalpha, token.source))
    ]
    readings = [re.sub(r"<[^<>]*>", "", token.source) for token in tokens if token.source.startswith("<rt")]
    why = f"line {line}: the reading of a word stays as it is"
    blocks.left += [Untranslated(reading, why) for reading in readings if any(map(str.isalpha, reading))]
    blocks.skeleton.append(Cue(tokens, line, start_s, end_s, settings))


def _read_times(match: re.Match[str] | None) -> tuple[float | None, float | None, str]:
    """Return the start and the end of a cue in seconds, and its settings."""
    if match is None:
        return None, None, ""
    fields = [field or "0" for field in match.groups()[:8]]
    start_s, end_s = (
        3600 * int(hours) + 60 * int(minutes) + int(seconds) + float(f"0.{part}")
        for hours, minutes, seconds, part in (fields[:4], fields[4:])
    )
    return start_s, end_s, " ".join(sorted((match[9] or "").split()))
