"""The options of ``train`` in addition to its configuration, each declared once: name, type, default and help.

The command line and the Python function are made from ``TrainOptions``, as those of translation are from
``TranslateOptions``. This module does not import torch, directly or indirectly.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import field_validator, model_validator

from dragoman.errors import ConfigError
from dragoman.options import Options, QuietOptions, list_of_settings, must, one_or_several, option, option_group

OTHER_NAMES = {
    "train.max_epochs=3": "epochs num_train_epochs max_epoch max_epochs n_epochs",
    "train.max_steps=2000": "max_steps steps max_update num_steps train_steps num_training_steps",
    "train.lr=1e-3": "lr learning_rate",
    "train.batch_tokens=4096": "batch_size per_device_train_batch_size max_tokens batch_tokens",
    "train.accumulate=2": "gradient_accumulation_steps update_freq accumulate",
    "train.warmup_steps=400": "warmup_steps warmup_updates",
    "train.label_smoothing=0.1": "label_smoothing label_smoothing_factor",
    "train.seed=1": "seed",
    "train.device=cuda": "device",
    "train.precision=bf16": "fp16 bf16 precision dtype",
    "train.validate_every=500": "eval_steps validate_every validate_interval_updates",
    "train.patience=5": "patience early_stopping early_stopping_patience",
    "model.preset=small": "preset model arch size",
    "model.dropout=0.1": "dropout",
    "data.tokenizer.vocab_size=8000": "vocab_size",
    "data.src_lang=en": "src_lang source_lang",
    "data.tgt_lang=de": "tgt_lang target_lang",
}
"""Settings that users of other toolkits give as arguments of a training, with their names there."""


@option_group
class TableOptions(Options):
    """Columns of a table that hold the text."""

    columns: str | None = option(
        None, "Data", "Of a table or a .tmx: source and target, as en,de (headings, languages) or 1,3 (numbers)."
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _as_text(cls, columns: Any) -> Any:
        return ",".join(map(str, columns)) if isinstance(columns, list | tuple) else columns  # as Python has them

    @field_validator("columns")
    @classmethod
    def _two(cls, columns: str | None) -> str | None:
        if columns is not None and [bool(part.strip()) for part in columns.split(",")] != [True, True]:
            raise must("be two names or numbers, as en,de")
        return columns

    @property
    def two_columns(self) -> tuple[str, str] | None:
        """Columns of source and target; None if no columns are named."""
        if self.columns is None:
            return None
        src, tgt = self.columns.split(",")
        return src.strip(), tgt.strip()


@option_group
class OverrideOptions(Options):
    """Settings that override the configuration."""

    overrides: tuple[str, ...] = option(
        (), "Settings", "Override a setting, as train.max_steps=2000; may be repeated.", flag="--set", metavar="A.B=C"
    )

    _overrides = field_validator("overrides", mode="before")(list_of_settings)


@option_group
class RunOptions(OverrideOptions, QuietOptions):
    """Length of a training, and settings that override the configuration."""

    minutes: float | None = option(
        None,
        "Settings",
        "Longest training in minutes (train.max_minutes; demo: 12). From text alone, sizes are chosen to fit.",
        gt=0,
    )
    threads: int | None = option(
        None,
        "Settings",
        "Threads on a CPU (train.threads; default: one for each core, fewer where that is faster beside others).",
        ge=1,
    )

    @property
    def settings(self) -> tuple[str, ...]:
        """``overrides``, and the settings that have an option of their own.

        Raises:
            ConfigError: An override contradicts an option, or is malformed.
        """
        own = {"max_minutes": ("minutes", self.minutes), "threads": ("threads", self.threads)}
        own = {name: (said, value) for name, (said, value) in own.items() if value is not None}
        if not own:
            return self.overrides
        from dragoman.config import with_overrides  # imported here, as --help is faster without YAML

        train = with_overrides({}, self.overrides).get("train")
        for name, (said, value) in own.items():
            override = train.get(name, value) if isinstance(train, dict) else value
            if override != value:
                raise ConfigError(f"{said}={value:g}, but override train.{name}={override}: give one of them")
        return (*self.overrides, *(f"train.{name}={value!r}" for name, (_, value) in own.items()))


@option_group
class TrainOptions(RunOptions, TableOptions):
    """Text to train on, run to start from, and settings that override the configuration."""

    hints: ClassVar[Mapping[str, str]] = {
        name: f"give it as a setting, overrides=['{setting}']"
        for setting, names in OTHER_NAMES.items()
        for name in names.split()
    }

    src: Path | str | None = option(
        None, "Data", "Source side of the training text, one sentence a line (also .gz, .zst)."
    )
    tgt: Path | str | None = option(None, "Data", "Target side of the training text, line by line.")
    valid_src: Path | str | None = option(
        None, "Data", "Source side of the validation text (default: 1% of the training text is held out)."
    )
    valid_tgt: Path | str | None = option(None, "Data", "Target side of the validation text.")
    valid: tuple[Path | str, ...] = option(
        (), "Data", "Validation text in any form that TEXT may have; repeat it to name two files."
    )
    from_run: Path | str | None = option(
        None, "Fine-tuning", "Fine-tune from this run (or bundle), with its sizes and subwords."
    )
    new_subwords: bool = option(
        False, "Fine-tuning", "With --from-run: learn subwords from the new text; embeddings are composed."
    )
    resume: bool = option(False, "Resuming", "Resume the run in --out.")
    accept_changed_text: bool = option(
        False, "Resuming", "With --resume: use the prepared data although the text files have changed."
    )

    _valid = field_validator("valid", mode="before")(one_or_several)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.new_subwords and self.from_run is None:
            raise ValueError("--new-subwords belongs to fine-tuning: name the run to start from with --from-run")
        if self.accept_changed_text and not self.resume:
            raise ValueError("--accept-changed-text belongs to --resume: a new run reads the text as it is")
        return self
