"""Hugging Face transformers: Marian and Pegasus models, written and read, and their search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.toolkits.toolkit import Toolkit, lazily

if TYPE_CHECKING:
    from dragoman.bundle import Bundle


def recognises(source: Path, names: Collection[str]) -> bool:
    """True if a folder holds a model of transformers."""
    return source.is_dir() and "config.json" in names


def download(name: str, revision: str | None) -> tuple[Path, str]:
    """Download a model from Hugging Face; see ``download.download``."""
    from dragoman.toolkits.huggingface.download import download

    return download(name, revision)


def card(bundle: Bundle, quantization: str, certificate: str) -> str:
    """Return the model card of an export; see ``model_card.model_card``."""
    from dragoman.toolkits.huggingface.model_card import model_card

    return model_card(bundle, quantization, certificate)


TOOLKIT = Toolkit(
    name="huggingface",
    writer=lazily(__name__, "write"),
    reader=lazily(__name__, "read"),
    reads="a folder of Hugging Face (config.json)",
    recognises=recognises,
    download=download,
    comparer=lazily(__name__, "search"),
    card=card,
)
