"""Sides: texts handed in as a source or a target, compared with the languages that a run knows.

    refuse_by_name([Side(Path("test.de"), "en", "runs/x translates from")], "add --from de")    # raises
    doubt("test.txt", lines, "en", "runs/x translates from")    # "test.txt: looks like German (de), but runs/x ..."

The name of a file decides, so it is refused; the words of a text are a guess, so they give a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dragoman.data.corpus import lines_of
from dragoman.errors import ConfigError
from dragoman.languages.mixups import name_of, named_otherwise, written_in

FIRST_LINES, SAMPLE_LINES, SAMPLE_CHARACTERS = 2000, 60, 100
"""Lines at the beginning of a text that a sample is taken from, lines of the sample, and characters of each."""

LEAST_LINES, NEARLY_ALL = 5, 0.9
"""Two texts of this many lines are taken for one if this share of their lines is the same."""


@dataclass(frozen=True)
class Side:
    """A file, and the language that it should be in."""

    path: Path
    lang: str | None
    expected_by: str
    """Who expects it, up to the language: ``runs/x translates from``."""


def refuse_by_name(sides: Sequence[Side], meant: str | Callable[[str], str]) -> None:
    """Check that no file name tells another language than the one expected.

    Args:
        sides: The files.
        meant: How to say that it is meant; a function gets the language that the name tells.

    Raises:
        ConfigError: The name of a file does.
    """
    named = [named_otherwise(side.path, side.lang) for side in sides]
    swapped = len(sides) == 2 and all(
        lang and other.lang and named_otherwise(Path(f"text.{lang}"), other.lang) is None
        for lang, other in zip(named, reversed(sides), strict=True)
    )
    for side, lang in zip(sides, named, strict=True):
        if lang is not None and side.lang is not None:
            what = "swap the two files" if swapped else f"give text in {name_of(side.lang)}"
            how = meant if isinstance(meant, str) else meant(lang)
            raise ConfigError(f"{_by_its_name(side, lang)}: {what}{how and f', or {how}'}")


def doubt_about_name(side: Side) -> str | None:
    """Return a warning if the name of a file that is to be written tells another language; else None."""
    lang = named_otherwise(side.path, side.lang)
    return None if lang is None else _by_its_name(side, lang)


def _by_its_name(side: Side, lang: str) -> str:
    """Return what is odd about the name of a file, which tells ``lang``."""
    return f"{side.path}: {name_of(lang)} by its name, but {side.expected_by} {name_of(side.lang or '')}"


def doubt(name: object, lines: Iterable[str], lang: str | None, expected_by: str) -> str | None:
    """Return a warning if most of a text is surely in another language than ``lang``; else None."""
    other = written_in(sample(lines), lang)
    if other is None or lang is None:
        return None
    return f"{name}: looks like {name_of(other)}, but {expected_by} {name_of(lang)}"


def doubt_about(side: Side) -> str | None:
    """Return a warning if a file is surely in another language; None also for one that can be read only once."""
    return doubt(side.path, lines_of(side.path), side.lang, side.expected_by) if side.path.is_file() else None


def warnings_about(sides: Sequence[Side]) -> list[str]:
    """Return a warning for each file that is surely in another language, and one if two of them are one text."""
    warnings = [warning for side in sides if (warning := doubt_about(side)) is not None]
    if len(sides) == 2 and all(side.path.is_file() for side in sides):
        lines = [list(islice(lines_of(side.path), FIRST_LINES)) for side in sides]
        if are_one_text(*lines):
            warnings.append(f"{sides[1].path}: the same text as {sides[0].path}; is it the right file?")
    return warnings


class LanguageWatch:
    """Compares the lines of a stream with a language as they come, until one warning or ``SAMPLE_LINES`` lines.

    Their beginning is judged each time that it has twice as many lines as before, so that a short text is judged too.
    """

    def __init__(self, name: str, lang: str | None, expected_by: str, warn: Callable[[str], object]) -> None:
        self.name, self.lang, self.expected_by, self.warn = name, lang, expected_by, warn
        self._lines: list[str] = []
        self._judged_at = 1
        self._is_done = lang is None

    def __call__(self, lines: Sequence[str]) -> None:
        """Look at the next lines."""
        if self._is_done:
            return
        self._lines += sample(lines)
        if len(self._lines) < self._judged_at:
            return
        self._judged_at = 2 * len(self._lines)
        warning = doubt(self.name, self._lines, self.lang, self.expected_by)
        if warning is not None:
            self.warn(warning)
        self._is_done = warning is not None or len(self._lines) >= SAMPLE_LINES


def sample(lines: Iterable[str]) -> list[str]:
    """Return lines that are spread over the beginning of a text, none of them blank, and each cut short."""
    filled = [line for line in islice(lines, FIRST_LINES) if line.strip()]
    step = max(1, len(filled) // SAMPLE_LINES)
    return [line[:SAMPLE_CHARACTERS] for line in filled[::step][:SAMPLE_LINES]]


def are_one_text(lines: Sequence[str], others: Sequence[str]) -> bool:
    """Return True if nearly all lines of two texts are the same; texts of a few lines never count."""
    filled = [pair for pair in zip(lines, others, strict=False) if any(line.strip() for line in pair)]
    same = sum(one == other for one, other in filled)
    return len(filled) >= LEAST_LINES and same >= NEARLY_ALL * len(filled)
