"""Notes on a text or its translation. Programs act on the kind of a note, never on its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dragoman.decoding.cancellation import Cancellation

Kind = Literal[
    "not_text",  # subtitle times, markup or code
    "input",  # bytes that are not UTF-8, a line that is too long to read
    "split",  # a line was translated in parts
    "unseen",  # the source contains words that the training text does not have
    "unknown",  # the source contains characters that the vocabulary does not have
    "script",  # the source is in letters that the model never saw, or has letters that only look like known ones
    "loop", "copy", "empty", "long", "short",  # faults that the guard found
    "number", "placeholder",  # a span that must be kept is missing: see ``protected``
    "constraint",  # a required word is missing, or an excluded word appears
    "alignment",  # the translation has no alignment
    "memory",  # out of memory, so there is no translation
    "dropped",  # it was cancelled, so there is no translation
    "repaired", "too_long",  # a parser's tree
    "not_scored",
    "same_language",  # the text is in the target language already, so it was not translated
    "zero_shot",  # the model was never trained on this pair of languages
    "language",  # the source looks like another language than the one that the model reads
]  # fmt: skip


@dataclass(frozen=True)
class Note:
    """One message about a text or its translation.

    Attributes:
        kind: Topic, one of ``Kind``; programs rely on it.
        text: Sentence for people.
        where: Name of the text, such as FILE:3; empty if there is only one.
        left: True if the fault is still there.
        words: Words of the source that it is about; only ``unseen`` names them.
    """

    kind: Kind
    text: str
    where: str = ""
    left: bool = False
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


@dataclass(frozen=True, kw_only=True, repr=False)
class Events:
    """Callbacks while texts are translated.

    Attributes:
        warn: Called with the note on each text that was split, and with each note of a translation.
        failed: Called with the note on each text that ran out of memory; None: an error is raised at the end.
        progress: Called after each batch: number done, number of all, and what is counted.
        label: Returns the name of text number i (from 1) for notes.
        cancellation: Once cancelled, the search of all texts ends at its next step; unfinished texts get a note of the
            kind ``dropped``.
    """

    warn: Callable[[Note], object] | None = None
    failed: Callable[[Note], object] | None = None
    progress: Callable[[int, int, str], object] | None = None
    label: Callable[[int], str] = "line {}".format
    cancellation: Cancellation | None = None

    def __repr__(self) -> str:
        """Return the names of the arguments that are not the default."""
        given = [name for name, field in self.__dataclass_fields__.items() if getattr(self, name) != field.default]
        return f"Events({', '.join(f'{name}=...' for name in given)})"


QUIET = Events()
