"""Documents that clients upload: translated one after the other in the background, kept a while, in one folder.

A job is a folder with what was uploaded, its translation and ``job.json``, so that any process that has the same folder
answers for it, and a restart loses none that is done; one that is not is given up. While a job waits or is translated
its file is touched; one whose file is old has lost its server. Texts go through the queue of all requests, some at a
time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import Opened, open_document
from dragoman.errors import DragomanError
from dragoman.files import explained, write_bytes, write_text
from dragoman.serving.pairs import Pair
from dragoman.serving.refusals import BusyError, MalformedError, UnknownError
from dragoman.serving.service import Service
from dragoman.translation.assemble import Translation
from dragoman.translation.options import TranslateOptions

logger = logging.getLogger("dragoman.serving")

KEPT_S = 3600.0
"""How long a document is kept after its upload."""

LOST_S = 60.0
"""A job that nobody has touched for so long has no server any more."""

STOPPED = "the server has stopped: upload the document again"

TOUCHED_EVERY_S = 10.0

MOST_JOBS = 200
"""Kept at a time; a further one waits for the oldest to expire."""

MOST_WAITING = 32
"""Not done yet, of one process."""

AT_ONCE = 2
"""Translated at a time, of one process; their sentences share turns with those of all requests."""

WINDOW = 64
"""Texts of a document in the queue at a time, so that a long one does not fill it."""


@dataclass(frozen=True)
class Job:
    """A document and what became of it."""

    id: str
    name: str  # of the file, as it was uploaded; no path
    key: str  # SHA-256 of the secret that its owner has
    pair: str
    created: float  # seconds since 1970
    columns: Sequence[str] = ()  # of a table: which are translated
    status: str = "queued"  # translating, done, error
    n_chars: int = 0
    error: str = ""
    found: int = 0  # segments
    translated: int = 0
    left: Sequence[tuple[str, str]] = ()  # text, why


class Documents:
    """The documents of one server."""

    def __init__(self, service: Service, folder: Path | None) -> None:
        """Take a folder; None: a temporary one, which goes with the server.

        Raises:
            DragomanError: It cannot be made.
        """
        self._service, self._folder, self._is_temporary = service, folder, folder is None
        if folder is not None:
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._turns: asyncio.Semaphore | None = None  # made in the loop of the server
        self.tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def folder(self) -> Path:
        """Where they lie; a temporary one is made when the first comes."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
        return self._folder

    async def add(
        self, data: bytes, name: str, source: str, target: str, options: TranslateOptions, columns: Sequence[str] = ()
    ) -> tuple[Job, str]:
        """Take a document; it is read now, so that what is wrong with it is said at once, and translated later.

        Args:
            columns: Of a table the columns to translate, by their headings.

        Returns:
            The job, and the secret that its owner shows.

        Raises:
            DataError, UnservedError: It cannot be read, or there is no such pair.
            MalformedError: It has no name.
            BusyError: Too many wait already.
        """
        await asyncio.to_thread(self._clear_away)
        if len(self.tasks) >= MOST_WAITING or len(self._jobs()) >= MOST_JOBS:
            raise BusyError(10.0)
        name = _file_name(name)
        asked = DocumentInfo(name, columns=tuple(columns))
        opened = await asyncio.to_thread(open_document, data, asked)
        pair = self._service.pair(source, target, opened.texts[:100])
        opened = await asyncio.to_thread(
            open_document, data, replace(asked, src_lang=pair.src, tgt_lang=pair.tgt)
        )  # which some formats need
        options = self._service.aligned(pair, options)
        n_chars = sum(map(len, opened.texts))
        secret = uuid.uuid4().hex
        job = Job(uuid.uuid4().hex, name, _sum(secret), pair.name, time.time(), asked.columns, n_chars=n_chars)
        folder = self._path(job.id)
        with explained(folder):
            folder.mkdir()
        await asyncio.to_thread(write_bytes, folder / "source", data)
        self._keep(job)
        task = asyncio.create_task(self._translate(job, pair, options))
        self.tasks[job.id] = task
        task.add_done_callback(lambda _: self.tasks.pop(job.id, None))
        return job, secret

    def get(self, id_: str, secret: str | None = None) -> Job:
        """A job by its id; its secret too is checked where one is given.

        Raises:
            UnknownError: There is none, or the secret is another.
        """
        job = self._read(id_)
        if job is None or (secret is not None and job.key != _sum(secret)) or time.time() - job.created > KEPT_S:
            raise UnknownError("document not found")
        if job.status in ("queued", "translating") and id_ not in self.tasks:
            with contextlib.suppress(OSError):
                if time.time() - (self._path(id_) / "job.json").stat().st_mtime > LOST_S:
                    return replace(job, status="error", error=STOPPED)
        return job

    async def finished(self, id_: str) -> Job:
        """A job of this process when it is done, or has failed."""
        task = self.tasks.get(id_)
        if task is not None:
            await asyncio.wait({task})
        return self.get(id_)

    def forget(self, id_: str) -> None:
        """Drop a job that nobody waits for any more."""
        task = self.tasks.get(id_)
        if task is not None:
            task.cancel()
        shutil.rmtree(self._path(id_), ignore_errors=True)

    def result(self, job: Job) -> Path:
        """Where the translation of a job that is done lies."""
        return self._path(job.id) / "result"

    async def close(self) -> None:
        """Stop what is under way, which its owners are told by the next process that has the folder."""
        under_way = dict(self.tasks)
        for task in under_way.values():
            task.cancel()
        await asyncio.gather(*under_way.values(), return_exceptions=True)
        for id_ in under_way:
            job = self._read(id_)
            if job is not None and job.status in ("queued", "translating"):
                self._keep(replace(job, status="error", error=STOPPED))
        if self._is_temporary and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _translate(self, job: Job, pair: Pair, options: TranslateOptions) -> None:
        """What is done in the background."""
        self._turns = self._turns or asyncio.Semaphore(AT_ONCE)
        touching = asyncio.create_task(self._touch(job.id))
        try:
            async with self._turns:
                job = self._keep(replace(job, status="translating"))
                data = (self._path(job.id) / "source").read_bytes()
                asked = DocumentInfo(job.name, pair.src, pair.tgt, tuple(job.columns))
                opened = await asyncio.to_thread(open_document, data, asked)
                content, report = await asyncio.to_thread(opened.finish, await self._found(opened, pair, options))
                await asyncio.to_thread(write_bytes, self.result(job), content)
                left = [(each.text[:200], each.why) for each in report.left[:100]]
                self._keep(replace(job, status="done", found=report.found, translated=report.translated, left=left))
        except DragomanError as error:
            self._keep(replace(job, status="error", error=str(error)))
        except Exception:
            logger.exception("a document failed")
            self._keep(replace(job, status="error", error="internal error; the log has its traceback"))
        finally:
            touching.cancel()

    async def _found(self, opened: Opened, pair: Pair, options: TranslateOptions) -> Mapping[str, Translation]:
        """The translations of a document's texts, some at a time; a full queue is waited for."""
        found: dict[str, Translation] = {}
        texts = opened.texts
        for first in range(0, len(texts), WINDOW):
            window = texts[first : first + WINDOW]
            while True:
                try:
                    answers = await self._service.translate(window, pair, options, limited=False)
                    break
                except BusyError as busy:
                    await asyncio.sleep(min(5.0, busy.retry_after_s))
            found |= {text: answer.lines[0] for text, answer in zip(window, answers, strict=True)}
        return found

    async def _touch(self, id_: str) -> None:
        while True:
            await asyncio.sleep(TOUCHED_EVERY_S)
            with contextlib.suppress(OSError):
                (self._path(id_) / "job.json").touch()

    def _keep(self, job: Job) -> Job:
        if self._path(job.id).is_dir():
            write_text(self._path(job.id) / "job.json", json.dumps(asdict(job), ensure_ascii=False))
        return job

    def _read(self, id_: str) -> Job | None:
        try:
            return Job(**json.loads((self._path(id_) / "job.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _jobs(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if re.fullmatch(r"[0-9a-f]{32}", path.name)]

    def _clear_away(self) -> None:
        """Delete what has expired."""
        for path in self._jobs():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > 2 * KEPT_S or (
                    (job := self._read(path.name)) is not None and time.time() - job.created > KEPT_S
                ):
                    shutil.rmtree(path, ignore_errors=True)

    def _path(self, id_: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{32}", id_):  # what a client sends never becomes a path
            raise UnknownError("document not found")
        return self.folder / id_


def state_of_job(job: Job) -> dict[str, Any]:
    """What a client is told of a job."""
    return {
        "segments": {
            "found": job.found, "translated": job.translated,
            "left": [{"text": text, "why": why} for text, why in job.left],
        }
    }  # fmt: skip


def _sum(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _file_name(name: str) -> str:
    """The last part of a name, without what no name has."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(character for character in last if character.isprintable())[-100:]
    if not kept.strip(". "):
        raise MalformedError("the document has no file name, so its format is not known")
    return kept
