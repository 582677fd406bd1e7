"""Marian: read its models."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dragoman.toolkits.toolkit import Toolkit, lazily


def recognises(source: Path, names: Collection[str]) -> bool:
    """True if a folder has an ``.npz``, or a file is one that holds Marian's settings."""
    if source.is_dir():
        return any(name.endswith(".npz") for name in names)
    return "special:model.yml.npy" in names  # an .npz is a zip of arrays


TOOLKIT = Toolkit(
    name="marian",
    reader=lazily(__name__, "read"),
    reads="a model of Marian (.npz) or its folder",
    recognises=recognises,
)
