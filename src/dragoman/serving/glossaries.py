"""Glossaries that clients store: a JSON file each, in one folder, so that they survive a restart."""

from __future__ import annotations

import datetime
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.files import explained, write_text
from dragoman.serving.refusals import UnknownError

MOST = 1000
"""Glossaries in one folder."""


@dataclass(frozen=True)
class Dictionary:
    """The terms of a glossary for one pair."""

    src: str
    tgt: str
    entries: Mapping[str, str]


@dataclass(frozen=True)
class Stored:
    """A glossary of a client; each pair has one dictionary."""

    id: str
    name: str
    created: str  # ISO 8601, UTC
    dictionaries: tuple[Dictionary, ...]

    def dictionary(self, src: str, tgt: str) -> Dictionary:
        """The one for a pair.

        Raises:
            UnknownError: There is none.
        """
        for each in self.dictionaries:
            if (each.src, each.tgt) == (src, tgt):
                return each
        raise UnknownError(f"the glossary has no dictionary for {src} to {tgt}")


class Glossaries:
    """The glossaries of one server, or of several with the same folder: what one of them stores, all have."""

    def __init__(self, folder: Path) -> None:
        """Read those that are there.

        Raises:
            ConfigError: The folder cannot be made, or a file in it is damaged.
        """
        self.folder, self._changing = folder, threading.Lock()
        self._read: dict[str, tuple[int, Stored]] = {}  # as the file was at a time, in nanoseconds
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.list()

    def list(self) -> list[Stored]:
        """All, oldest first."""
        found = [self._load(path) for path in self.folder.glob("*.json")]
        return sorted((each for each in found if each is not None), key=lambda each: each.created)

    def get(self, id_: str) -> Stored:
        """One by its id.

        Raises:
            UnknownError: There is none.
        """
        found = self._load(self._path(id_))
        if found is None:
            raise UnknownError("glossary not found")
        return found

    def _load(self, path: Path) -> Stored | None:
        """What a file holds; None: it is gone."""
        try:
            changed = path.stat().st_mtime_ns
            known = self._read.get(path.stem)
            if known is None or known[0] != changed:
                fields = json.loads(path.read_text(encoding="utf-8"))
                dictionaries = tuple(Dictionary(**each) for each in fields.pop("dictionaries"))
                known = self._read[path.stem] = changed, Stored(**fields, dictionaries=dictionaries)
            return known[1]
        except FileNotFoundError:
            self._read.pop(path.stem, None)
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"{path}: no glossary of a server ({error}); mend or delete it") from None

    def add(self, name: str, dictionaries: Iterable[Dictionary]) -> Stored:
        """Store a new one.

        Raises:
            ConfigError: There are too many, or it cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        made = Stored(str(uuid.uuid4()), name, now, tuple(dictionaries))
        with self._changing:
            if len(self.list()) >= MOST:
                raise ConfigError(f"there are {MOST:,} glossaries already: delete one")
            self._write(made)
        return made

    def change(self, id_: str, change: Callable[[Stored], Stored]) -> Stored:
        """Store what ``change`` makes of one.

        Raises:
            UnknownError: There is none.
            ConfigError: It cannot be written.
        """
        with self._changing:
            changed = change(self.get(id_))
            self._write(changed)
        return changed

    def _write(self, one: Stored) -> None:
        write_text(self._path(one.id), json.dumps(asdict(one), ensure_ascii=False))

    def delete(self, id_: str) -> None:
        """Forget one.

        Raises:
            UnknownError: There is none.
        """
        with self._changing:
            self.get(id_)
            with explained(self._path(id_)):
                self._path(id_).unlink(missing_ok=True)
            self._read.pop(id_, None)

    def _path(self, id_: str) -> Path:
        if not re.fullmatch(r"[0-9a-f-]{36}", id_):  # what a client sends never becomes a path
            raise UnknownError("glossary not found")
        return self.folder / f"{id_}.json"
