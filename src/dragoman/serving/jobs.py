"""Jobs of documents on disk: a folder each, which any process with the same folder can read.

    job.json     the state, replaced whole; touched while the job is unfinished, so an old file means a dead server
    full.json    the state to take if the disk is full at the end: written before the work, renamed to ``job.json``
    source       the upload, until the job ends
    room         what is reserved for the translation, until it is written there
    result       the translation; read-only once it was fetched, so that it goes first when room is short

A folder gets its ``job.json`` under a lock of the folder of all jobs. One without, under that lock, is litter.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.files import explained, write_bytes, write_text
from dragoman.locks import acquire, one_at_a_time
from dragoman.serving.limits import Shares
from dragoman.serving.refusals import BusyError, UnknownError
from dragoman.serving.storage import fill, is_full, reserve, storing

logger = logging.getLogger("dragoman.serving")

LIFETIME_S = 3600.0
"""Lifetime of a document after its upload, in seconds."""

LOST_S = 60.0
"""Age of ``job.json``, in seconds, from which an unfinished job counts as lost with its server."""

MOST_JOBS = 200
"""Largest number of stored jobs of all keys together."""

STOPPED = "the server has stopped: upload the document again"
FULL = "the server has no room for the translation: upload the document again later"

TEMPORARY = "dragoman-documents-"
"""Beginning of the names of temporary folders of jobs."""

SERVER = "server"
"""Name of a file in a temporary folder that is locked while its server lives."""


@dataclass(frozen=True)
class Job:
    """State of a document, as ``job.json`` stores it."""

    id: str
    name: str  # of the uploaded file, without folders
    key: str  # SHA-256 of the secret that its owner got
    pair: str
    created: float  # seconds since 1970
    columns: Sequence[str] = ()  # headings of the columns to translate, in a table
    options: Mapping[str, Any] = field(default_factory=dict)  # of the formats, by name
    status: str = "queued"  # translating, done, error
    n_chars: int = 0
    error: str = ""
    found: int = 0  # segments
    translated: int = 0
    left: Sequence[tuple[str, str]] = ()  # untranslated: (text, reason)
    owner: str = ""  # name of the API key

    @property
    def has_ended(self) -> bool:
        """True if the job is done or has failed."""
        return self.status in ("done", "error")


class Jobs:
    """Folder of all jobs of one server, or of several that share it."""

    def __init__(self, folder: Path | None) -> None:
        """Store jobs in ``folder``; None: in a temporary one, deleted with the server.

        Raises:
            DragomanError: The folder cannot be made.
        """
        self._folder, self._lock = folder, -1
        self._unstored: dict[str, Job] = {}  # last states that could not be written
        if folder is None:
            _remove_temporary_folders()
            return
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(folder):
                self._clear_away()

    @property
    def folder(self) -> Path:
        """Folder of all jobs; a temporary one is made at first use."""
        while self._folder is None:
            made = Path(tempfile.mkdtemp(prefix=TEMPORARY))
            with contextlib.suppress(FileNotFoundError, BlockingIOError):  # another server took it for a dead one's
                self._lock = acquire(made / SERVER)
                self._folder = made
        return self._folder

    def create(self, job: Job, data: bytes, shares: Shares) -> None:
        """Store a new job with its upload, and reserve room for its translation.

        While room is short, jobs go that failed or whose translation was fetched.

        Raises:
            BusyError: The owner has as many jobs as it may.
            FullError, UnstorableError: The disk is full or broken; nothing is left of the job.
        """
        with storing():
            while True:
                try:
                    self._create(job, data, shares)
                    return
                except BaseException as error:
                    self.remove(job.id)
                    if not is_full(error) or not self._drop_one(job.owner):
                        raise

    def _create(self, job: Job, data: bytes, shares: Shares) -> None:
        with one_at_a_time(self.folder):
            self._clear_away()
            self._make_room_for(job.owner, shares)
            self.path(job.id).mkdir()
            self.keep(job)
        full = replace(job, status="error", error=FULL)
        write_text(self.path(job.id) / "full.json", _text(full))
        write_bytes(self.path(job.id) / "source", data)
        reserve(self.path(job.id) / "room", room_of(len(data)) - len(data))

    def _make_room_for(self, owner: str, shares: Shares) -> None:
        """Drop jobs until ``owner`` may store one more.

        Raises:
            BusyError: None can go.
        """
        while True:
            used = Counter(job.owner for job in self._all())
            if shares.has_room(MOST_JOBS, used, owner):
                return
            share = shares.of(MOST_JOBS)
            # Another key's jobs make room only where it uses more than its share.
            if not self._drop_one(owner, lambda other: used[other] > share or not shares.includes(other)):  # noqa: B023
                raise BusyError(10.0)

    def _drop_one(self, owner: str, may_go: Callable[[str], bool] = lambda other: True) -> bool:
        """Drop the oldest job that nobody waits for, of ``owner`` first; return False if there is none."""
        jobs = [job for job in self._all() if job.owner == owner or may_go(job.owner)]
        for job in sorted(jobs, key=lambda job: (job.owner != owner, job.created)):
            may_end = self._was_fetched(job) or self._is_lost(job, 10 * LOST_S) or _never_expires(job)
            if job.status == "error" or may_end:
                self.remove(job.id)
                return True
        return False

    def read(self, id_: str) -> Job | None:
        """Return a job by its id; None if it is gone, expired or unreadable."""
        job = self._unstored.get(id_) or self._read(id_)
        return None if job is None or time.time() - job.created > LIFETIME_S else job

    def is_lost(self, job: Job) -> bool:
        """Return True if the server of an unfinished job has died."""
        return self._is_lost(job, LOST_S)

    def _is_lost(self, job: Job, age_s: float) -> bool:
        with contextlib.suppress(OSError):
            return not job.has_ended and time.time() - (self.path(job.id) / "job.json").stat().st_mtime > age_s
        return False

    def keep(self, job: Job) -> None:
        """Store the state of a job, unless its folder is gone.

        Raises:
            FullError, UnstorableError: It cannot be written.
        """
        if self.path(job.id).is_dir():
            with storing():
                write_text(self.path(job.id) / "job.json", _text(job))

    def touch(self, id_: str) -> None:
        """Show other processes that the server of an unfinished job is alive."""
        with contextlib.suppress(OSError):
            os.utime(self.path(id_) / "job.json")

    def source(self, job: Job) -> bytes:
        """Return the upload of an unfinished job.

        Raises:
            UnstorableError: It cannot be read.
        """
        with storing():
            return (self.path(job.id) / "source").read_bytes()

    def result(self, job: Job) -> Path:
        """Return the path of a finished job's translation."""
        return self.path(job.id) / "result"

    def fill(self, job: Job, content: bytes) -> None:
        """Write the translation of a job into its reserved room.

        Raises:
            FullError, UnstorableError: The translation cannot be written.
        """
        folder = self.path(job.id)
        with storing():
            (folder / "source").unlink(missing_ok=True)  # its room may be needed
            fill(folder / "room", self.result(job), content)

    def end(self, job: Job) -> None:
        """Store the last state of a job; where the disk has no room for it, that of ``full.json``."""
        folder = self.path(job.id)
        with contextlib.suppress(OSError):
            for name in ("source", "room"):
                (folder / name).unlink(missing_ok=True)
        try:
            self.keep(job)
            (folder / "full.json").unlink(missing_ok=True)
        except (OSError, DragomanError):
            try:
                (folder / "full.json").replace(folder / "job.json")
                self.result(job).unlink(missing_ok=True)
            except OSError as error:
                logger.error("the state of a document: %s", error)
                self._unstored[job.id] = replace(job, status="error", error=FULL)

    def mark_fetched(self, job: Job) -> None:
        """Note that the translation was fetched, in a way that takes no room."""
        with contextlib.suppress(OSError):
            self.result(job).chmod(0o400)

    def _was_fetched(self, job: Job) -> bool:
        with contextlib.suppress(OSError):
            return not self.result(job).stat().st_mode & stat.S_IWUSR
        return False

    def remove(self, id_: str) -> None:
        """Delete a job's folder."""
        self._unstored.pop(id_, None)
        shutil.rmtree(self.path(id_), ignore_errors=True)

    def close(self) -> None:
        """Delete a temporary folder."""
        if self._lock >= 0 and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def path(self, id_: str) -> Path:
        """Return the folder of a job.

        Raises:
            UnknownError: ``id_`` is not the id of a job.
        """
        if not re.fullmatch(r"[0-9a-f]{32}", id_):  # no other text of a client becomes a path
            raise UnknownError("document not found")
        return self.folder / id_

    def _read(self, id_: str) -> Job | None:
        try:
            return Job(**json.loads((self.path(id_) / "job.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _paths(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if re.fullmatch(r"[0-9a-f]{32}", path.name)]

    def _all(self) -> Iterator[Job]:
        for path in self._paths():
            job = self._read(path.name)
            if job is not None:
                yield job

    def _clear_away(self) -> None:
        """Delete expired jobs, and folders without a job. The caller holds the lock of the folder."""
        for path in self._paths():
            with contextlib.suppress(OSError):
                job, age_s = self._read(path.name), time.time() - path.stat().st_ctime
                # An unreadable file may be repaired; servers of a former version make folders without the lock.
                most_s = LIFETIME_S if (path / "job.json").exists() else LOST_S
                if age_s > most_s if job is None else time.time() - job.created > LIFETIME_S:
                    self.remove(path.name)


def _never_expires(job: Job) -> bool:
    """Return True if a job that has ended was made by a clock that was far ahead: it would stay until that time."""
    return job.has_ended and job.created > time.time() + LIFETIME_S


def room_of(n_bytes: int) -> int:
    """Return the room that a job takes with an upload of ``n_bytes``, in bytes."""
    # Formats that keep source and translation side by side double in size.
    return n_bytes + 2 * n_bytes + 16 * 1024


def _text(job: Job) -> str:
    return json.dumps(asdict(job), ensure_ascii=False)


def _remove_temporary_folders() -> None:
    """Delete the temporary folders of this user's servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):  # BlockingIOError: its server lives
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = acquire(folder / SERVER)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
