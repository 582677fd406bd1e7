"""Subtitles: SubRip (.srt), WebVTT (.vtt), Advanced SubStation Alpha (.ass, .ssa), timed text (.ttml, .dfxp) and .sbv.

A sentence that continues in the next cue is one unit, and so are the lines of a cue. Its translation is divided among
the cues where the word alignment puts it. Times, numbers, styles and notes keep their bytes.
"""

from __future__ import annotations

from dragoman.documents import xml
from dragoman.documents.document import Document, DocumentInfo, decode
from dragoman.documents.subtitles import ass, subrip, ttml, webvtt
from dragoman.documents.subtitles.writing import film_document

SUFFIXES = (".srt", ".vtt", ".ass", ".ssa", ".ttml", ".dfxp", ".sbv")
OPTIONS = ("line_length", "reading_speed")
COMPARED = ("markup",)  # sentences may end elsewhere in the translation


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut subtitles into the sentences of their cues; see ``document.Format``."""
    suffix = info.name.lower().rpartition(".")[2]
    text = xml.check(data, info) if suffix in ("ttml", "dfxp") else decode(data, info)
    read_film = {
        "srt": subrip.read_lines, "sbv": subrip.read_lines, "vtt": webvtt.read_blocks, "ass": ass.read_events,
        "ssa": ass.read_events, "ttml": ttml.read_paragraphs, "dfxp": ttml.read_paragraphs,
    }[suffix]  # fmt: skip
    return film_document(read_film(text.text, info), text, info)
