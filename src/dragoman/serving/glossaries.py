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
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, TypeAdapter, ValidationError

from dragoman.errors import ConfigError
from dragoman.files import explained, names_in, remove_leftovers, write_text
from dragoman.languages.composition import compose
from dragoman.locks import one_at_a_time
from dragoman.serving.limits import Shares
from dragoman.serving.memory import TextCache, bytes_of_terms
from dragoman.serving.refusals import ForeignError, MalformedError, UnknownError
from dragoman.serving.storage import LOCK_S, Disk, Outlines, make_private, storing, text_of, version_of

logger = logging.getLogger("dragoman.serving")

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

MOST = 1000
"""Largest number of glossaries in a folder."""

MOST_READ_BYTES = 32 << 20
"""Largest size of the glossaries that stay in memory, in bytes; others are read again when they are used."""

MOST_NAME = 1024
"""Largest length of a name in characters, since a list has the names of all."""

GROWTH = 4
"""Largest size of a stored glossary, as a multiple of the largest body: changes may add to it."""

NOBODY = ""
"""Owner of glossaries that a server without keys stored, or one of a version without owners."""


def _composed(entries: Mapping[str, str]) -> Mapping[str, str]:
    """Return the terms of a file, which a former version may have written, with their sources composed.

    Of terms that are equal then, the last one counts, as it does in a change of a glossary.
    """
    return {compose(src.strip()): tgt for src, tgt in entries.items()}


@dataclass(frozen=True)
class Dictionary:
    """Terms of a glossary for one language pair."""

    src: str
    tgt: str
    entries: Annotated[Mapping[str, str], AfterValidator(_composed)]  # by ``_STORED``, when a file is read


@dataclass(frozen=True)
class Outline:
    """Glossary without its terms."""

    id: str
    name: str
    created: str
    owner: str
    counts: tuple[tuple[str, str, int], ...]  # source, target and number of terms of each dictionary


@dataclass(frozen=True)
class Stored:
    """Glossary of a client, with one dictionary for each language pair."""

    id: str
    name: str
    created: str  # ISO 8601, UTC
    dictionaries: tuple[Dictionary, ...]
    owner: str = NOBODY  # name of the key

    @property
    def outline(self) -> Outline:
        """The glossary without its terms."""
        counts = tuple((own.src, own.tgt, len(own.entries)) for own in self.dictionaries)
        return Outline(self.id, self.name, self.created, self.owner, counts)

    def dictionary(self, src: str, tgt: str) -> Dictionary:
        """Return the dictionary of a pair.

        Raises:
            UnknownError: The glossary has none.
        """
        for dictionary in self.dictionaries:
            if (dictionary.src, dictionary.tgt) == (src, tgt):
                return dictionary
        raise UnknownError(f"the glossary has no dictionary for {src} to {tgt}")


_STORED = TypeAdapter(Stored)  # reads a file; fields of a later version are left out


