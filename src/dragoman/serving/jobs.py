"""Jobs of documents on disk: a folder each, which any process with the same folder can read.

    job.json     the state, replaced whole; touched while the job is unfinished, so an old file means a dead server
    full.json    the state to take if the disk is full at the end: written before the work, renamed to ``job.json``
    source       the upload, until the job ends
    room         what is reserved for the translation, until it is written there
    pieces       pieces of a long upload's texts, and their translations so far; the room for them is reserved too
    result       the translation; read-only once it was fetched, so that it goes first when room is short

A folder gets its ``job.json`` under a lock of the folder of all jobs. One without, under that lock, is litter.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.files import explained, write_bytes, write_text
from dragoman.locks import acquire, one_at_a_time
from dragoman.serving.limits import Shares
from dragoman.serving.refusals import BusyError, UnknownError, readable
from dragoman.serving.storage import (
    LOCK_S,
    Disk,
    Outlines,
    fill,
    has_room,
    is_full,
    make_private,
    opened,
    reserve,
    several_times,
    storing,
    text_of,
    version_of,
)
from dragoman.translation.quality import Quality

logger = logging.getLogger("dragoman.serving")

LIFETIME_S = 3600.0
"""Lifetime of a document after its translation has ended, in seconds."""

LOST_S = 60.0
"""Age of ``job.json``, in seconds, from which an unfinished job counts as lost with its server."""

CLOCK_S = 1.0
"""Seconds after which the clock of the files is read again."""

MOST_JOBS = 200
"""Largest number of stored jobs of all keys together."""

STOPPED = "the server has stopped: upload the document again"
UPGRADED = "the server was upgraded while it had this document: upload it again once the server has been restarted"
FULL = "the server has no room for the translation: upload the document again later"

WORK = ("source", "pieces", "room")
"""Files of a job that it needs until it ends."""

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
    created: float  # seconds since 1970, of the upload; once the job has ended, of its end
    columns: Sequence[str] = ()  # headings of the columns to translate, in a table
    options: Mapping[str, Any] = field(default_factory=dict)  # of the formats, by name
    status: str = "queued"  # translating, done, error
    n_chars: int = 0
    error: str = ""
    found: int = 0  # segments
    translated: int = 0
    left: Sequence[tuple[str, str]] = ()  # untranslated: (text, reason)
    owner: str = ""  # name of the API key
    quality: Quality | None = None  # of the translation; None: not known

    @property
    def has_ended(self) -> bool:
        """True if the job is done or has failed."""
        return self.status in ("done", "error")


class Ages:
    """Ages of jobs, which no step of the system's clock changes once a job was seen.

    Files and jobs have times of one clock, ``now``. It is read when a time is first seen; from then on another clock
    counts, which goes on evenly.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin without jobs."""
        self._now = now
        self._seen: dict[str, tuple[float, float, float]] = {}  # time, when it was first seen, and its age then

    def seconds(self, name: str, moment: float) -> float:
        """Return the seconds since ``moment``, a time that ``name`` has, in seconds since 1970."""
        now = time.monotonic()
        seen = self._seen.get(name)
        if seen is None or seen[0] != moment:
            seen = self._seen[name] = moment, now, max(0.0, self._now() - moment)
        return seen[2] + now - seen[1]

    def keep(self, names: Collection[str]) -> None:
        """Forget all but ``names``."""
        for name in self._seen.keys() - names:
            self._seen.pop(name, None)


class Jobs:
    """Folder of all jobs of one server, or of several that share it."""

    def __init__(self, folder: Path | None) -> None:
        """Store jobs in ``folder``; None: in a temporary one, deleted with the server.

        Raises:
            DragomanError: The folder cannot be made.
        """
        self._folder, self._lock, self._making = folder, -1, threading.Lock()
        self._unstored: dict[str, Job] = {}  # last states that could not be written
        self.disk = Disk()
        self.under_way: set[str] = set()  # ids of the jobs on which this process works
        self._outlines: Outlines[Job] = Outlines()
        self._clock = (
            time.time() - 2 * CLOCK_S,
            time.monotonic() - 2 * CLOCK_S,
        )  # time of the files' clock, and when it was read
        # Since they were created or ended, and since they were touched.
        self._lives, self._touches = Ages(self.now), Ages(self.now)
        if folder is None:
            _remove_temporary_folders()
            return
        with explained(folder):
            make_private(folder)
            with one_at_a_time(folder, LOCK_S):
                self._clear_away()

    @property
    def folder(self) -> Path:
        """Folder of all jobs; a temporary one is made at first use, and again if it was deleted."""
        with self._making:  # first uploads that come together must not make one each
            if self._lock >= 0 and self._folder is not None and _is_gone(self._folder):
                # A program that clears old files away has deleted it.
                self._unlock()
                self._folder = None
            while self._folder is None:
                made = Path(tempfile.mkdtemp(prefix=TEMPORARY))
                with contextlib.suppress(FileNotFoundError, BlockingIOError):  # another server took it for a dead one's
                    self._lock = acquire(made / SERVER)
                    self._folder = made
            return self._folder

    def _unlock(self) -> None:
        lock, self._lock = self._lock, -1
        with contextlib.suppress(OSError):  # as from a quota on NFS; the lock is free all the same
            os.close(lock)

    def has_room(self, n_bytes: int) -> bool:
        """Return True if ``n_bytes`` are free for documents; see ``storage.has_room``."""
        try:
            return has_room(self.folder, n_bytes)
        except OSError as error:
            logger.warning("no temporary folder can be made for documents: %s", error)
            return False

    def now(self) -> float:
        """Return the time of the clock that gives the files their times, in seconds since 1970."""
        # It is the file server's, if the folder lies on one. The clocks of the servers that share it may differ.
        now = time.monotonic()
        if now - self._clock[1] > CLOCK_S:
            with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=self.folder) as file:
                self._clock = os.fstat(file.fileno()).st_mtime, now
        return self._clock[0] + now - self._clock[1]

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
                    if not self._makes_way(job.owner, error):
                        raise

    def _create(self, job: Job, data: bytes, shares: Shares) -> None:
        with one_at_a_time(self.folder, LOCK_S):
            self._clear_away()
            self._make_room_for(job.owner, shares)
            # Other users of the machine may not read it, whatever the operator lets them read above.
            self.path(job.id).mkdir(mode=0o700 | self.folder.stat().st_mode & 0o070)
            self.keep(job)
            self._lives.seconds(job.id, job.created)
        full = replace(job, status="error", error=FULL)
        write_text(self.path(job.id) / "full.json", _text(full))
        write_bytes(self.path(job.id) / "source", data)
        reserve(self.path(job.id) / "room", room_of(len(data)) - len(data))

    def reserve_pieces(self, job: Job, n_bytes: int) -> None:
        """Reserve room for the pieces of a job, if there are to be any on disk; see ``create``.

        Raises:
            FullError, UnstorableError: The disk is full or broken.
        """
        with storing():
            while n_bytes:
                try:
                    reserve(self.pieces(job), n_bytes)
                    return
                except OSError as error:
                    if not self._makes_way(job.owner, error):
                        raise

    def _makes_way(self, owner: str, error: BaseException) -> bool:
        """Drop a job after an error of a full disk; return False for another error, or if none can go."""
        return is_full(error) and (self._drop_damaged() or self._drop_one(owner))

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
            may_be_dropped = job.status == "error" or self._was_fetched(job) or self._is_lost(job, 10 * LOST_S)
            if may_be_dropped and self.remove(job.id):
                return True
        return False

    def _drop_damaged(self) -> bool:
        """Drop a job whose file nobody can read, and no server touches; return False if there is none."""
        for path in self._paths():
            if path.name in self.under_way or path.name in self._unstored or self._outline(path.name) is not None:
                continue
            with contextlib.suppress(OSError):  # what cannot be read now may be read later
                touched = (path / "job.json").stat().st_mtime
                is_old = self._touches.seconds(path.name, touched) > 10 * LOST_S
                if is_old and self._read(path.name) is None:
                    return self.remove(path.name)
        return False

    def read(self, id_: str) -> Job | None:
        """Return a job by its id; None if it is gone, expired or damaged.

        Raises:
            UnstorableError: Its file cannot be read now.
        """
        with storing():
            job = self._unstored.get(id_)
            if job is None:
                job = self._read(id_)
            else:
                self._store_late()
        return None if job is None or self._is_expired(job) else job

    def _is_expired(self, job: Job) -> bool:
        """Return True if a job has ended, or was lost, too long ago. A job does not expire while it is translated."""
        # Its server may have stood still for a minute, and then goes on.
        is_over = job.has_ended or self._is_lost(job, LIFETIME_S)
        return is_over and self._lives.seconds(job.id, job.created) > LIFETIME_S

    def is_lost(self, job: Job) -> bool:
        """Return True if the server of an unfinished job has died."""
        return self._is_lost(job, LOST_S)

    def _is_lost(self, job: Job, age_s: float) -> bool:
        if job.has_ended or job.id in self.under_way:
            return False
        with contextlib.suppress(OSError):
            touched = (self.path(job.id) / "job.json").stat().st_mtime
            return self._touches.seconds(job.id, touched) > age_s
        return False

    def keep(self, job: Job) -> None:
        """Store the state of a job, unless its folder is gone.

        Raises:
            FullError, UnstorableError: It cannot be written.
        """
        with storing():
            if version_of(self.path(job.id)) is not None:
                write_text(self.path(job.id) / "job.json", _text(job))
                self._outlines.forget(self.path(job.id) / "job.json")

    def touch(self, id_: str) -> None:
        """Show other processes that the server of an unfinished job is alive."""
        with contextlib.suppress(OSError):
            os.utime(self.path(id_) / "job.json")

    def source(self, job: Job) -> bytes:
        """Return the upload of an unfinished job.

        Raises:
            UnstorableError: It cannot be read.
        """
        return several_times(self._source, job)

    def _source(self, job: Job) -> bytes:
        with storing(), opened(self.path(job.id) / "source") as file:
            return file.read()

    def pieces(self, job: Job) -> Path:
        """Return the path of the pieces of an unfinished job."""
        return self.path(job.id) / "pieces"

    def result(self, job: Job) -> Path:
        """Return the path of a finished job's translation."""
        return self.path(job.id) / "result"

    def fill(self, job: Job, content: bytes) -> None:
        """Write the translation of a job into its reserved room.

        Raises:
            FullError, UnstorableError: The translation cannot be written.
        """
        several_times(self._fill, job, content)

    def _fill(self, job: Job, content: bytes) -> None:
        with storing():
            folder = self.path(job.id)
            for name in WORK[:2]:  # their room may be needed
                (folder / name).unlink(missing_ok=True)
            fill(folder / "room", self.result(job), content)

    def end(self, job: Job) -> None:
        """Store the last state of a job; where the disk has no room for it, that of ``full.json``.

        Where it cannot be stored for another reason, this process knows it, and stores it later.
        """
        job = replace(job, created=self.now())
        self._lives.seconds(job.id, job.created)
        self.under_way.discard(job.id)
        self._unlink(job, *WORK)
        try:
            several_times(self.keep, job)
        except (OSError, DragomanError) as error:
            # A client may have been told what stands in the file: that stays.
            if not self._is_stored(job) and not (is_full(error) and self._end_without_room(job)):
                self._unstored[job.id] = replace(job, status="error", error=FULL) if is_full(error) else job
                return
        self._unlink(job, "full.json")

    def _end_without_room(self, job: Job) -> bool:
        """Store the state of ``full.json``, which needs no room; return False if that fails too."""
        try:
            (self.path(job.id) / "full.json").replace(self.path(job.id) / "job.json")
        except OSError as error:
            logger.error("the state of a document: %s", error)
            return False
        self._unlink(job, "result")
        return True

    def _is_stored(self, job: Job) -> bool:
        """Return True if the file of a job holds this state."""
        with contextlib.suppress(OSError, ValueError):
            return text_of(self.path(job.id) / "job.json") == _text(job)
        return False

    def _unlink(self, job: Job, *names: str) -> None:
        """Delete files of a job that it no longer needs; what cannot be deleted now goes with the job."""
        for name in names:
            try:
                (self.path(job.id) / name).unlink(missing_ok=True)
            except OSError as error:
                logger.warning("a file of a document cannot be deleted: %s", error)

    def _store_late(self) -> None:
        """Store the last states that could not be stored when their jobs ended."""
        for job in [*self._unstored.values()]:
            with contextlib.suppress(OSError, DragomanError):
                self.keep(job)
                self._unstored.pop(job.id, None)

    def mark_fetched(self, job: Job) -> None:
        """Note that the translation was fetched, in a way that takes no room."""
        with contextlib.suppress(OSError):
            self.result(job).chmod(0o400)

    def _was_fetched(self, job: Job) -> bool:
        with contextlib.suppress(OSError):
            return not self.result(job).stat().st_mode & stat.S_IWUSR
        return False

    def remove(self, id_: str) -> bool:
        """Delete a job's folder; return False if it cannot be, as on a disk that has become read-only."""
        self._unstored.pop(id_, None)
        with contextlib.suppress(OSError):
            folder = self.path(id_)
            with contextlib.suppress(OSError):  # of ``close``, which ``rmtree`` does not ignore
                shutil.rmtree(folder, ignore_errors=True)
            return not os.path.lexists(folder)
        return True  # there is no folder of jobs

    def close(self) -> None:
        """Store what is not stored yet, and delete a temporary folder."""
        self._store_late()
        if self._lock >= 0 and self._folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder, ignore_errors=True)
            self._unlock()

    def path(self, id_: str) -> Path:
        """Return the folder of a job.

        Raises:
            UnknownError: ``id_`` is not the id of a job.
        """
        if not re.fullmatch(r"[0-9a-f]{32}", id_):  # no other text of a client becomes a path
            raise UnknownError("document not found")
        return self.folder / id_

    def _read(self, id_: str) -> Job | None:
        """Return a job by its file; None if there is none, or it is damaged.

        Raises:
            OSError: It cannot be read for another reason, such as too many open files.
        """
        try:
            return _job_of(json.loads(text_of(self.path(id_) / "job.json")), id_)
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, RecursionError):
            return None

    def _outline(self, id_: str) -> Job | None:
        """Return a job without its columns and what was left of it; only a file that has changed is read again."""

        def read() -> Job | None:
            with contextlib.suppress(OSError):
                job = self._read(id_)
                return None if job is None else replace(job, left=(), columns=())
            return None

        return self._outlines.get(self.path(id_) / "job.json", read)

    def _paths(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if re.fullmatch(r"[0-9a-f]{32}", path.name)]

    def _all(self) -> Iterator[Job]:
        for path in self._paths():
            job = self._unstored.get(path.name) or self._outline(path.name)
            if job is not None:
                yield job

    def _clear_away(self) -> None:
        """Delete expired jobs, and folders without a job. The caller holds the lock of the folder."""
        self._store_late()
        paths = self._paths()
        names = {path.name for path in paths}
        self._lives.keep(names)
        self._touches.keep(names)
        self._outlines.keep([path / "job.json" for path in paths])
        for path in paths:
            if path.name in self.under_way:
                continue
            with contextlib.suppress(OSError):  # what cannot be read now is left for the next time
                job = self._unstored.get(path.name) or self._outline(path.name) or self._read(path.name)
                if _is_litter(path, self.now()) if job is None else self._is_expired(job):
                    self.remove(path.name)


