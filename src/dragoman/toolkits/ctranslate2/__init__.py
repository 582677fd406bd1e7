"""CTranslate2: its model folders, written and read, and its search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dragoman.toolkits.toolkit import Toolkit, lazily


def recognises(source: Path, names: Collection[str]) -> bool:
    """True if a folder holds a model of CTranslate2."""
    return source.is_dir() and "model.bin" in names


TOOLKIT = Toolkit(
    name="ctranslate2",
    writer=lazily(__name__, "write"),
    reader=lazily(__name__, "read"),
    reads="a folder of CTranslate2 (model.bin)",
    recognises=recognises,
    comparer=lazily(__name__, "search"),
    engine="ctranslate2",
    engine_class=lazily(__name__, "search:CTranslate2"),
)
