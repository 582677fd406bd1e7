"""The toy language into two others: text, and the settings of one model for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Tiny = Callable[..., dict[str, Any]]
Pair = tuple[str, str]


def written(folder: Path, name: str, pairs: Sequence[Pair], **about: Any) -> dict[str, Any]:
    """Two files, as an entry of the configuration."""
    paths = [folder / f"{name}.{side}" for side in ("one", "other")]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"src": str(paths[0]), "tgt": str(paths[1]), **about}


def french(pairs: Sequence[Pair]) -> list[Pair]:
    """A third language: that of the second, each word backwards."""
    return [(en, " ".join(word[::-1] for word in de.split())) for en, de in pairs]


def settings(tiny: Tiny, folder: Path, sentences: Callable[[int, int], list[Pair]], **train: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    real, made, valid = sentences(300, 1), sentences(200, 3), sentences(20, 2)
    mapping = tiny(**train)
    mapping["data"] |= {
        "src_lang": "en",
        "train": [
            written(folder, "de", real, tgt_lang="de"),
            written(folder, "fr", french(real), tgt_lang="fr"),
            written(folder, "made", french(made), tgt_lang="fr", tag="<bt>", weight=0.5),
        ],
        "valid": [
            written(folder, "valid.de", valid, tgt_lang="de"),
            written(folder, "valid.fr", french(valid), tgt_lang="fr"),
        ],
    }
    return mapping
