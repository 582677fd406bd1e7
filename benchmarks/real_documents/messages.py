"""Judges of tables and subtitles: csv, srt and webvtt-py."""

from __future__ import annotations

import csv
import io
import re

import srt
import webvtt

from benchmarks.real_documents.judging import Block, UnreadableError

# --- subtitles and tables ---------------------------------------------------------------------------------------------


def subtitles(data: bytes) -> list[Block]:
    """Read cues of SubRip."""
    try:
        cues = list(srt.parse(data.decode("utf-8-sig")))
    except (srt.SRTParseError, UnicodeDecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.start} {cue.end} {cue.proprietary}", cue.content) for cue in cues]


def web_subtitles(data: bytes) -> list[Block]:
    """Read cues of WebVTT."""
    try:
        cues = webvtt.from_string(data.decode("utf-8-sig"))
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.identifier} {cue.start} {cue.end}", cue.raw_text) for cue in cues]


def _cue(name: str, text: str) -> Block:
    block = Block(name, is_cue=True)
    for part in re.split(r"(<[^>]*>|\{\\[^}]*\})", text):
        if re.fullmatch(r"<[^>]*>|\{\\[^}]*\}", part):
            block.marks.append(part)
        else:
            block.add("", part)
    return block


def table(data: bytes, delimiter: str = ",") -> list[Block]:
    """Read rows and cells."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from None
    return [Block(f"row {i}", [(str(j), cell) for j, cell in enumerate(row)]) for i, row in enumerate(rows)]


def tabbed(data: bytes) -> list[Block]:
    """Read a table with tabs."""
    return table(data, "\t")
