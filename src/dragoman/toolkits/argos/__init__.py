"""Packages of Argos Translate and LibreTranslate, written and read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dragoman.toolkits.toolkit import Toolkit, lazily


def recognises(source: Path, names: Collection[str]) -> bool:
    """True if a folder is an installed package, or a zip file a package that can be installed."""
    if source.is_dir():
        return {"metadata.json", "model"} <= set(names)
    return any(name.endswith("/metadata.json") for name in names)


BYTES = (
    "Argos Translate joins subwords without SentencePiece. So a character that is no subword of the model appears in a "
    "translation as its bytes, such as <0xE2><0x82><0xAC> for €. The format ctranslate2 does not have this fault."
)
"""Fault of a package whose target side has subwords that are single bytes."""

TOOLKIT = Toolkit(
    name="argos",
    writer=lazily(__name__, "write"),
    beyond_exact=BYTES,
    reader=lazily(__name__, "read"),
    reads="a package of Argos Translate (.argosmodel)",
    recognises=recognises,
)
