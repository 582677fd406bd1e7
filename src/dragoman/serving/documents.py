"""Documents that clients upload: translated in the background and kept for an hour, in one folder.

A job is a folder with the upload, its translation and ``job.json``. Any process with the same folder can answer for it,
and finished jobs survive a restart; unfinished ones fail. A server touches ``job.json`` while the job is unfinished, so
an old file means that its server has died. Texts go through the common queue, a window at a time.
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
from dragoman.documents.translate import Opened
from dragoman.errors import DragomanError
from dragoman.files import explained, write_bytes, write_text
from dragoman.serving import parsing
from dragoman.serving.pairs import Pair
from dragoman.serving.refusals import BusyError, MalformedError, UnknownError
from dragoman.serving.service import Service
from dragoman.translation.assemble import Translation
from dragoman.translation.options import TranslateOptions

logger = logging.getLogger("dragoman.serving")

LIFETIME_S = 3600.0
"""Lifetime of a document after its upload, in seconds."""

LOST_S = 60.0
"""Age of ``job.json``, in seconds, from which an unfinished job counts as lost with its server."""

STOPPED = "the server has stopped: upload the document again"

TOUCHED_EVERY_S = 10.0

MOST_JOBS = 200
"""Largest number of stored jobs; uploads beyond it are refused until the oldest expires."""

MOST_WAITING = 32
"""Largest number of unfinished jobs of one process."""

AT_ONCE = 2
"""Number of documents that one process translates at a time."""

WINDOW = 64
"""Number of texts of a document in the queue at a time, so that a long one does not fill it."""


@dataclass(frozen=True)
class Job:
    """State of a document, as ``job.json`` stores it."""

    id: str
    name: str  # of the uploaded file, without folders
    key: str  # SHA-256 of the secret that its owner got
    pair: str
    created: float  # seconds since 1970
    columns: Sequence[str] = ()  # headings of the columns to translate, in a table
    status: str = "queued"  # translating, done, error
    n_chars: int = 0
    error: str = ""
    found: int = 0  # segments
    translated: int = 0
    left: Sequence[tuple[str, str]] = ()  # untranslated: (text, reason)


class Documents:
    """Uploaded documents of one server."""

    def __init__(self, service: Service, folder: Path | None) -> None:
        """Store documents in ``folder``; None: in a temporary one, deleted with the server.

        Raises:
            DragomanError: The folder cannot be made.
        """
        self._service, self._folder, self._is_temporary = service, folder, folder is None
        if folder is not None:
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
        self._turns: asyncio.Semaphore | None = None  # made in the event loop of the server
        self.tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def folder(self) -> Path:
        """Folder of all jobs; a temporary one is made at first use."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
        return self._folder

    async def add(self, data: bytes, info: DocumentInfo, options: TranslateOptions, owner: str) -> tuple[Job, str]:
        """Read a document, so that its errors are reported at once, and translate it in the background.

        Args:
            info: Languages as the client named them; the source may be empty or "auto".
            owner: Name of the client's API key.

        Returns:
            The job, and the secret that its owner must show.

        Raises:
            DataError, UnservedError: The document cannot be read, or the pair is not served.
            MalformedError: The document has no name.
            BusyError: Too many documents wait or are stored.
        """
        await asyncio.to_thread(self._clear_away)
        if len(self.tasks) >= MOST_WAITING or len(self._jobs()) >= MOST_JOBS:
            raise BusyError(10.0)
        unknown, sample = DocumentInfo(_file_name(info.name), columns=info.columns), list[str]()
        # Opened twice if the language must be detected in its texts, since some formats are read by their language.
        if (info.src_lang or "auto").lower() == "auto":
            sample, _ = await parsing.survey(data, unknown, owner)
        pair = self._service.pair(info.src_lang or "", info.tgt_lang, sample)
        info = replace(unknown, src_lang=pair.src, tgt_lang=pair.tgt)
        _, n_chars = await parsing.survey(data, info, owner)
        options = self._service.aligned(pair, options)
        secret = uuid.uuid4().hex
        job = Job(uuid.uuid4().hex, info.name, _hash(secret), pair.name, time.time(), info.columns, n_chars=n_chars)
        folder = self._path(job.id)
        with explained(folder):
            folder.mkdir()
        await asyncio.to_thread(write_bytes, folder / "source", data)
        self._keep(job)
        task = asyncio.create_task(self._translate(job, pair, options, owner))
        self.tasks[job.id] = task
        task.add_done_callback(lambda _: self.tasks.pop(job.id, None))
        return job, secret

    def get(self, id_: str, secret: str | None = None) -> Job:
        """Return a job by its id, and check ``secret`` if one is given.

        Raises:
            UnknownError: There is no such job, or the secret is wrong.
        """
        job = self._read(id_)
        if job is None or (secret is not None and job.key != _hash(secret)) or time.time() - job.created > LIFETIME_S:
            raise UnknownError("document not found")
        if job.status in ("queued", "translating") and id_ not in self.tasks:
            with contextlib.suppress(OSError):
                if time.time() - (self._path(id_) / "job.json").stat().st_mtime > LOST_S:
                    return replace(job, status="error", error=STOPPED)
        return job

    async def finished(self, id_: str) -> Job:
        """Wait until a job of this process is done or has failed, and return it."""
        task = self.tasks.get(id_)
        if task is not None:
            await asyncio.wait({task})
        return self.get(id_)

    def forget(self, id_: str) -> None:
        """Cancel a job and delete its folder."""
        task = self.tasks.get(id_)
        if task is not None:
            task.cancel()
        shutil.rmtree(self._path(id_), ignore_errors=True)

    def result(self, job: Job) -> Path:
        """Return the path of a finished job's translation."""
        return self._path(job.id) / "result"

    async def close(self) -> None:
        """Stop unfinished jobs and mark them as failed, so that the next server with this folder reports it."""
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

    async def _translate(self, job: Job, pair: Pair, options: TranslateOptions, owner: str) -> None:
        """Translate a document in the background; its outcome, also a failure, goes to ``job.json``."""
        self._turns = self._turns or asyncio.Semaphore(AT_ONCE)
        touching = asyncio.create_task(self._touch(job.id))
        try:
            async with self._turns:
                job = self._keep(replace(job, status="translating"))
                data = (self._path(job.id) / "source").read_bytes()
                info = DocumentInfo(job.name, pair.src, pair.tgt, tuple(job.columns))
                opened = await parsing.opened(data, info, owner)
                translations = await self._translations(opened, pair, options)
                content, report = await parsing.finished(opened, translations, owner)
                await asyncio.to_thread(write_bytes, self.result(job), content)
                left = [(segment.text[:200], segment.why) for segment in report.left[:100]]
                self._keep(replace(job, status="done", found=report.found, translated=report.translated, left=left))
        except DragomanError as error:
            self._keep(replace(job, status="error", error=str(error)))
        except Exception:
            logger.exception("a document failed")
            self._keep(replace(job, status="error", error="internal error; the log has its traceback"))
        finally:
            touching.cancel()

    async def _translations(self, opened: Opened, pair: Pair, options: TranslateOptions) -> Mapping[str, Translation]:
        """Translate a document's texts, a window at a time; while the queue is full, wait and try again."""
        translations: dict[str, Translation] = {}
        texts = opened.texts
        for first in range(0, len(texts), WINDOW):
            window = texts[first : first + WINDOW]
            while True:
                try:
                    answers = await self._service.translate(window, pair, options, limited=False)
                    break
                except BusyError as busy:
                    await asyncio.sleep(min(5.0, busy.retry_after_s))
            translations |= {text: answer.lines[0] for text, answer in zip(window, answers, strict=True)}
        return translations

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
        """Delete expired jobs, and folders without a readable job once they are twice as old."""
        for path in self._jobs():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_ctime > 2 * LIFETIME_S or (
                    (job := self._read(path.name)) is not None and time.time() - job.created > LIFETIME_S
                ):
                    shutil.rmtree(path, ignore_errors=True)

    def _path(self, id_: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{32}", id_):  # no other text of a client becomes a path
            raise UnknownError("document not found")
        return self.folder / id_


def state_of_job(job: Job) -> dict[str, Any]:
    """Return the counts of a job as JSON for its client, with the segments that were not translated."""
    return {
        "segments": {
            "found": job.found, "translated": job.translated,
            "left": [{"text": text, "why": why} for text, why in job.left],
        }
    }  # fmt: skip


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _file_name(name: str) -> str:
    """Return the last part of a path, at most 100 characters, without unprintable ones."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(character for character in last if character.isprintable())[-100:]
    if not printable.strip(". "):
        raise MalformedError("the document has no file name, so its format is not known: send it with its name")
    return printable
