"""Choose the engine that searches: the named one, ``auto``, or the fastest.

    Engines(models).choose("auto", Needs())      # "ctranslate2" or "torch"

Ours (``torch``) is the default and supports every option. ``auto`` takes the first other engine that is faster on this
machine and meets all needs, and logs its name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

from dragoman.config import ModelConfig
from dragoman.decoding.request import checked_workers
from dragoman.errors import ConfigError
from dragoman.options import Precision, not_among
from dragoman.toolkits import OURS, engine_names, engine_toolkits
from dragoman.toolkits.engine import Engine, Models, Needs, Searcher
from dragoman.toolkits.toolkit import Toolkit

logger = logging.getLogger(__name__)


def engine_class(name: str) -> type[Engine]:
    """Return the class of an engine.

    Raises:
        ConfigError: There is no engine of this name.
    """
    for toolkit in engine_toolkits():
        if toolkit.engine == name and toolkit.engine_class is not None:
            return toolkit.engine_class()
    raise not_among("engine", name, (*engine_names(), "auto"))


def by_preference() -> Iterator[type[Engine]]:
    """Yield the engines in the order in which ``auto`` and ``fast`` try them, each imported when it is its turn."""
    others = [name for name in engine_names() if name != OURS.engine]
    yield from (engine_class(name) for name in (*others, OURS.engine))


def exporting_engines(config: ModelConfig) -> list[Toolkit]:
    """Return the toolkits whose engine searches an export in their format, if the format can hold such a model."""
    engines = engine_toolkits()
    return [toolkit for toolkit in engines if toolkit.writer is not None and not toolkit.writer().why_not(config)]


class Engines:
    """Engines of the same weights, each loaded at first use and again after the weights have changed."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._loaded: dict[tuple[str, str, int], Engine] = {}
        self._lock = threading.Lock()

    def choose(self, name: str, needs: Needs) -> str:
        """Return the name of the engine to use; the choice depends on the options, never on the texts.

        Raises:
            ConfigError: The engine is unknown, or cannot meet the needs.
        """
        if name == "auto":
            return self._first_for_auto(needs)
        self.refuse(engine_class(name), needs)
        return name

    def _first_for_auto(self, needs: Needs) -> str:
        reasons: list[str] = []
        for engine in by_preference():
            reason = engine.why_not_auto(self._models, needs)
            if not reason:
                logger.info("engine: %s (%s)", engine.name, "; ".join(reasons) or engine.merit)
                return engine.name
            reasons.append(reason)
        raise ConfigError(f"no engine can do what is needed: {'; '.join(reasons)}")

    def refuse(self, engine: type[Searcher] | Searcher, needs: Needs) -> None:
        """Check that an engine meets all needs.

        Raises:
            ConfigError: It does not; the message names the first need that it cannot meet.
        """
        if obstacle := engine.obstacle(self._models, needs):
            able = [other.name for other in by_preference() if not other.obstacle(self._models, needs)]
            instead = (
                f"use engine {able[-1]} (or auto), or leave it out"
                if able
                else "no other engine can, so use precision fp32"
            )
            raise ConfigError(f"engine = {engine.name!r} cannot do {obstacle}: {instead}")

    def constrained(self, name: str, needs: Needs) -> tuple[str, str]:
        """Return engine and precision for constrained decoding: the engine itself if it has it, or ours in fp32."""
        if engine_class(name).obstacle(self._models, replace(needs, sampling=False, constraints=True)):
            return OURS.engine, "fp32"
        return name, needs.precision

    def fastest(self, needs: Needs) -> tuple[str, Precision]:
        """Return the fastest engine and precision of this machine that meet all needs."""
        for engine in by_preference():
            if precision := engine.fastest_precision(self._models, needs):
                return engine.name, precision
        raise ConfigError("no engine can do what is needed: leave out fast")

    def get(self, name: str, precision: str, workers: int) -> Engine:
        """Return the engine of this name, ready to search.

        Raises:
            ConfigError: See ``Engine.load``; or ``workers`` is below 1.
        """
        checked_workers(workers)
        key = (name, precision, workers if engine_class(name).loads_workers else 1)
        with self._lock:
            for stale_key in [key for key, engine in self._loaded.items() if not engine.is_of(self._models)]:
                self._loaded.pop(stale_key).close()
            if key not in self._loaded:
                self._loaded[key] = engine_class(name).load(self._models, precision, workers)
            return self._loaded[key]
