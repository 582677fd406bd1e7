"""What an engine receives, what it gives back, and what it is asked before: one Protocol for all that search.

A new engine is one file with a class that fits ``Engine``, its line in ``choice.py``, and its name in ``NAMES``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, Self

import torch

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig
from dragoman.data.shortlist import Shortlist
from dragoman.decoding.constraints import Rules
from dragoman.decoding.ensemble import Ensemble
from dragoman.decoding.sampling import Sampling
from dragoman.decoding.search import Hypothesis
from dragoman.model.build import EncoderDecoder

Alive = Callable[[int], bool]
"""Asked with the index of a segment, at each step and by any thread: is its translation still wanted?"""

Progress = Callable[[int, int, str], object]
"""Told how many segments are done, of how many, and what is done to them."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """What is translated in one piece."""

    ids: Sequence[int]  # source subwords without eos; at least one
    key: Hashable = None  # names it in the random numbers of sampling
    rules: Rules | None = None  # constraints of its translation


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How to search."""

    decode: DecodeConfig  # beam, length penalty, patience, room beyond the source, size of a batch
    n_best: int = 1  # hypotheses of each segment
    sampling: Sampling | None = None  # draw instead of searching
    precision: str = "fp32"  # fp32, bf16 or int8
    workers: int = 1  # batches searched at a time
    balance: bool = False  # cut smaller batches than ``decode`` says, where that is faster
    shortlist: bool = False  # search the bundle's shortlist of each segment that has no constraints
    allow_unk: bool = False  # the unknown subword may be chosen


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a call asks for that not every engine can do."""

    precision: str = "fp32"
    sampling: bool = False
    alignments: bool = False
    trees: bool = False  # a parser's
    constraints: bool = False  # prefix, include, exclude, glossary, no-repeat n-grams
    shortlist: bool = False


@dataclass(frozen=True)
class Found:
    """What a search found."""

    hypotheses: list[list[Hypothesis]]  # of each segment, best first; none if it is among the next, or was dropped
    out_of_memory: list[int] = field(default_factory=list)  # segments for which memory was short even alone


@dataclass(frozen=True)
class Models:
    """The weights that an engine searches with."""

    bundles: tuple[Bundle, ...]  # several are an ensemble
    model: EncoderDecoder | Ensemble
    run: Path | None = None  # where the first was loaded from, if it was
    versions: Sequence[tuple[int, float]] = ()  # of the weights as they were loaded: see ``fast.step.weight_versions``

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def shortlist(self) -> Shortlist | None:
        """The first's that has one; they have the same subwords."""
        return next((bundle.shortlist for bundle in self.bundles if bundle.shortlist is not None), None)

    @property
    def longest(self) -> int | None:
        """The most tokens that all of them have positions for, eos counted; None where they have them for any."""
        known = (bundle.model.config.n_positions for bundle in self.bundles)
        return min((n for n in known if n is not None), default=None)


class Searcher(Protocol):
    """Searches for translations: ids in, hypotheses out. An export that is compared with its model is one."""

    name: ClassVar[str]

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """What is asked for that it cannot do, in words; "" if it can do all. Nothing is loaded for the answer."""
        ...

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, alive: Alive | None = None,
        progress: Progress | None = None,
    ) -> Found:  # fmt: skip
        """Translate segments; what is found for one does not depend on the others.

        A segment that is no longer ``alive`` leaves the search at the next step, or before its batch begins, as each
        engine can; it has no hypotheses then.

        Raises:
            ConfigError, DecodeError: A setting is impossible, or the model's scores are not finite.
        """
        ...


class Engine(Searcher, Protocol):
    """What is loaded for the weights of a run, when a user chooses it."""

    loads_workers: ClassVar[bool]  # whether it is loaded for a number of workers, and again for another one

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        """Make it ready to search.

        Raises:
            ConfigError: This machine cannot: a package is missing, or the processor lacks the precision.
        """
        ...

    def is_of(self, models: Models) -> bool:
        """Whether it was loaded with the weights that ``models`` have now."""
        ...

    def close(self) -> None:
        """Remove what ``load`` wrote for this process alone."""
        ...


def beyond_plain_search(models: Models, needs: Needs) -> str:
    """What is asked for beside the search of one model for the best translations; "" if nothing is."""
    asked = {
        "an ensemble": len(models.bundles) > 1, "sampling": needs.sampling, "alignments": needs.alignments,
        "parsing": needs.trees, "constrained decoding": needs.constraints,
    }  # fmt: skip
    return next((what for what, is_asked in asked.items() if is_asked), "")
