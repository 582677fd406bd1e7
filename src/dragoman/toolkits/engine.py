"""Protocols of search: what an engine supports, and how it is loaded and called.

    if not engine.obstacle(models, needs):                       # "" if it meets all needs
        result = engine.search(segments, settings)               # see ``decoding.request``

A new engine is a class that fits ``Engine`` in a folder of this package, which its ``Toolkit`` declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, Self

import torch

from dragoman.bundle import Bundle
from dragoman.data.shortlist import Shortlist
from dragoman.decoding.ensemble import Ensemble
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment
from dragoman.model.build import EncoderDecoder
from dragoman.options import Precision


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Features that a call needs and not every engine has."""

    precision: str = "fp32"
    sampling: bool = False
    alignments: bool = False
    trees: bool = False  # parsing
    constraints: bool = False  # prefix, include, exclude, glossary, no-repeat n-grams
    shortlist: bool = False


@dataclass(frozen=True)
class Models:
    """Weights that an engine searches with."""

    bundles: tuple[Bundle, ...]  # several are an ensemble
    model: EncoderDecoder | Ensemble
    run: Path | None = None  # folder that the first was loaded from; None: none
    versions: Sequence[tuple[int, float]] = ()  # of the loaded weights: see ``fast.step.weight_versions``

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.model.parameters()).device

    @property
    def shortlist(self) -> Shortlist | None:
        """Shortlist of the first bundle that has one; all have the same subwords."""
        return next((bundle.shortlist for bundle in self.bundles if bundle.shortlist is not None), None)

    @property
    def longest(self) -> int | None:
        """Most tokens that all models have positions for, eos counted; None: any number."""
        known = (bundle.model.config.n_positions for bundle in self.bundles)
        return min((n for n in known if n is not None), default=None)


class Searcher(Protocol):
    """Searches for translations, ids in and hypotheses out: an engine, or an export that is compared with its model."""

    name: ClassVar[str]

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """Return the first need that it cannot meet, in words; "" if it meets all. Loads nothing."""
        ...

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """Translate segments; the result for one does not depend on the others.

        A cancelled segment leaves the search at the next step, or before its batch begins, depending on the engine. It
        gets no hypotheses.

        Raises:
            ConfigError, DecodeError: A setting is impossible, or the model's scores are not finite.
        """
        ...


class ExportedSearcher(Searcher, Protocol):
    """Searcher on an export, which a certificate compares with our model."""

    def read(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        """Return the log-probability in nats of each token of given translations, eos last; ids without bos and eos."""
        ...

    def cut_differently(self, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[bool] | None:
        """Return for each text True if its own tokenizer splits it differently from ours; None if it has none."""
        ...


class Engine(Searcher, Protocol):
    """Searcher that is loaded for the weights of a run when a user chooses it."""

    loads_workers: ClassVar[bool]  # True if another number of workers needs another load
    merit: ClassVar[str]  # why ``auto`` prefers it, in words

    @classmethod
    def why_not_auto(cls, models: Models, needs: Needs) -> str:
        """Return the reason why ``auto`` does not take it here; "" if it takes it."""
        ...

    @classmethod
    def fastest_precision(cls, models: Models, needs: Needs) -> Precision | None:
        """Return the precision in which it is fastest on this machine; None if it cannot meet the needs."""
        ...

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        """Load the engine, ready to search.

        Raises:
            ConfigError: This machine cannot run it: a package is missing, or the processor lacks the precision.
        """
        ...

    def is_of(self, models: Models) -> bool:
        """Return True if it was loaded with the weights that ``models`` have now."""
        ...

    def close(self) -> None:
        """Remove the files that ``load`` wrote for this process alone."""
        ...


def beyond_plain_search(models: Models, needs: Needs) -> str:
    """Return the first need beyond one model's search for the best translations, in words; "" if there is none."""
    needed = {
        "an ensemble": len(models.bundles) > 1, "sampling": needs.sampling, "alignments": needs.alignments,
        "parsing": needs.trees, "constrained decoding": needs.constraints,
    }  # fmt: skip
    return next((what for what, is_needed in needed.items() if is_needed), "")
