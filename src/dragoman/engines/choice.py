"""Which engine searches: ours (torch), or CTranslate2's on the same weights; and what makes the latter impossible.

``torch`` is the default and does everything. ``ctranslate2`` does plain search in float32 or int8. ``auto`` takes it
on a CPU, where it is faster than torch in the same precision, if it can do what is asked; and says which it took.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.bundle import Bundle
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.batches import checked_workers
from dragoman.engines import ctranslate2 as ctranslate2_engine
from dragoman.engines.ctranslate2 import CTranslate2
from dragoman.errors import ConfigError
from dragoman.formats.ctranslate2 import why_not
from dragoman.formats.export import Kept, kept

logger = logging.getLogger(__name__)

ENGINES = ("torch", "ctranslate2", "auto")
PRECISIONS = {"fp32": "float32", "int8": "int8"}


class Loaded(NamedTuple):
    """CTranslate2 with a bundle's model."""

    engine: CTranslate2
    home: Kept

    def close(self) -> None:
        """Remove the conversion, if it is a temporary one."""
        if self.home.temporary is not None:
            self.home.temporary.cleanup()


def obstacle(bundles: Sequence[Bundle], precision: str, wishes: Mapping[str, bool]) -> str:
    """What is asked for that CTranslate2 cannot do; nothing if it can do all.

    Args:
        bundles: The models, of which several are an ensemble.
        precision: As asked for.
        wishes: What else it cannot do, in words, and whether that is asked for.
    """
    if len(bundles) > 1:
        return "an ensemble"
    if reason := why_not(bundles[0].model.config):
        return f"this model: {reason}"
    if precision not in PRECISIONS:
        return f"precision {precision}"
    return next((wish for wish, asked in wishes.items() if asked), "")


def choose(asked: str, why_not: str, device: str) -> str:
    """``torch`` or ``ctranslate2``; what ``auto`` took is said, with the reason.

    Args:
        asked: One of ``ENGINES``.
        why_not: As ``obstacle`` found.
        device: ``cpu`` or ``cuda``.

    Raises:
        ConfigError: The engine is unknown, or CTranslate2 is asked for and cannot do what else is.
    """
    if asked not in ENGINES:
        raise ConfigError(f"engine = {asked!r} is unknown: use {', '.join(ENGINES)}")
    if asked == "ctranslate2" and why_not:
        raise ConfigError(f"engine = 'ctranslate2' cannot do {why_not}: use engine torch (or auto), or leave it out")
    if asked != "auto":
        return asked
    if why_not:
        reason = f"CTranslate2 cannot do {why_not}"
    elif device != "cpu":
        reason = "a GPU"
    elif not ctranslate2_engine.is_installed():
        reason = "CTranslate2 is not installed"
    else:
        logger.info("engine: ctranslate2 (the faster one on a CPU)")
        return "ctranslate2"
    logger.info("engine: torch (%s)", reason)
    return "torch"


def load(bundle: Bundle, run: Path | None, precision: str, device: str, workers: int) -> Loaded:
    """Load CTranslate2 with a bundle's model, written in its format first where that has not been done.

    Args:
        run: Where the bundle was loaded from, if known.
        precision: ``fp32`` or ``int8``.
        workers: Batches searched at a time, a thread each; on a CPU at least as many as torch has threads.

    Raises:
        ConfigError: As ``ctranslate2_engine.load``; or there are no workers.
        DragomanError: No folder can be written.
    """
    workers = checked_workers(workers)
    if device == "cpu":  # two batches on a thread each are done sooner than one on two
        workers = max(workers, torch.get_num_threads())
    name = PRECISIONS[precision]
    ctranslate2_engine.check(name, device)  # before anything is written
    home = kept(bundle, run, "ctranslate2", name)
    pieces = _pieces(bundle.src_tokenizer, bundle.tgt_tokenizer)
    return Loaded(
        ctranslate2_engine.load(home.folder, *pieces, precision=name, device=device, workers=workers),
        home,
    )


def open_export(
    folder: Path, quantization: str, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, device: str
) -> tuple[CTranslate2, str]:
    """Load an export, and say in what it computes: its own precision, or what this machine has for it.

    Raises:
        ConfigError: As ``ctranslate2_engine.load``.
    """
    whole = quantization in ("float16", "bfloat16")
    own = [quantization, "float32" if whole or quantization == "float32" else "int8_float32"]
    able = ctranslate2_engine.precisions(device)
    precision = next((name for name in own if name in able), own[-1])
    pieces = _pieces(src_tokenizer, tgt_tokenizer)
    return ctranslate2_engine.load(folder, *pieces, precision=precision, device=device), precision


def _pieces(src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """The pieces by id."""
    return (
        src_tokenizer.pieces(range(src_tokenizer.vocab_size)),
        tgt_tokenizer.pieces(range(tgt_tokenizer.vocab_size)),
    )
