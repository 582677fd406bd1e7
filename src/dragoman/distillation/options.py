"""Options of ``distill`` and ``augment``: each once, with its name, type, default, check and help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from pydantic import field_validator, model_validator

from dragoman.options import (
    LanguageOptions,
    Options,
    QuietOptions,
    SamplingOptions,
    must,
    one_or_several,
    option,
    option_group,
)  # fmt: skip
from dragoman.toolkits.options import EngineOptions
from dragoman.training.options import RunOptions

_LAYERS = re.compile(r"(?:(?P<encoder>[1-9]\d*)\+)?(?P<decoder>[1-9]\d*)")
"""Form of ``--shrink``: N or E+N."""


@option_group
class FilterOptions(Options):
    """Choice of the translations that are good enough to learn from."""

    drop_worst: float = option(
        0.0, "Filters", "Share of the translations to drop, those with the lowest scores.", ge=0, lt=1
    )


@option_group
class DistillOptions(RunOptions, FilterOptions, LanguageOptions, EngineOptions):
    """Settings of the teachers' search, of the choice among their translations, and of the student."""

    engine: str = "auto"
    ref: Path | str | None = option(
        None, "Data", "References of --src, line by line: for --best-of, --with-references, and to hold out pairs."
    )
    mono: tuple[Path | str, ...] = option(
        (), "Data", "More text of the source language, without references; may be repeated."
    )
    valid_src: Path | str | None = option(
        None, "Data", "Source side of the validation text (default: the teacher's; or 1% of --src with --ref)."
    )
    valid_ref: Path | str | None = option(None, "Data", "References of the validation text.")
    best_of: int = option(
        1,
        "Filters",
        "Of each line's N best translations take the one with the highest chrF to its reference.",
        ge=1,
        le=1000,
    )
    preset: str | None = option(
        None,
        "Student",
        "The student's size, a preset: student, student-tiny or another (default: student, or smaller).",
    )
    shrink: str | int | None = option(
        None,
        "Student",
        "Instead of a preset: start with the teacher's own encoder and N of its decoder layers (E+N: and E of its "
        "encoder layers), and fine-tune.",
        metavar="N|E+N",
    )
    with_references: bool = option(False, "Student", "Also train on the pairs of --src and --ref as they are.")

    _mono = field_validator("mono", mode="before")(one_or_several)

    @field_validator("shrink", mode="before")
    @classmethod
    def _shrink(cls, layers: str | int | None) -> str | int | None:
        """Return N as a number, E+N as text."""
        if layers is None:
            return None
        parts = _LAYERS.fullmatch(str(layers).strip())
        if parts is None:
            raise must("be a number of decoder layers to keep, such as 1, or of encoder and decoder layers, as 2+1")
        return int(parts["decoder"]) if parts["encoder"] is None else parts[0]

    @property
    def layers(self) -> tuple[int | None, int] | None:
        """Encoder layers (None: all) and decoder layers that ``shrink`` keeps of the teacher's; None: no shrinking."""
        if self.shrink is None:
            return None
        *encoder, decoder = map(int, str(self.shrink).split("+"))
        return encoder[0] if encoder else None, decoder

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.has_both_sides("the validation text", "valid_src", "valid_ref")
        for name, requested in (("--best-of", self.best_of > 1), ("--with-references", self.with_references)):
            if requested and self.ref is None:
                raise ValueError(f"{name} needs the references of --src: give them with --ref")
        if self.shrink is not None and self.preset is not None:
            raise ValueError("--shrink takes the teacher's sizes: leave out --preset, or --shrink")
        if self.beam_size is not None and self.beam_size < self.best_of:
            raise ValueError(f"beam_size must be at least best_of = {self.best_of}, got {self.beam_size}")
        return self


BACK_TRANSLATED = "<bt>"
"""The tag of back-translated text, as in Caswell et al. 2019 (https://arxiv.org/abs/1906.06442)."""


@option_group
class AugmentOptions(QuietOptions, FilterOptions, LanguageOptions, SamplingOptions, EngineOptions):
    """Settings of synthetic data: search, filters, and its share in training."""

    engine: str = "auto"
    held_out: tuple[Path | str, ...] = option(
        (), "Data", "Text whose lines are not taken, such as a validation or test set; may be repeated."
    )
    max_ratio: float = option(
        3.0, "Filters", "Drop pairs where one side has more than N times the subwords of the other.", gt=1
    )
    any_language: bool = option(
        False, "Filters", "Keep lines that seem to be in another language, by script and telling words."
    )
    tag: str = option(BACK_TRANSLATED, "Training", "Tag before each back-translated source; '' for none.")
    forward_tag: str = option("", "Training", "Tag before each source that was translated forward (default: none).")
    weight: float = option(
        1.0, "Training", "How often each synthetic pair is drawn in an epoch (its weight in data.train).", gt=0
    )

    _held_out = field_validator("held_out", mode="before")(one_or_several)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.beam_size is not None and self.beam_size < self.n_best:
            raise ValueError(f"beam_size must be at least n_best = {self.n_best}, got {self.beam_size}")
        return self
