"""Reports of the notes on many lines: their numbers in one line at the end, each note in a file or as it comes.

with NoteReport(WarningOptions(warnings="warnings.txt")) as report:
    translator.translate_file("test.en", "test.hyp.de", events=Events(warn=report.add))
    report.n_lines = 200
# 98 of 200 lines looked faulty: 54 repaired, 44 left; list: warnings.txt
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from dragoman.errors import BYTES_OF_NAMES, ConfigError
from dragoman.files import check_output, explained, pinned
from dragoman.options import Options, option, option_group
from dragoman.progress import say
from dragoman.translation.notes import Kind, Note

FEW = 3
"""Largest number of notes that are printed in full instead of counted."""

FAULTS: frozenset[Kind] = frozenset(
    ("loop", "copy", "empty", "long", "short", "number", "placeholder", "constraint", "script", "repaired")
)
"""Kinds of notes on a translation that looked faulty; the other kinds are about the source."""

AT_ONCE: frozenset[Kind] = frozenset(("memory", "dropped", "zero_shot", "language"))
"""Kinds of notes that are printed as they come: lost translations, and remarks on a whole text."""

_REMARKS: dict[Kind, str] = {
    "split": "translated in parts", "unknown": "with characters that the model does not know",
    "unseen": "with words that the model never saw",
    "input": "not readable as they are", "not_text": "not text but markup, code or times",
    "alignment": "without an alignment", "too_long": "longer than the training text", "not_scored": "not scored",
    "same_language": "in the target language already",
}  # fmt: skip
"""Words for the number of lines with a note of each other kind."""


@option_group
class WarningOptions(Options):
    """Amount of warnings on single lines that a command prints."""

    verbose: bool = option(
        False, "Output", "Print every warning with its line, not only their number.", flag="-v --verbose"
    )
    warnings: Path | None = option(None, "Output", "Write every warning with its line to this file.")


class NoteReport:
    """Counts notes while texts are translated; ``close`` prints one line about them.

    Up to ``FEW`` notes are printed in full instead. Only these are held in memory, so a stream may be endless.

    Attributes:
        n_lines: Number of all lines; None if the end was not reached.
        unit: Name of what is counted.
    """

    def __init__(
        self, options: WarningOptions, *, name: str = "", say: Callable[[str], object] = say, unit: str = "lines",
        begins_list: bool = False,
    ) -> None:  # fmt: skip
        """Begin a report.

        Args:
            options: What is printed besides the numbers.
            name: Name of the run, where there is more than one.
            say: Prints a line.
            unit: Name of what is counted.
            begins_list: True for the first report of a command: the file of warnings is emptied before the first note.
        """
        self.options, self.unit = options, unit
        self._list = None if options.warnings is None else pinned(options.warnings)
        self.n_lines: int | None = None
        self._prefix, self._say = f"{name}: " if name else "", say
        self._file: TextIO | None = None
        self._begins_list = begins_list
        self._first: list[Note] = []
        self._n_notes = 0
        self._place = ""  # of the last faulty line, and
        self._place_left = False  # whether its fault is still there
        self._faulty: Counter[bool] = Counter()  # lines whose fault is still there, and those repaired
        self._remarks: Counter[Kind] = Counter()
        self._remark_places: dict[Kind, str] = {}

    def add(self, note: Note) -> None:
        """Count a note; the notes on a line must come one after the other."""
        if (file := self._opened()) is not None:
            file.write(f"{self._prefix}{note}\n")
        if note.kind in AT_ONCE or self.options.verbose:
            self._say(f"warning: {self._prefix}{note}")
        if note.kind in AT_ONCE:
            return
        self._n_notes += 1
        if len(self._first) < FEW:
            self._first.append(note)
        if note.kind in FAULTS:
            self._add_fault(note)
        elif not note.where or self._remark_places.get(note.kind) != note.where:
            self._remarks[note.kind] += 1
            self._remark_places[note.kind] = note.where

    def _add_fault(self, note: Note) -> None:
        left = note.left or note.kind == "constraint"
        if note.where and note.where == self._place:  # another fault of the same line
            self._faulty[self._place_left] -= 1
            left = left or self._place_left
        self._place, self._place_left = note.where, left
        self._faulty[left] += 1

    def summary(self) -> str:
        """Return the numbers in one line; "" if there are no notes."""
        parts = []
        if faulty := self._faulty.total():
            n_lines = (
                f"{faulty:,} {self.unit}" if self.n_lines is None else f"{faulty:,} of {self.n_lines:,} {self.unit}"
            )
            parts.append(f"{n_lines} looked faulty: {self._faulty[False]:,} repaired, {self._faulty[True]:,} left")
        for kind, words in _REMARKS.items():
            if number := self._remarks[kind]:
                parts.append(f"{number:,} {words}" if parts else f"{number:,} {self.unit} {words}")
        return "; ".join(parts)

    def close(self) -> None:
        """Print the few notes, or the numbers of many; close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._n_notes > FEW or (self._n_notes and self.options.warnings is not None):
            where = "" if self.options.verbose else "; list: -v"
            where = where if self.options.warnings is None else f"; list: {self.options.warnings}"
            self._say(f"{self._prefix}{self.summary()}{where}")
        elif not self.options.verbose:
            for note in self._first:
                self._say(f"warning: {self._prefix}{note}")
        self._n_notes, self._first = 0, []

    def _opened(self) -> TextIO | None:
        """Open the file of warnings at the first note: a command that is refused does not empty that of another one."""
        if self._file is None and self._list is not None:
            with explained(self._list):
                # To add, line by line, even after emptying: another process that writes there must not be written over.
                self._file = self._list.open("a", 1, encoding="utf-8", errors=BYTES_OF_NAMES)
                if self._begins_list and self._list.is_file():
                    self._file.truncate(0)
            self._begins_list = False
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._opened()  # a list without a warning is empty
        self.close()


def check_list(options: WarningOptions, *inputs: Path | None) -> None:
    """Check the file of warnings before anything is computed.

    Raises:
        ConfigError: It cannot be written, it is an input, or it is the file to which the command prints.
    """
    path = options.warnings
    if path is None:
        return
    check_output(path, *inputs)
    if path.exists() and not path.is_file():  # a pipe's reader would take a trial for the end
        return
    with explained(path):
        path.open("a", encoding="utf-8").close()
    for stream in (1, 2):
        with suppress(OSError):  # it is closed
            if os.path.samestat(path.stat(), os.fstat(stream)):
                raise ConfigError(f"{path}: the command prints to this file too: name another file for its warnings")
