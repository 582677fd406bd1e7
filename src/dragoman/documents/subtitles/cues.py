"""Cues, and the pieces that they consist of: lines that one voice speaks and that one sentence may hold.

A piece never mixes two speakers, two sounds, or the lines on both sides of an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.documents.document import Untranslated
from dragoman.documents.subtitles.tokens import (
    Shell,
    Token,
    Tokenize,
    has_text,
    source_of,
    split,
    strip,
    text_of,
    turns_in,
)
from dragoman.documents.units import escape
from dragoman.languages.sentence_ends import ENDS

ENDINGS = (*ENDS, "…", ":", "：", "♪", "♫", "#", ")", "]", "）", "】", "］")
"""Marks after which no sentence continues in the next line."""

CLOSING = "\"'”’»」』)]）】"
"""Marks that may follow the one that ends a sentence."""


@dataclass(frozen=True)
class Cue:
    """A caption: what is shown, when, and where."""

    tokens: tuple[Token, ...]
    line: int  # its line in the file, from 1
    start_s: float | None = None
    end_s: float | None = None
    settings: str = ""  # position, style and speaker, as the format writes them


@dataclass(frozen=True)
class Film:
    """A file of subtitles: its cues, and the source between them."""

    skeleton: Sequence[str | Cue]
    tokenize: Tokenize
    line_break: str  # as a caption has it where none of its own shows how
    is_escaped: bool = False  # ``&``, ``<`` and ``>`` are written as entities
    left: Sequence[Untranslated] = ()
    no_break_space: str = "\u00a0"  # as it is written

    def escape(self, text: str) -> str:
        """Return text as the file writes it."""
        return (escape(text) if self.is_escaped else text).replace("\u00a0", self.no_break_space)


@dataclass(frozen=True)
class Segment:
    """A part of a line that one voice speaks."""

    tokens: list[Token]
    before: str  # source between the segment before and this one
    voice: str = ""
    is_next_line: bool = False  # one line break parts it from the segment before, and nothing else
    begins: bool = False  # no sentence continues here

    @cached_property
    def text(self) -> str:
        """Text without tags and outer white space."""
        return text_of(self.tokens).strip()


@dataclass(eq=False)
class Piece:
    """Lines of a cue that belong together."""

    cue: Cue
    lines: list[list[Token]]
    voice: str
    begins: bool
    breaks: list[Token] = field(default_factory=list)  # between the lines
    copy_of: Piece | None = None  # the first piece with the words that this one repeats, as captions do that roll up

    @property
    def tokens(self) -> list[Token]:
        """All tokens of the piece."""
        tokens = list(self.lines[0])
        for line, line_break in zip(self.lines[1:], self.breaks, strict=True):
            tokens += [line_break, *line]
        return tokens

    @property
    def source(self) -> str:
        """Source of the piece."""
        return source_of(self.tokens)

    @cached_property
    def shell(self) -> tuple[Shell, tuple[str, str]]:
        """Return the words of the piece and what encloses them, and what encloses each line."""
        if any(token.kind == "time" for token in self.tokens):  # each word has its own moment
            return ("", self.tokens, ""), ("", "")
        shells = [strip(line) for line in self.lines]
        before, _, after = shells[0]
        if len(shells) > 1 and before and all((own, other) == (before, after) for own, _, other in shells):
            inner = list(shells[0][1])
            for (_, line, _), line_break in zip(shells[1:], self.breaks, strict=True):
                inner += [line_break, *line]
            return (before, inner, after), (before, after)
        return strip(self.tokens), ("", "")


def segments_of(cue: Cue) -> tuple[list[Segment], str]:
    """Return the segments of a cue, and the source after the last one."""
    segments: list[Segment] = []
    run: list[Token] = []
    before, voice = "", ""
    n_breaks, is_cut = 0, False  # since the last segment

    def flush() -> None:
        nonlocal before, n_breaks, is_cut, run
        if not has_text(run):
            before += source_of(run)
            is_cut = is_cut or any(token.kind != "text" for token in run)
        else:
            is_next_line = bool(segments) and n_breaks == 1 and not is_cut
            for i, part in enumerate(split(run, turns_in(text_of(run), ENDINGS))):
                own = is_next_line and i == 0
                segments.append(Segment(part, before, voice, own, begins=i > 0 or (is_cut and n_breaks > 1)))
                before, n_breaks, is_cut = "", 0, False
        run = []

    for token in cue.tokens:
        if token.kind not in ("break", "turn", "stop"):
            run.append(token)
            continue
        flush()
        before += token.source
        if token.kind == "break":
            n_breaks += 1
        else:
            is_cut = True
            n_breaks += 2 * (token.kind == "stop")
            voice = token.name if token.kind == "turn" else voice
    flush()
    return segments, before
