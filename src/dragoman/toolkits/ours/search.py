"""Our own search: every option, on the optimised implementation of the model if it has one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch

from dragoman.decoding.batched_search import Shortlisted, search_all
from dragoman.decoding.batches import balanced
from dragoman.decoding.constraints import Rules
from dragoman.decoding.ensemble import Ensemble, Mean
from dragoman.decoding.request import Progress, SearchResult, SearchSettings, Segment
from dragoman.decoding.search import Model
from dragoman.device import resolve_precision
from dragoman.fast.step import FastTransformer
from dragoman.model.transformer import Transformer
from dragoman.options import Precision, not_among
from dragoman.toolkits import OURS
from dragoman.toolkits.engine import Models, Needs

logger = logging.getLogger(__name__)


class Torch:
    """Engine that searches with the loaded weights themselves."""

    name: ClassVar[str] = OURS.engine
    loads_workers: ClassVar[bool] = False
    merit: ClassVar[str] = "it has every option"
    attend = None

    def __init__(self, models: Models, precision: str, fast: Sequence[FastTransformer] | None) -> None:
        """Take the models; ``fast`` are the optimised implementations of all members, or None."""
        self._models, self._precision, self._fast = models, precision, fast

    @classmethod
    def obstacle(cls, models: Models, needs: Needs) -> str:
        """See ``Engine``: it supports all but int8; shortlists need a Transformer."""
        if needs.precision == "int8":
            return "precision int8"
        narrow = all(isinstance(member, Transformer) for member in _members(models))
        return "a shortlist (the model is no Transformer)" if needs.shortlist and not narrow else ""

    @classmethod
    def why_not_auto(cls, models: Models, needs: Needs) -> str:
        """See ``Engine``: ``auto`` takes it if it takes no other."""
        return cls.obstacle(models, needs)

    @classmethod
    def fastest_precision(cls, models: Models, needs: Needs) -> Precision | None:
        """See ``Engine``: bf16 if the machine multiplies faster in it."""
        return resolve_precision("auto", models.device)

    @classmethod
    def load(cls, models: Models, precision: str, workers: int) -> Self:
        """See ``Engine``; a model that is no Transformer has no optimised implementation, which is logged."""
        device, members = models.device, _members(models)
        has_fast = all(isinstance(member, Transformer) for member in members)
        if not has_fast:
            logger.info("no optimised decoder for this model (not a Transformer): using the reference implementation")
            return cls(models, precision, None)
        resolve_precision(precision, device)
        return cls(models, precision, [FastTransformer(member, precision) for member in members])

    def is_of(self, models: Models) -> bool:
        """See ``Engine``."""
        members = _members(models)
        return self._fast is None or all(fast.is_of(member) for fast, member in zip(self._fast, members, strict=True))

    def search(
        self, segments: Sequence[Segment], settings: SearchSettings, progress: Progress | None = None
    ) -> SearchResult:
        """See ``Engine``; cancelled segments leave at the next step."""
        device = self._models.device
        if self._fast is None:
            settings = replace(settings, workers=1)  # autocast applies to one thread alone
        if settings.balance and settings.workers > 1:
            settings = balanced(settings, segments)
        with autocast(self._precision if self._fast is None else "fp32", device):
            return search_all(
                self._searcher(settings.shortlist), segments, settings, device,
                processes=device.type == "cpu", progress=progress,
            )  # fmt: skip

    def can_search(self, rules: Rules) -> bool:
        """See ``Engine``: under all."""
        return True

    def close(self) -> None:
        """See ``Engine``: nothing was written."""

    def _searcher(self, shortlisted: bool) -> Model | Shortlisted:
        if self._fast is None:
            return self._models.model
        fast = self._fast[0] if len(self._fast) == 1 else Mean(tuple(self._fast))
        shortlist = self._models.shortlist
        return Shortlisted(fast, shortlist) if shortlisted and shortlist is not None else fast


def _members(models: Models) -> list[Any]:
    return list(models.model.members) if isinstance(models.model, Ensemble) else [models.model]


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Return a context that computes in ``fp32`` or ``bf16``; weights, norms and probabilities stay fp32.

    A program that calls this may have autocast on by itself.

    Raises:
        ConfigError: The precision is unknown, or the device lacks it.
    """
    if precision not in ("fp32", "bf16"):
        raise not_among("precision", precision, ("fp32", "bf16"))
    return torch.autocast(device.type, torch.bfloat16, enabled=resolve_precision(precision, device) == "bf16")
