"""Which engine searches: ours (torch), or CTranslate2's on the same weights.

``torch`` is the default and does everything. ``ctranslate2`` does plain search in float32 or int8. ``auto`` takes it
on a CPU, where it is faster than torch in the same precision, if it can do what is asked; which one it took is logged.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Literal

from dragoman.decoding.workers import checked_workers
from dragoman.device import has_int8, resolve_precision
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.options import not_among
from dragoman.toolkits.ctranslate2 import search as ctranslate2
from dragoman.toolkits.ctranslate2.search import CTranslate2
from dragoman.toolkits.engine import Engine, Models, Needs, Searcher
from dragoman.toolkits.ours.search import Torch

logger = logging.getLogger(__name__)

ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Torch, CTranslate2)}


class Engines:
    """The engines of some weights, each loaded when it is first asked for, and again when the weights have changed."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._loaded: dict[tuple[str, str, int], Engine] = {}
        self._lock = threading.Lock()

    def choose(self, asked: str, needs: Needs) -> str:
        """The name of the engine that searches, by what is asked for alone: whatever the texts are, it is the same.

        Raises:
            ConfigError: The engine is unknown, or cannot do what is asked.
        """
        if asked not in (*ENGINES, "auto"):
            raise not_among("engine", asked, (*ENGINES, "auto"))
        if asked == "auto":
            return _auto(CTranslate2.obstacle(self._models, needs), self._models.device.type)
        self.refuse(ENGINES[asked], needs)
        return asked

    def refuse(self, engine: type[Searcher] | Searcher, needs: Needs) -> None:
        """Refuse what an engine cannot do.

        Raises:
            ConfigError: Something that it cannot do is asked for.
        """
        if obstacle := engine.obstacle(self._models, needs):
            raise ConfigError(
                f"engine = {engine.name!r} cannot do {obstacle}: use engine torch (or auto), or leave it out"
            )

    def constrained(self, name: str, needs: Needs) -> tuple[str, str]:
        """Name and precision of who does constrained decoding in its place: itself if it can, or torch in fp32."""
        if ENGINES[name].obstacle(self._models, replace(needs, sampling=False, constraints=True)):
            return Torch.name, "fp32"
        return name, needs.precision

    def fastest(self, needs: Needs) -> tuple[str, Literal["fp32", "bf16", "int8"]]:
        """Engine and precision that are fastest here, of those that can do what is asked.

        CTranslate2 in int8, where it is installed; else torch in bf16 where the machine multiplies faster in it, or in
        int8 where it can.
        """
        device, in_int8 = self._models.device, replace(needs, precision="int8")
        can = device.type == "cpu" and ctranslate2.is_installed() and not CTranslate2.obstacle(self._models, in_int8)
        if can and "int8" in ctranslate2.precisions(device.type):
            return CTranslate2.name, "int8"
        if resolve_precision("auto", device) == "bf16":
            return Torch.name, "bf16"
        able = has_int8(device) and all(isinstance(one.model, Transformer) for one in self._models.bundles)
        return Torch.name, "int8" if able else "fp32"

    def get(self, name: str, precision: str, workers: int) -> Engine:
        """The engine of this name, ready to search.

        Raises:
            ConfigError: As ``Engine.load``, or there are no workers.
        """
        checked_workers(workers)
        key = (name, precision, workers if ENGINES[name].loads_workers else 1)
        with self._lock:
            for stale in [each for each, engine in self._loaded.items() if not engine.is_of(self._models)]:
                self._loaded.pop(stale).close()
            if key not in self._loaded:
                self._loaded[key] = ENGINES[name].load(self._models, precision, workers)
            return self._loaded[key]


def _auto(obstacle: str, device: str) -> str:
    if obstacle:
        reason = f"CTranslate2 cannot do {obstacle}"
    elif device != "cpu":
        reason = "a GPU"
    elif not ctranslate2.is_installed():
        reason = "CTranslate2 is not installed"
    else:
        logger.info("engine: ctranslate2 (the faster one on a CPU)")
        return CTranslate2.name
    logger.info("engine: torch (%s)", reason)
    return Torch.name
