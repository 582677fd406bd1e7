"""One direction of an augmentation: who translates what, and into which files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.distillation.text import arrow, sides_of
from dragoman.translation.language_pairs import Langs
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

WORK = "translations"
"""The folder of what nobody trains on."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction: who translates what into which files."""

    name: str  # forward, back
    translator: Translator
    runs: tuple[str, ...]
    plan: Plan
    texts: tuple[Path, ...]
    folder: Path

    @property
    def langs(self) -> Langs:
        """Of the training text."""
        pair = self.plan.src_lang, self.plan.tgt_lang
        return pair if self.name == "forward" else pair[::-1]

    @property
    def translates(self) -> str:
        """From which language into which its model translates, to be shown."""
        return arrow((self.plan.src_lang, self.plan.tgt_lang))

    @property
    def sides(self) -> tuple[Path, Path]:
        """The text that is made: source and target of the training text."""
        return sides_of(self.folder, self.name, self.langs)

    def work(self, what: str) -> Path:
        """A file of this direction that nobody trains on."""
        return self.folder / WORK / f"{self.name}{what}"
