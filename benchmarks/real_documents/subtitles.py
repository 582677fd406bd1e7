"""Judges of subtitles: srt and webvtt-py."""

from __future__ import annotations

import re

import srt
import webvtt

from benchmarks.real_documents.judging import Block, UnreadableError


def subrip(data: bytes) -> list[Block]:
    """Read cues of SubRip."""
    try:
        cues = list(srt.parse(data.decode("utf-8-sig")))
    except (srt.SRTParseError, UnicodeDecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    return [_cue(f"{cue.start} {cue.end} {cue.proprietary}", cue.content) for cue in cues]


def webvtt_cues(data: bytes) -> list[Block]:
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
