"""Other programs that run such models, and our own search: a folder for each.

A folder has ``write.py`` (our model in its format), ``read.py`` (its model as a run of ours) and ``search.py`` (its
search on our segments), each only where it makes sense, and declares a ``Toolkit``. The files beside the folders name
none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.toolkits import argos, ctranslate2, huggingface, marian, onnx, ours, page
from dragoman.toolkits.toolkit import Toolkit, Writer

OURS = ours.TOOLKIT

TOOLKITS: list[Toolkit] = [
    OURS,
    *(folder.TOOLKIT for folder in (ctranslate2, huggingface, argos, page, onnx, marian)),
]
"""All toolkits: another one is another folder and an entry here. Engines before others are preferred by ``auto``."""


def writers() -> dict[str, Callable[[], Writer]]:
    """Return what ``--to`` may be, and for each the function that imports its writer."""
    return {toolkit.name: toolkit.writer for toolkit in TOOLKITS if toolkit.writer is not None}


def engine_toolkits() -> list[Toolkit]:
    """Return the toolkits whose search users can choose, ours first."""
    return [toolkit for toolkit in TOOLKITS if toolkit.engine]


def engine_names() -> tuple[str, ...]:
    """Return what ``--engine`` may be, beside ``auto``."""
    return tuple(toolkit.engine for toolkit in engine_toolkits())
