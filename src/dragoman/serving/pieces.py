"""Pieces of a document's texts, and their translations, in one file, so that memory holds a window of them at a time.

    pieces = Pieces.of(texts, path, most_chars=50_000, lang="en")
    while window := pieces.window():
        pieces.add(translate(window))
    pieces.translated("de")       # (text, translation, alignment) of each text, read from the file

Many documents may be under way at a time, of which few have their turn. The pieces of a short one stay in memory.
"""

from __future__ import annotations

import contextlib
import io
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.documents.translate import is_lost, why_missing
from dragoman.languages.known import is_unspaced
from dragoman.languages.sentences import sentences
from dragoman.serving.storage import opened, storing
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.protected import find
from dragoman.translation.quality import Quality, of_text

WINDOW = 64
"""Largest number of pieces in a window."""

IN_MEMORY = 64 * 1024
"""Largest document, in characters of its texts, whose pieces stay in memory."""

ROOM_PER_CHAR = 6
"""Bytes of a file for each character of the texts: these, a translation of the same length, and word alignments."""


def room_of_pieces(n_chars: int) -> int:
    """Return the room that the pieces of a document need on disk, in bytes."""
    return ROOM_PER_CHAR * n_chars if n_chars > IN_MEMORY else 0


@dataclass(frozen=True)
class _Row:
    """Translation of a piece, as the file has it."""

    piece: str
    ends_text: bool
    text: str
    alignment: Sequence[tuple[int, int]] | None
    is_lost: bool  # not translated, for want of memory
    quality: Quality | None


class Pieces:
    """Pieces of one document: first those to translate, after them the translated ones."""

    def __init__(self, path: Path | None, most_chars: int) -> None:
        """Begin without pieces; ``path`` is the file to write, None: memory."""
        self._path, self._most_chars, self._memory = path, most_chars, io.BytesIO()
        self._next = self._start = self._end = 0  # of the next piece, the first translation, and all that was written
        self._window: list[tuple[str, bool]] = []

    @classmethod
    def of(cls, texts: Sequence[str], path: Path, most_chars: int, lang: str) -> Pieces:
        """Cut texts into pieces of at most ``most_chars`` characters, whole sentences where they are not longer.

        Args:
            path: File for the pieces, which may have been reserved.
            lang: Language of the texts.

        Raises:
            FullError, UnstorableError: The file cannot be written.
        """
        is_long = sum(map(len, texts)) > IN_MEMORY
        pieces = cls(path if is_long else None, most_chars)
        if is_long:
            with storing(), contextlib.suppress(FileExistsError):
                path.touch(exist_ok=False)
        own = (_cut(text, most_chars, lang) for text in texts)
        pieces._append(_line([piece, i == len(cut)]) for cut in own for i, piece in enumerate(cut, 1))
        pieces._start = pieces._end
        return pieces

    def window(self) -> list[str]:
        """Return the next pieces: at most ``WINDOW``, and ``most_chars`` characters unless one has more; [] at the end.

        Raises:
            UnstorableError: The file cannot be read.
        """
        window: list[tuple[str, bool]] = []
        n_chars = 0
        with self._opened() as file:
            file.seek(self._next)
            while self._next < self._start and len(window) < WINDOW:
                line = file.readline()
                piece, ends_text = _values(line)
                if window and n_chars + len(piece) > self._most_chars:
                    break
                self._next += len(line)
                window.append((piece, ends_text))
                n_chars += len(piece)
        self._window = window
        return [piece for piece, _ in window]

    def add(self, translations: Iterable[Translation]) -> None:
        """Store the translations of the last window.

        Raises:
            FullError, UnstorableError: The file cannot be written.
        """
        self._append(
            _line([piece, ends_text, line.text, line.alignment, is_lost(line), line.quality])
            for (piece, ends_text), line in zip(self._window, translations, strict=True)
        )
        self._window = []

    def translated(self, lang: str) -> Iterator[list[object]]:
        """Yield (text, translation, alignment) of each text with a usable translation in ``lang``."""
        for text, translation, alignment, why in self._texts(lang):
            if not why:
                yield [text, translation, alignment]

    def untranslated(self, lang: str) -> Iterator[list[object]]:
        """Yield (text, reason) of each other text."""
        for text, _, _, why in self._texts(lang):
            if why:
                yield [text, why]

    def qualities(self) -> Counter[Quality]:
        """Return the number of texts of each quality, as far as it is known."""
        qualities = (of_text(row.quality for row in rows) for rows in self._rows_by_text())
        return Counter(quality for quality in qualities if quality is not None)

    def _texts(self, lang: str) -> Iterator[tuple[str, str, Sequence[tuple[int, int]] | None, str]]:
        """Yield each text with its translation, its alignment unless it was cut, and why it has none."""
        separator = "" if is_unspaced(lang) else " "
        for rows in self._rows_by_text():
            text = rows[0].text if len(rows) == 1 else separator.join(t for r in rows if (t := r.text.strip()))
            why = why_missing(text, any(r.is_lost for r in rows))
            yield "".join(r.piece for r in rows), text, rows[0].alignment if len(rows) == 1 else None, why

    def _rows_by_text(self) -> Iterator[list[_Row]]:
        """Yield the translated pieces of each text."""
        rows: list[_Row] = []
        with self._opened() as file:
            file.seek(self._start)
            while file.tell() < self._end:
                rows.append(_Row(*_values(file.readline())))
                if rows[-1].ends_text:
                    yield rows
                    rows = []

    def _append(self, lines: Iterable[str]) -> None:
        with self._opened() as file:
            file.seek(self._end)
            for line in lines:
                self._end += file.write(f"{line}\n".encode("utf-8", "surrogatepass"))  # a page may have odd bytes

    @contextlib.contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self._path is None:
            yield self._memory
            return
        # Open only while it is used: a server may have as many documents under way as keys.
        with storing(), opened(self._path, to_change=True) as file:
            yield file


def _line(values: Sequence[object]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _values(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


def _cut(text: str, most_chars: int, lang: str) -> list[str]:
    """Cut a text that is longer than a request may be into pieces of whole sentences, where they are not longer."""
    if len(text) <= most_chars:
        return [text]
    pieces = [""]
    for sentence in sentences(text, lang):
        for part in _parts(sentence, most_chars):
            if len(pieces[-1]) + len(part) > most_chars:
                pieces.append("")
            pieces[-1] += part
    return pieces


def _parts(sentence: str, most_chars: int) -> Iterator[str]:
    """Yield a sentence in parts of at most ``most_chars``, cut at spaces, and never in what must arrive unchanged.

    Without a space it is cut between two characters; so is a span that is longer than a part may be.
    """
    if len(sentence) <= most_chars:
        yield sentence
        return
    spans = [(span.start, span.end) for span in find(sentence)]
    ends = [end for _, end in spans]
    start = 0
    while len(sentence) - start > most_chars:
        last = start + most_chars
        places = [place for place in range(last, start, -1) if sentence[place - 1].isspace()]
        end = next((place for place in (*places, *range(last, start, -1)) if not _is_inside(place, spans, ends)), last)
        yield sentence[start:end]
        start = end
    yield sentence[start:]


def _is_inside(place: int, spans: Sequence[tuple[int, int]], ends: Sequence[int]) -> bool:
    """True if a place lies inside one of some spans, whose ends are given too."""
    i = bisect_right(ends, place)
    return i < len(spans) and spans[i][0] < place