def _is_gone(folder: Path) -> bool:
    """Return True if there is no such folder; one that cannot be looked at now is there."""
    try:
        return not stat.S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_litter(path: Path, now: float) -> bool:
    """Return True if a folder without a readable job is too old to become one."""
    # An unreadable file may be repaired; servers of a former version make folders without the lock.
    most_s = LIFETIME_S if (path / "job.json").exists() else LOST_S
    return now - path.stat().st_ctime > most_s


def _job_of(fields: Any, id_: str) -> Job:
    """Return a job with the fields of its file; those of a later version are left out.

    Raises:
        TypeError, ValueError: The file does not hold a job, or that of another folder.
    """
    if not isinstance(fields, dict):
        raise TypeError("the file of a job must hold an object")
    known = {name: value for name, value in fields.items() if name in Job.__dataclass_fields__}
    job = Job(**known)
    texts = (job.id, job.name, job.key, job.pair, job.status, job.error, job.owner)
    numbers = (job.created, job.n_chars, job.found, job.translated)
    if not all(isinstance(text, str) for text in texts) or not all(type(n) in (int, float) for n in numbers):
        raise TypeError("a field of the job has another type")
    if job.id != id_ or not math.isfinite(job.created) or not isinstance(job.options, dict):
        raise ValueError("a field of the job has an impossible value")
    if not all(isinstance(column, str) for column in job.columns) or any(len(pair) != 2 for pair in job.left):
        raise ValueError("a list of the job has another form")
    return job


def room_of(n_bytes: int) -> int:
    """Return the room that a job takes with an upload of ``n_bytes``, in bytes."""
    # Formats that keep source and translation side by side double in size.
    return n_bytes + 2 * n_bytes + 16 * 1024


def _text(job: Job) -> str:
    """Return the file of a job; of texts that are no Unicode, such as parts of a damaged document, what is readable."""
    return readable(json.dumps(asdict(job), ensure_ascii=False))


def _remove_temporary_folders() -> None:
    """Delete the temporary folders of this user's servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):  # BlockingIOError: its server lives
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            # A program that clears old files away may have taken the lock of a server that lives.
            if not (folder / SERVER).is_file() and any(not _is_litter(path, time.time()) for path in folder.iterdir()):
                continue
            lock = acquire(folder / SERVER)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
