"""One direction of an augmentation: a model, the text that it translates, and the files to write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dragoman.distillation.text import arrow, sides_of
from dragoman.translation.language_pairs import Langs
from dragoman.translation.plan import Plan
from dragoman.translation.translator import Translator

REPORT = "augmentation.json"
"""Name of the report on an augmentation's files."""
WORK = "translations"
"""Name of the folder of intermediate files."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A model, the text that it translates, and the folder to write."""

    name: str  # forward, back
    translator: Translator
    runs: tuple[Path | str, ...]
    plan: Plan
    texts: tuple[Path, ...]
    folder: Path

    @property
    def langs(self) -> Langs:
        """Source and target language of the training data."""
        pair = self.plan.src_lang, self.plan.tgt_lang
        return pair if self.name == "forward" else pair[::-1]

    @property
    def translates(self) -> str:
        """Direction of the model for messages, such as "en -> de"."""
        return arrow((self.plan.src_lang, self.plan.tgt_lang))

    @property
    def sides(self) -> tuple[Path, Path]:
        """Source and target file of the synthetic data."""
        return sides_of(self.folder, self.name, self.langs)

    def work(self, what: str) -> Path:
        """Return the path of an intermediate file of this direction."""
        return self.folder / WORK / f"{self.name}{what}"
