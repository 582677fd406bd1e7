"""How to distill and how to augment: each option once, with its name, type, default, check and help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import ConfigDict, field_validator, model_validator
from pydantic.dataclasses import dataclass

from dragoman.translation.options import (
    BeamSize,
    Options,
    Precision,
    Sample,
    Seed,
    Temperature,
    TopK,
    TopP,
    check_sampling,
    list_of_settings,
    one_or_several,
    option,
)

_LAYERS = re.compile(r"(?:(?P<encoder>[1-9]\d*)\+)?(?P<decoder>[1-9]\d*)")
"""What ``--shrink`` takes."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(arbitrary_types_allowed=True))
class DistillOptions(Options):
    """What the teachers translate, what is kept of it, and what learns from it."""

    ref: Annotated[
        Path | str | None,
        option("Data", "References of --src, line by line: for --best-of, --with-references, and to hold out pairs."),
    ] = None
    mono: Annotated[
        tuple[Path | str, ...],
        option("Data", "More text of the source language, without references; may be repeated."),
    ] = ()
    valid_src: Annotated[
        Path | str | None,
        option("Data", "Source side of the validation text (default: the teacher's; or 1% of --src with --ref)."),
    ] = None
    valid_ref: Annotated[Path | str | None, option("Data", "References of the validation text.")] = None
    beam_size: Annotated[int | None, option("Teacher", "The teacher's beam size (default: its run's).", ge=1)] = None
    best_of: Annotated[
        int,
        option(
            "Teacher", "Of each line's N best translations take the one with the highest chrF to its reference.", ge=1
        ),
    ] = 1
    engine: Annotated[str, option("Teacher", "The teacher's decoding engine: torch, ctranslate2 or auto.")] = "auto"
    precision: Annotated[Precision, option("Teacher", "The teacher's precision: fp32, bf16 or int8.")] = "fp32"
    drop_worst: Annotated[
        float, option("Teacher", "Share of the translations to drop, those with the lowest scores.", ge=0, lt=1)
    ] = 0.0
    to: Annotated[str | None, option("Teacher", "Target language, of a teacher with several, such as fr.")] = None
    from_lang: Annotated[
        str | None, option("Teacher", "Source language, of a teacher with several.", flag="--from")
    ] = None
    preset: Annotated[str, option("Student", "The student's size, a preset: student, student-tiny or another.")] = (
        "student"
    )
    shrink: Annotated[
        str | int | None,
        option(
            "Student",
            "Instead of a preset: start with the teacher's own encoder and N of its decoder layers (E+N: and E of its "
            "encoder layers), and fine-tune.",
            metavar="N|E+N",
        ),
    ] = None
    with_references: Annotated[bool, option("Student", "Also train on the pairs of --src and --ref as they are.")] = (
        False
    )
    minutes: Annotated[
        float | None, option("Student", "Train the student for so many minutes (train.max_minutes).", gt=0)
    ] = None
    overrides: Annotated[
        tuple[str, ...],
        option(
            "Student",
            "Override a setting of the student's run, as model.dropout=0.2; may be repeated.",
            flag="--set",
            metavar="A.B=C",
        ),
    ] = ()
    quiet: Annotated[bool, option("Output", "Nothing on stderr but errors.")] = False

    _overrides = field_validator("overrides", mode="before")(list_of_settings)
    _mono = field_validator("mono", mode="before")(one_or_several)

    @field_validator("shrink", mode="before")
    @classmethod
    def _shrink(cls, given: str | int | None) -> str | int | None:
        """One number as a number, two as E+N."""
        if given is None:
            return None
        found = _LAYERS.fullmatch(str(given).strip())
        if found is None:
            raise ValueError(
                f"--shrink {given}: give how many decoder layers the student keeps, such as 1; or encoder and decoder "
                "layers, such as 2+1"
            )
        return int(found["decoder"]) if found["encoder"] is None else found[0]

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
        for name, asked in (("--best-of", self.best_of > 1), ("--with-references", self.with_references)):
            if asked and self.ref is None:
                raise ValueError(f"{name} needs the references of --src: give them with --ref")
        if self.shrink is not None and self.preset != "student":
            raise ValueError("--shrink takes the teacher's sizes: leave out --preset, or --shrink")
        if self.beam_size is not None and self.beam_size < self.best_of:
            raise ValueError(f"--best-of {self.best_of} needs a beam of as many, and --beam-size is {self.beam_size}")
        return self


BACK_TRANSLATED = "<bt>"
"""The tag of back-translated text, as in Caswell et al. 2019 (https://arxiv.org/abs/1906.06442)."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(arbitrary_types_allowed=True))
class AugmentOptions(Options):
    """How models make more training text, what is kept of it, and how it is mixed with other text."""

    held_out: Annotated[
        tuple[Path | str, ...],
        option("Data", "Text whose lines are not taken, such as a validation or test set; may be repeated."),
    ] = ()
    to: Annotated[
        str | None, option("Models", "Target language of the training text, of a model with several, such as fr.")
    ] = None
    from_lang: Annotated[
        str | None, option("Models", "Source language of the training text, of a model with several.", flag="--from")
    ] = None
    engine: Annotated[str, option("Models", "Decoding engine: torch, ctranslate2 or auto.")] = "auto"
    precision: Annotated[Precision, option("Models", "Precision: fp32, bf16 or int8.")] = "fp32"
    beam_size: BeamSize = None
    n_best: Annotated[
        int, option("Search", "Take the N best translations of each line, or N samples, each as a pair.", ge=1)
    ] = 1
    sample: Sample = False
    temperature: Temperature = None
    top_k: TopK = None
    top_p: TopP = None
    seed: Seed = None
    drop_worst: Annotated[
        float, option("Filters", "Share of the translations to drop, those with the lowest scores.", ge=0, lt=1)
    ] = 0.0
    max_ratio: Annotated[
        float, option("Filters", "Drop pairs where one side has more than N times the subwords of the other.", gt=1)
    ] = 3.0
    any_language: Annotated[
        bool, option("Filters", "Keep lines that seem to be in another language, by script and telling words.")
    ] = False
    tag: Annotated[str, option("Training", "Tag before each back-translated source; '' for none.")] = BACK_TRANSLATED
    forward_tag: Annotated[
        str, option("Training", "Tag before each source that was translated forward (default: none).")
    ] = ""
    weight: Annotated[
        float, option("Training", "How often each made pair is drawn in an epoch (its weight in data.train).", gt=0)
    ] = 1.0
    quiet: Annotated[bool, option("Output", "Nothing on stderr but errors.")] = False

    _held_out = field_validator("held_out", mode="before")(one_or_several)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_sampling(self, {"beam_size": self.beam_size})
        if self.beam_size is not None and self.beam_size < self.n_best:
            raise ValueError(f"--n-best {self.n_best} needs a beam of as many, and --beam-size is {self.beam_size}")
        return self
