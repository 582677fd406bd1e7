"""Which text ``doctor`` examines: each option once, with its name and help. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass

from dragoman.translation.options import Options, option


@dataclass(frozen=True, kw_only=True)
class TextFiles(Options):
    """Parallel text: source and target of each set, line by line."""

    src: Annotated[Path | None, option("Text", "Source side of the training text (also .gz, .zst).")] = None
    tgt: Annotated[
        Path | None, option("Text", "Target side of the training text, aligned with --src line by line.")
    ] = None
    valid_src: Annotated[Path | None, option("Text", "Source side of the validation set.")] = None
    valid_tgt: Annotated[Path | None, option("Text", "Target side of the validation set.")] = None
    test_src: Annotated[Path | None, option("Text", "Source side of the test set.")] = None
    test_ref: Annotated[Path | None, option("Text", "References of the test set.")] = None

    @property
    def sets(self) -> dict[str, tuple[Path | None, Path | None]]:
        """The two files of each set."""
        return {
            "train": (self.src, self.tgt), "valid": (self.valid_src, self.valid_tgt),
            "test": (self.test_src, self.test_ref),
        }  # fmt: skip