class Glossaries:
    """Glossaries of one server, or of several that share a folder."""

    def __init__(
        self, folder: Path, shares: Shares = Shares((NOBODY,)), *, shared: bool = False,  # noqa: B008
        most_bytes: int = 4_000_000,
    ) -> None:  # fmt: skip
        """Read the glossaries in ``folder``, which is made if it is missing.

        Args:
            shares: Shares of the keys in the number of glossaries.
            shared: Let every key see and use all glossaries; only its owner changes or deletes one.
            most_bytes: Largest file of a glossary.

        Raises:
            ConfigError: The folder cannot be made, or a file in it is damaged.
        """
        self.folder, self.shares, self.shared, self.most_bytes = folder, shares, shared, most_bytes
        self.disk = Disk()
        self._changing = threading.Lock()
        # With what tells the versions of the file apart.
        self.kept: TextCache[tuple[Hashable, Stored]] = TextCache(MOST_READ_BYTES, MOST)
        self._outlines: Outlines[Outline] = Outlines()  # of all glossaries
        with explained(folder):
            make_private(folder)
            remove_leftovers(folder)
            for path in self._paths():
                self._outlines.get(path, partial(self._outline, path))

    def report_ownerless(self) -> None:
        """Log a warning if there are glossaries that no key may change."""
        n = sum(outline.owner == NOBODY for outline in self._all())
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
            for outline in self._all():
                if outline.owner == NOBODY:
                    self._write(replace(self.get(outline.id, NOBODY), owner=owner))

    def list(self, owner: str) -> list[Outline]:
        """Return the glossaries that ``owner`` sees, oldest first."""
        visible = [outline for outline in self._all() if self._is_visible(outline.owner, owner)]
        return sorted(visible, key=lambda outline: outline.created)

    def get(self, id_: str, owner: str) -> Stored:
        """Return a glossary by its id.

        Raises:
            UnknownError: There is none that ``owner`` sees.
        """
        glossary = self._loaded(self._path(id_))
        if glossary is None or not self._is_visible(glossary.owner, owner):
            raise UnknownError("glossary not found")
        return glossary

    def add(self, owner: str, name: str, dictionaries: Iterable[Dictionary]) -> Stored:
        """Store a new glossary of ``owner``.

        Raises:
            MalformedError: ``owner`` has as many as it may, or the glossary is too large.
            FullError, UnstorableError: The glossary cannot be written.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
        made = Stored(str(uuid.uuid4()), name, now, tuple(dictionaries), owner)
        with storing():
            try:
                self._add(made)
            except BaseException:  # after an error nothing may be stored that its owner knows nothing of
                with contextlib.suppress(OSError):
                    self._path(made.id).unlink(missing_ok=True)
                raise
        return made

    def _add(self, made: Stored) -> None:
        with self._alone():
            used = Counter(outline.owner for outline in self._all())
            if not self.shares.has_room(MOST, used, made.owner):
                n = used[made.owner]
                raise MalformedError(f"no more glossaries can be stored, {n:,} are yours: delete one first")
            self._write(made)

    def change(self, id_: str, owner: str, change: Callable[[Stored], Stored]) -> Stored:
        """Replace a glossary of ``owner`` by what ``change`` returns for it.

        Raises:
            UnknownError, ForeignError: See ``_own``.
            MalformedError: It would be too large.
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
            self.kept.pop(id_)

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

    def _is_visible(self, owner: str, viewer: str) -> bool:
        return self.shared or owner == viewer

    def _paths(self) -> tuple[Path, ...]:
        """Return the files of all glossaries; others in the folder are not of this server."""
        paths = (self.folder / name for name in names_in(self.folder))
        return tuple(path for path in paths if path.suffix == ".json" and _ID.fullmatch(path.stem))

    def _all(self) -> Iterator[Outline]:
        """Yield the outlines of all glossaries; only those that have changed are read again."""
        paths = self._paths()
        self._outlines.keep(paths)
        for path in paths:
            with _logged(ConfigError, OSError):
                outline = self._outlines.get(path, partial(self._outline, path))
                if outline is not None:
                    yield outline

    def _outline(self, path: Path) -> Outline | None:
        glossary = self._load(path)
        return None if glossary is None else glossary.outline

    def _loaded(self, path: Path) -> Stored | None:
        """Return a glossary; None if it is gone, or damaged since the server started, which then is logged.

        Raises:
            UnstorableError: It cannot be read now.
        """
        with storing(), _logged(ConfigError):
            return self._load(path)
        return None

    def _load(self, path: Path) -> Stored | None:
        """Read a glossary if its file has changed since it was last read; None if the file is gone.

        Raises:
            ConfigError: The file is damaged.
            OSError: It cannot be read.
        """
        try:
            version = version_of(path)
            if version is None:
                raise FileNotFoundError
            known = self.kept.get(path.stem)
            if known is None or known[0] != version:
                text = text_of(path)
                glossary = _STORED.validate_json(text, strict=True)
                n_terms = sum(n for _, _, n in glossary.outline.counts)
                known = self.kept.put(path.stem, (version, glossary), bytes_of_terms(text, n_terms))
            return known[1]
        except FileNotFoundError:
            self.kept.pop(path.stem)
            return None
        except ValueError as error:
            # Nothing else of the error: it would show what the file holds.
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "no UTF-8 text"
            raise ConfigError(f"{path}: not a glossary of this server ({why}); repair or delete it") from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other thread and no other server change the folder while the body runs."""
        with self._changing, one_at_a_time(self.folder, LOCK_S):
            yield

    def _write(self, glossary: Stored) -> None:
        """Write a glossary.

        Raises:
            MalformedError: It is too large.
        """
        text = json.dumps(asdict(glossary), ensure_ascii=False)
        if (n_bytes := len(text.encode())) > self.most_bytes:
            raise MalformedError(
                f"a glossary may have at most {self.most_bytes:,} bytes on this server, got {n_bytes:,}"
            )
        path = self._path(glossary.id)
        write_text(path, text)
        # Also where the inode and time of the file are the same as before.
        self.kept.pop(glossary.id)
        self._outlines.forget(path)

    def _path(self, id_: str) -> Path:
        if not _ID.fullmatch(id_):  # no other text of a client becomes a path
            raise UnknownError("glossary not found")
        return self.folder / f"{id_}.json"


@contextlib.contextmanager
def _logged(*errors: type[Exception]) -> Iterator[None]:
    """Log an error of these types that the body raises, and end the body."""
    try:
        yield
    except errors as error:
        logger.error("%s", error)
