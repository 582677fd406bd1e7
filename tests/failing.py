"""A lack of memory: at one moment, or for a long line."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from dragoman.decoding import batched_search
from dragoman.decoding.request import SearchBatch


def fail_long_lines(patch: pytest.MonkeyPatch) -> None:
    """Let the beam search run out of memory with each batch of more than 16 tokens, so with a long line alone."""
    real = batched_search.beam_search

    def beam_search(model: Any, batch: SearchBatch, settings: Any) -> Any:
        if batch.src.numel() > 16:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return real(model, batch, settings)

    patch.setattr(batched_search, "beam_search", beam_search)


def fail_once(patch: pytest.MonkeyPatch, owner: Any, name: str, caller: str = "") -> list[str]:
    """Let a function fail for want of memory the first time, or the first time that ``caller`` calls it.

    Returns:
        A list that gets the name of the function once it has failed.
    """
    real, failed = getattr(owner, name), list[str]()

    def function(*arguments: Any, **named: Any) -> Any:
        frame = inspect.currentframe()
        by = frame.f_back.f_code.co_name if frame is not None and frame.f_back is not None else ""
        if not failed and caller in ("", by):
            failed.append(name)
            raise MemoryError
        return real(*arguments, **named)

    patch.setattr(owner, name, function)
    return failed
