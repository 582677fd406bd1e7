"""Glossaries that clients store: one JSON file each, in one folder, so that they survive a restart.

A file names the API key that stored it. Only that key sees the glossary; all keys do where the operator shares them.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.files import explained, remove_leftovers, write_text
from dragoman.locks import one_at_a_time
from dragoman.serving.limits import Shares
from dragoman.serving.memory import TextCache
from dragoman.serving.refusals import ForeignError, MalformedError, UnknownError
from dragoman.serving.storage import storing

logger = logging.getLogger("dragoman.serving")

MOST = 1000
"""Largest number of glossaries in a folder."""

MOST_READ_CHARS = 8_000_000
"""Largest number of characters of the glossaries that stay in memory; others are read again when they are used."""

NOBODY = ""
"""Owner of glossaries that a server without keys stored, or one of a version without owners."""


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
    owner: str = NOBODY  # name of the key

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

    def __init__(self, folder: Path, shares: Shares = Shares((NOBODY,)), *, shared: bool = False) -> None:  # noqa: B008
        """Read the glossaries in ``folder``, which is made if it is missing.

        Args:
            shares: Shares of the keys in the number of glossaries.
            shared: Let every key see and use all glossaries; only its owner changes or deletes one.

        Raises:
            ConfigError: The folder cannot be made, or a file in it is damaged.
        """
        self.folder, self.shares, self.shared = folder, shares, shared
        self._changing = threading.Lock()
        # With what tells the versions of the file apart.
        self._read: TextCache[tuple[Hashable, Stored]] = TextCache(MOST_READ_CHARS, MOST)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        for path in folder.glob("*.json"):
            self._load(path)

    def report_ownerless(self) -> None:
        """Log a warning if there are glossaries that no key may change."""
        n = sum(glossary.owner == NOBODY for glossary in self._all())
        if n and NOBODY not in self.shares.names:
            logger.warning(
                "%s: glossaries without an owner: %d; no key sees them unless all are shared. Give them to a key with "
                "--adopt-glossaries NAME", self.folder, n,
            )  # fmt: skip

    def adopt(self, owner: str) -> None:
        """Give all glossaries without an owner to ``owner``.

        Raises:
            DragomanError: A file cannot be written.
        """
        with self._alone():
            for glossary in self._all():
                if glossary.owner == NOBODY:
                    self._write(replace(glossary, owner=owner))

    def list(self, owner: str) -> list[Stored]:
        """Return the glossaries that ``owner`` sees, oldest first."""
        visible = [glossary for glossary in self._all() if self._is_visible(glossary, owner)]
        return sorted(visible, key=lambda glossary: glossary.created)

    def get(self, id_: str, owner: str) -> Stored:
        """Return a glossary by its id.

        Raises:
            UnknownError: There is none that ``owner`` sees.
        """
        glossary = self._loaded(self._path(id_))
        if glossary is None or not self._is_visible(glossary, owner):
            raise UnknownError("glossary not found")
        return glossary

    def add(self, owner: str, name: str, dictionaries: Iterable[Dictionary]) -> Stored:
        """Store a new glossary of ``owner``.

        Raises:
            MalformedError: ``owner`` has as many as it may.
            FullError, UnstorableError: The glossary cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        made = Stored(str(uuid.uuid4()), name, now, tuple(dictionaries), owner)
        with storing(), self._alone():
            used = Counter(glossary.owner for glossary in self._all())
            if not self.shares.has_room(MOST, used, owner):
                raise MalformedError(f"no more glossaries can be stored, {used[owner]:,} are yours: delete one first")
            self._write(made)
        return made

    def change(self, id_: str, owner: str, change: Callable[[Stored], Stored]) -> Stored:
        """Replace a glossary of ``owner`` by what ``change`` returns for it.

        Raises:
            UnknownError, ForeignError: See ``_own``.
            FullError, UnstorableError: It cannot be written; the old one stays.
        """
        with storing(), self._alone():
            changed = change(self._own(id_, owner))
            self._write(changed)
        return changed

    def delete(self, id_: str, owner: str) -> None:
        """Delete a glossary of ``owner``.

        Raises:
            UnknownError, ForeignError: See ``_own``.
            UnstorableError: It cannot be deleted.
        """
        with storing(), self._alone():
            self._own(id_, owner)
            self._path(id_).unlink(missing_ok=True)
            self._read.pop(id_)

    def _own(self, id_: str, owner: str) -> Stored:
        """Return a glossary that ``owner`` may change.

        Raises:
            UnknownError: There is none that it sees.
            ForeignError: It is shared, and belongs to another key or to none.
        """
        glossary = self.get(id_, owner)
        if glossary.owner != owner:
            raise ForeignError("this glossary belongs to another key, which alone may change or delete it")
        return glossary

    def _is_visible(self, glossary: Stored, owner: str) -> bool:
        return self.shared or glossary.owner == owner

    def _all(self) -> Iterator[Stored]:
        for path in self.folder.glob("*.json"):
            glossary = self._loaded(path)
            if glossary is not None:
                yield glossary

    def _loaded(self, path: Path) -> Stored | None:
        """Return a glossary; None if it is gone, or damaged since the server started, which then is logged."""
        try:
            return self._load(path)
        except ConfigError as error:
            logger.error("%s", error)
            return None

    def _load(self, path: Path) -> Stored | None:
        """Read a glossary if its file has changed since it was last read; None if the file is gone.

        Raises:
            ConfigError: The file is damaged.
        """
        try:
            state = path.stat()
            version = state.st_mtime_ns, state.st_ino
            known = self._read.get(path.stem)
            if known is None or known[0] != version:
                text = path.read_text(encoding="utf-8")
                fields = json.loads(text)
                dictionaries = tuple(Dictionary(**own) for own in fields.pop("dictionaries"))
                glossary = Stored(**fields, dictionaries=dictionaries)
                known = self._read.put(path.stem, (version, glossary), len(text))
            return known[1]
        except FileNotFoundError:
            self._read.pop(path.stem)
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"{path}: not a glossary of this server ({error}); repair or delete it") from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other thread and no other server change the folder while the body runs."""
        with self._changing, one_at_a_time(self.folder):
            yield

    def _write(self, glossary: Stored) -> None:
        write_text(self._path(glossary.id), json.dumps(asdict(glossary), ensure_ascii=False))

    def _path(self, id_: str) -> Path:
        if not re.fullmatch(r"[0-9a-f-]{36}", id_):  # no other text of a client becomes a path
            raise UnknownError("glossary not found")
        return self.folder / f"{id_}.json"
