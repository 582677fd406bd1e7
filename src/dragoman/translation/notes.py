"""What a reader should know of a text or its translation; what acts on a note looks at its kind, never at its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dragoman.decoding.cancellation import Cancellation

Kind = Literal[
    "not_text",  # subtitle times, markup or code
    "input",  # bytes that are not UTF-8, a line that is too long to read
    "split",  # a line was translated in parts
    "unknown",  # the source contains characters that the vocabulary does not have
    "loop", "copy", "empty", "long", "short",  # what the guard saw; in its words what became of it
    "number", "placeholder",  # one that must arrive unchanged is missing: see ``protected``
    "constraint",  # a word is missing, or there although it is excluded
    "alignment",  # there is none
    "memory",  # out of memory, so there is no translation
    "dropped",  # it was cancelled, so there is no translation
    "repaired", "too_long",  # a parser's tree
    "not_scored",
    "zero_shot",  # the model was never trained on this pair of languages
]  # fmt: skip


@dataclass(frozen=True)
class Note:
    """One thing to know.

    Attributes:
        kind: What it is about, in one word that stays the same for programs.
        text: The sentence for people.
        where: Which text, such as FILE:3; empty where that is plain.
        left: A fault that the guard saw is still there.
    """

    kind: Kind
    text: str
    where: str = ""
    left: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


@dataclass(frozen=True, kw_only=True, repr=False)
class Events:
    """Who is told what, while texts are translated.

    Attributes:
        warn: Told of each text that was split, and of each note of a translation.
        failed: Told of each text that ran out of memory; None: an error at the end.
        progress: Told after each batch how many are done, of how many, and of what.
        label: Gives what a note calls text number i, from 1.
        cancellation: Ends the search of all texts at its next step once it is cancelled; texts that are not done have
            a note of the kind ``dropped``.
    """

    warn: Callable[[Note], object] | None = None
    failed: Callable[[Note], object] | None = None
    progress: Callable[[int, int, str], object] | None = None
    label: Callable[[int], str] = "line {}".format
    cancellation: Cancellation | None = None

    def __repr__(self) -> str:
        """What is not left at its default."""
        given = [name for name, field in self.__dataclass_fields__.items() if getattr(self, name) != field.default]
        return f"Events({', '.join(f'{name}=...' for name in given)})"


QUIET = Events()
