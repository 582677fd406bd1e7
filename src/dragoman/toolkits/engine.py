"""Protocols of search: what an engine supports, and how it is loaded and called.

    if not engine.obstacle(models, needs):                       # "" if it meets all needs
        result = engine.search(segments, settings)               # see ``decoding.request``

A new engine is a class that fits ``Engine`` in a folder of this package, which its ``Toolkit`` declares.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from dragoman.bundle import Bundle, StoredModel
from dragoman.data.shortlist import Shortlist
from dragoman.decoding.alignment import Attention
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment
from dragoman.options import Precision

if TYPE_CHECKING:
    import torch

    from dragoman.decoding.ensemble import Ensemble
    from dragoman.model.build import EncoderDecoder

Versions = list[tuple[int, float]]
"""State of weights in memory: see ``fast.step.weight_versions``."""


class Attend(Protocol):
    """Reads the attention of given translations."""

    def __call__(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int,
        cancellation: Cancellation | None = None,
    ) -> Sequence[Attention | None]:  # fmt: skip
        """Return the attention of each pair of ids; None for one that runs out of memory, or is left when cancelled.

        The last column, that of the source's eos, may be missing.

        Args:
            batch_tokens: Rows x longest side of one batch.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Features that a call needs and not every engine has."""

    precision: str = "fp32"
    sampling: bool = False
    alignments: bool = False
    trees: bool = False  # parsing
    constraints: bool = False  # prefix, include, exclude, glossary, no-repeat n-grams
    shortlist: bool = False


class Models:
    """Models that an engine searches with; their weights are read when they are first needed."""

    def __init__(self, bundles: Sequence[Bundle], run: Path | None = None) -> None:
        """Take a model, or several, which are an ensemble.

        Args:
            run: Folder that the first was loaded from; None: none.
        """
        self.bundles, self.run = tuple(bundles), run
        self.as_read: list[Versions] = [[] for _ in self.bundles]
        for i, bundle in enumerate(self.bundles):
            if isinstance(bundle.weights, StoredModel):
                bundle.weights.when_read(partial(_note, weakref.ref(self), i))
            else:
                _note(weakref.ref(self), i, bundle.weights)

    def same_as(self, other: Models) -> bool:
        """True if these are the same objects in memory."""
        own, others = ([id(bundle.weights) for bundle in models.bundles] for models in (self, other))
        return own == others

    @cached_property
    def model(self) -> EncoderDecoder | Ensemble:
        """The model, or all of them as one; see ``Bundle.model`` for the errors."""
        if len(self.bundles) == 1:
            return self.bundles[0].model
        from dragoman.decoding.ensemble import Ensemble

        return Ensemble([bundle.model for bundle in self.bundles])

    @property
    def changes(self) -> Versions:
        """State of the weights if anybody has changed them since they were read; nothing if they are as they were."""
        now = [_versions(bundle.model) if bundle.is_read else [] for bundle in self.bundles]
        return [] if now == self.as_read else [version for versions in now for version in versions]

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.model.parameters()).device

    @property
    def device_type(self) -> str:
        """Kind of the device, ``cpu`` or ``cuda``; reads no weights."""
        return self.bundles[0].device_type

    @property
    def shortlist(self) -> Shortlist | None:
        """Shortlist of the first bundle that has one; all have the same subwords."""
        return next((bundle.shortlist for bundle in self.bundles if bundle.shortlist is not None), None)

    @property
    def longest(self) -> int | None:
        """Most tokens that all models have positions for, eos counted; None: any number."""
        known = (bundle.sizes.n_positions for bundle in self.bundles)
        return min((n for n in known if n is not None), default=None)


def _note(models: weakref.ref[Models], i: int, model: EncoderDecoder) -> None:
    """Note the state of the i-th model as it is read."""
    if (owner := models()) is not None:
        owner.as_read[i] = _versions(model)


def _versions(model: EncoderDecoder) -> Versions:
    from dragoman.fast.step import weight_versions

    return weight_versions(model)


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

    @property
    def attend(self) -> Attend | None:
        """Function that reads attention; None: the loaded model does."""
        ...

    def can_search(self, rules: Rules) -> bool:
        """Return True if it can search for a segment under these rules, although ``obstacle`` may say otherwise."""
        ...

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
