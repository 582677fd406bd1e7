"""Other programs that run translation models, and our own search: a folder for each.

A folder declares a ``Toolkit``. It has ``write.py`` (our model in its format), ``read.py`` (its model as a run of
ours) and ``search.py`` (its search on our segments), each only where it makes sense. The files next to the folders
name no toolkit.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.toolkits import argos, ctranslate2, huggingface, marian, onnx, ours, page
from dragoman.toolkits.toolkit import Toolkit, Writer

OURS = ours.TOOLKIT
FOR_INT8 = ctranslate2.TOOLKIT
"""The toolkit whose engine translates in int8."""

TOOLKITS: list[Toolkit] = [
    OURS,
    *(folder.TOOLKIT for folder in (ctranslate2, huggingface, argos, page, onnx, marian)),
]
"""All toolkits; a new one is a folder and an entry here. ``auto`` prefers the engine that comes first."""


def writers() -> dict[str, Callable[[], Writer]]:
    """Return the values of ``--format``, each with the function that imports its writer."""
    return {toolkit.name: toolkit.writer for toolkit in TOOLKITS if toolkit.writer is not None}


def engine_toolkits() -> list[Toolkit]:
    """Return the toolkits whose search users can choose, ours first."""
    return [toolkit for toolkit in TOOLKITS if toolkit.engine]


def engine_names() -> tuple[str, ...]:
    """Return the values of ``--engine`` except ``auto``."""
    return tuple(toolkit.engine for toolkit in engine_toolkits())
