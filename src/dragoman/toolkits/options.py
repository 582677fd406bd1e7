"""Options of every command that translates: engine and precision. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from pydantic import field_validator, model_validator

from dragoman import toolkits
from dragoman.errors import ConfigError
from dragoman.options import PRECISIONS, Precision, SearchOptions, either, must, option, option_group


def words() -> tuple[str, ...]:
    """Return the values of the option ``engine``."""
    return (*toolkits.engine_names(), "auto")


@option_group
class EngineOptions(SearchOptions):
    """Settings of a search, and the engine that searches."""

    engine: str | None = option(
        None,
        "Speed",
        f"Decoding engine: {either(words())} (default: {toolkits.OURS.engine}; for int8 {toolkits.FOR_INT8.engine}).",
    )
    precision: Precision = option("fp32", "Speed", f"Precision: {either(PRECISIONS)} (int8 cannot score).")

    @field_validator("engine")
    @classmethod
    def _an_engine(cls, name: str | None) -> str | None:
        if name is not None and name not in words():
            raise must(f"be {either(words())}")
        return name

    @property
    def chosen_engine(self) -> str:
        """Name of the engine that searches, or ``auto``."""
        return self.engine or (toolkits.FOR_INT8 if self.precision == "int8" else toolkits.OURS).engine


@option_group
class FastOptions(EngineOptions):
    """Settings of a search, and a switch for the fastest ones of this machine."""

    fast: bool = option(
        False,
        "Speed",
        "Use the fastest engine, precision and stopping rule of this machine, the run's shortlist, and the beam "
        "that its distillation chose; some translations differ.",
    )

    @model_validator(mode="after")
    def _check_fast(self) -> Self:
        if self.fast and (self.engine is not None or self.precision != "fp32" or self.patience is not None):
            raise ValueError(BESIDE_FAST)
        return self

    def refuse_given(self, names: Collection[str]) -> None:
        """See ``Options``: ``fast`` overrules some."""
        if self.fast and not {"engine", "precision", "patience"}.isdisjoint(names):
            raise ConfigError(BESIDE_FAST)


BESIDE_FAST = "fast already chooses engine, precision and patience: leave out fast, or leave out these options"
