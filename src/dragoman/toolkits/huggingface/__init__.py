"""Hugging Face transformers: Marian and Pegasus models, written and read, and their search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dragoman.toolkits.toolkit import Toolkit, lazily


def recognises(source: Path, names: Collection[str]) -> bool:
    """True if a folder holds a model of transformers."""
    return source.is_dir() and "config.json" in names


NEEDED = "transformers 5 or later"
"""Versions of the program that load exports and print their translations right."""
ONE_TABLE = "transformers 4 loads one table in place of all its embeddings, without an error, and translates wrongly"
"""Fault of earlier versions with a model whose embeddings they take for tied; see ``has_lost_tables``."""

TOOLKIT = Toolkit(
    name="huggingface",
    writer=lazily(__name__, "write"),
    beyond_exact=f"They need {NEEDED} if the model is pre-norm and share_embeddings is not all: {ONE_TABLE}.",
    reader=lazily(__name__, "read"),
    reads="a folder of Hugging Face (config.json)",
    recognises=recognises,
    download=lazily(__name__, "download:download"),
    comparer=lazily(__name__, "search"),
    card=lazily(__name__, "model_card:model_card"),
)
