"""The text of a run, found again by its content: since then another file may have got its name.

own = own_text("runs/x", each(config.data.train))
own.texts    # where the files are now; none unless all are there and unchanged
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.bundle import find_bundle, is_unfinished
from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.store import Store, fingerprint
from dragoman.data.texts import paths_of
from dragoman.errors import BundleError, DataError

Sources = Mapping[str, Mapping[str, Any]]
"""Fingerprint of each file that a run has read, by its absolute path."""


class OwnText(NamedTuple):
    """Text of a run, with the paths at which its files are now; or the file for which there is none."""

    texts: tuple[TextFiles, ...] = ()
    missing: Path | None = None
    changed: Path | None = None
    unchecked: tuple[Path, ...] = ()  # files that are taken by their names alone, as the run notes no content

    @property
    def taken(self) -> str:
        """The files that were not compared, for messages; "" for none."""
        return " and ".join(map(format, self.unchecked))


def own_text(run: Path | str, texts: Sequence[TextFiles]) -> OwnText:
    """Look up texts that the configuration of a run names, all or none.

    Args:
        run: The run or its bundle. The paths in its configuration are those of the folder in which it was trained. The
            store of the run knows that folder, and the content of the files; a bundle alone does not.
    """
    sources, places, unchecked = _sources(run), dict[Path, Path](), []
    for path in paths_of(texts):
        original = _original(path, sources)
        if original is None:
            if not path.is_file():
                return OwnText(missing=path)
            places[path] = path
            unchecked.append(path)
            continue
        at_hand = [place for place in _candidates(path, original) if place.is_file()]
        same = next((place for place in at_hand if fingerprint(place) == sources[str(original)]), None)
        if same is None:
            return OwnText(changed=at_hand[0]) if at_hand else OwnText(missing=path)
        places[path] = same
    return OwnText(tuple(_moved(text, places) for text in texts), unchecked=tuple(unchecked))


def _sources(run: Path | str) -> Sources:
    """Return the files that a run has read; none for a bundle without its run."""
    sources: dict[str, Mapping[str, Any]] = {}
    for name in ("train", "valid"):
        try:
            folder = Path(run) if is_unfinished(Path(run)) else find_bundle(Path(run)).parent
            sources |= Store.open(folder / "store" / name).sources
        except (BundleError, DataError):  # there is none, or it is damaged
            continue
    return sources


def _original(path: Path, sources: Sources) -> Path | None:
    """Return the absolute path that a path of the configuration had; None if the run does not note it."""
    ends = (Path(source) for source in sources)
    # All files were named from one folder, so of several that end alike this is the shortest.
    return min((end for end in ends if end.parts[-len(path.parts) :] == path.parts), key=_length, default=None)


def _length(path: Path) -> int:
    return len(path.parts)


def _candidates(path: Path, original: Path) -> list[Path]:
    """Return the places where a file may be: where it was, and from the current folder, as a run may be moved."""
    return [path] if path.absolute() == original else [original, path]


def _moved(text: TextFiles, places: Mapping[Path, Path]) -> TextFiles:
    """Return a text with its files at other places."""
    if isinstance(text, PairOfFiles):
        return text.model_copy(update={"src": places[text.src], "tgt": places[text.tgt]})
    return text.model_copy(update={"file": places[text.file]})
