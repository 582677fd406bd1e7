"""Glossaries that clients store: one JSON file each, in one folder, so that they survive a restart."""

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
from dragoman.serving.memory import TextCache
from dragoman.serving.refusals import UnknownError

MOST = 1000
"""Largest number of glossaries in a folder."""

MOST_READ_CHARS = 8_000_000
"""Largest number of characters of the glossaries that stay in memory; others are read again when they are used."""


@dataclass(frozen=True)
class Dictionary:
    """Terms of a glossary for one language pair."""

    src: str
    tgt: str
    entries: Mapping[str, str]


@dataclass(frozen=True)
class Stored:
    """Glossary of a client, with one dictionary for each language pair."""

    id: str
    name: str
    created: str  # ISO 8601, UTC
    dictionaries: tuple[Dictionary, ...]

    def dictionary(self, src: str, tgt: str) -> Dictionary:
        """Return the dictionary of a pair.

        Raises:
            UnknownError: The glossary has none.
        """
        for dictionary in self.dictionaries:
            if (dictionary.src, dictionary.tgt) == (src, tgt):
                return dictionary
        raise UnknownError(f"the glossary has no dictionary for {src} to {tgt}")


class Glossaries:
    """Glossaries of one server, or of several that share a folder."""

    def __init__(self, folder: Path) -> None:
        """Read the glossaries in ``folder``, which is made if it is missing.

        Raises:
            ConfigError: The folder cannot be made, or a file in it is damaged.
        """
        self.folder, self._changing = folder, threading.Lock()
        # With the modification time of the file, in nanoseconds.
        self._read: TextCache[tuple[int, Stored]] = TextCache(MOST_READ_CHARS, MOST)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.list()

    def list(self) -> list[Stored]:
        """Return all glossaries, oldest first."""
        loaded = [self._load(path) for path in self.folder.glob("*.json")]
        return sorted((glossary for glossary in loaded if glossary is not None), key=lambda glossary: glossary.created)

    def get(self, id_: str) -> Stored:
        """Return a glossary by its id.

        Raises:
            UnknownError: There is no such glossary.
        """
        glossary = self._load(self._path(id_))
        if glossary is None:
            raise UnknownError("glossary not found")
        return glossary

    def _load(self, path: Path) -> Stored | None:
        """Read a glossary if its file has changed since it was last read; None if the file is gone."""
        try:
            changed = path.stat().st_mtime_ns
            known = self._read.get(path.stem)
            if known is None or known[0] != changed:
                text = path.read_text(encoding="utf-8")
                fields = json.loads(text)
                dictionaries = tuple(Dictionary(**each) for each in fields.pop("dictionaries"))
                glossary = Stored(**fields, dictionaries=dictionaries)
                known = self._read.put(path.stem, (changed, glossary), len(text))
            return known[1]
        except FileNotFoundError:
            self._read.pop(path.stem)
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"{path}: not a glossary of this server ({error}); repair or delete it") from None

    def add(self, name: str, dictionaries: Iterable[Dictionary]) -> Stored:
        """Store a new glossary.

        Raises:
            ConfigError: The folder is full, or the glossary cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        made = Stored(str(uuid.uuid4()), name, now, tuple(dictionaries))
        with self._changing:
            if len(self.list()) >= MOST:
                raise ConfigError(f"a server stores at most {MOST:,} glossaries: delete one first")
            self._write(made)
        return made

    def change(self, id_: str, change: Callable[[Stored], Stored]) -> Stored:
        """Replace a glossary by what ``change`` returns for it.

        Raises:
            UnknownError: There is no such glossary.
            ConfigError: It cannot be written.
        """
        with self._changing:
            changed = change(self.get(id_))
            self._write(changed)
        return changed

    def _write(self, glossary: Stored) -> None:
        write_text(self._path(glossary.id), json.dumps(asdict(glossary), ensure_ascii=False))

    def delete(self, id_: str) -> None:
        """Delete a glossary.

        Raises:
            UnknownError: There is no such glossary.
        """
        with self._changing:
            self.get(id_)
            with explained(self._path(id_)):
                self._path(id_).unlink(missing_ok=True)
            self._read.pop(id_)

    def _path(self, id_: str) -> Path:
        if not re.fullmatch(r"[0-9a-f-]{36}", id_):  # no other text of a client becomes a path
            raise UnknownError("glossary not found")
        return self.folder / f"{id_}.json"
