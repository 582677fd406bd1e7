"""Documents that clients upload: translated in the background, then kept for an hour, in one folder.

Any process with the same folder can answer for a job, and finished jobs survive a restart; unfinished ones fail. Texts
go through the common queue, a window at a time, and lie on disk meanwhile (``pieces``). What a job is on disk stands in
``jobs``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from dragoman.documents.document import DocumentInfo, DocumentOptions
from dragoman.errors import DragomanError
from dragoman.serving import parsing
from dragoman.serving.jobs import FULL, STOPPED, UPGRADED, Job, Jobs
from dragoman.serving.limits import Shares
from dragoman.serving.pairs import Pair
from dragoman.serving.pieces import Pieces, room_of_pieces
from dragoman.serving.refusals import (
    BusyError,
    FullError,
    MalformedError,
    OutdatedError,
    UnfinishedError,
    UnknownError,
)
from dragoman.serving.service import Service
from dragoman.serving.turns import Turn, Turns
from dragoman.translation.options import TranslateOptions
from dragoman.translation.quality import of_counts

logger = logging.getLogger("dragoman.serving")

T = TypeVar("T")

TOUCHED_EVERY_S = 10.0

MOST_WAITING = 32
"""Largest number of unfinished jobs of one process, of all keys together."""

MOST_FAILURES = 3
"""Largest number of batches of a document that may be given up, as by a search that hangs, and are searched again."""

AT_ONCE = 2
"""Number of documents that one process translates at a time; those of several keys take turns as they go on.

Where there are several keys, one has all turns but one at most: it may hold a turn for minutes while it waits for its
own other documents to be parsed.
"""


class Documents:
    """Uploaded documents of one server."""

    def __init__(
        self, service: Service, folder: Path | None, shares: Shares, translated: Callable[[str, int, str], object]
    ) -> None:
        """Store documents in ``folder``; None: in a temporary one, deleted with the server.

        Args:
            translated: Called for each document that was translated, with its pair, number of characters and owner.

        Raises:
            DragomanError: The folder cannot be made.
        """
        self._translated = translated
        self._service, self._shares, self.jobs = service, shares, Jobs(folder)
        self._turns = Turns(AT_ONCE, AT_ONCE - 1 if len(shares.names) > 1 else None)
        self._unfinished: Counter[str] = Counter()  # by owner, uploads that are being read among them
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def refuse_if_full(self, owner: str) -> None:
        """Check that a key may have one more document.

        Raises:
            BusyError: Too many documents of this key wait.
        """
        if not self._shares.has_room(MOST_WAITING, self._unfinished, owner):
            raise BusyError(10.0)

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
            BusyError: Too many documents of this key wait or are stored.
            FullError, UnstorableError: The disk has no room for the document and its translation.
        """
        # Taken before the first await: of many uploads at once none may pass the check before another is counted.
        self.refuse_if_full(owner)
        secret, name = uuid.uuid4().hex, _file_name(info.name)
        unread = Job(
            uuid.uuid4().hex, name, _hash(secret), "", time.time(), info.columns, asdict(info.options), owner=owner
        )  # fmt: skip
        self._unfinished[owner] += 1
        self.jobs.under_way.add(unread.id)
        try:
            job, pair, options = await self._stored(unread, data, info, options)
        except BaseException:
            self._unfinished -= Counter([owner])
            self.jobs.under_way.discard(unread.id)
            raise
        task = asyncio.create_task(self._translate(job, pair, options))
        self.tasks[job.id] = task
        task.add_done_callback(lambda _: self._leave(job))
        return job, secret

    def _leave(self, job: Job) -> None:
        self.tasks.pop(job.id, None)
        self.jobs.under_way.discard(job.id)
        self._unfinished -= Counter([job.owner])  # leaves out those that have none

    async def _stored(
        self, job: Job, data: bytes, info: DocumentInfo, options: TranslateOptions
    ) -> tuple[Job, Pair, TranslateOptions]:
        """Store an upload with the room for its translation, read it, and plan its translation.

        Nothing of the upload is left if that fails.
        """
        try:
            await self.jobs.disk.change(job.owner, self.jobs.create, job, data, self._shares)
            with self._touched(job):
                unknown, sample = replace(info, name=job.name, src_lang=None, tgt_lang=None), list[str]()
                # Opened twice if the language must be detected in its texts: some formats are read by their language.
                if (info.src_lang or "auto").lower() == "auto":
                    sample, _ = await parsing.survey(data, unknown, job.owner)
                pair = self._service.pair(info.src_lang or "", info.tgt_lang, sample)
                info = replace(unknown, src_lang=pair.src, tgt_lang=pair.tgt)
                _, n_chars = await parsing.survey(data, info, job.owner)
                job = replace(job, pair=pair.name, n_chars=n_chars)
                options = await self._service.aligned(pair, options, job.owner)
                await self.jobs.disk.run(job.owner, self.jobs.reserve_pieces, job, room_of_pieces(n_chars))
                await self.jobs.disk.run(job.owner, self.jobs.keep, job)
        except BaseException:
            await asyncio.shield(self.jobs.disk.run(job.owner, self.jobs.remove, job.id))
            raise
        return job, pair, options

    async def get(self, id_: str, secret: str | None = None, owner: str | None = None) -> Job:
        """Return a job by its id, and check ``secret`` and ``owner`` if they are given.

        Raises:
            UnknownError: There is no such job, the secret is wrong, or the job belongs to another API key.
            UnstorableError: Its file cannot be read now.
        """
        job, is_lost = await self.jobs.disk.run(owner or "", self._looked_up, id_)
        if job is None or (secret is not None and job.key != _hash(secret)):
            raise UnknownError("document not found")
        # A server without keys stored it: who has the secret is the owner.
        if owner is not None and job.owner not in ("", owner):
            raise UnknownError("document not found")
        return replace(job, status="error", error=STOPPED) if is_lost else job

    def _looked_up(self, id_: str) -> tuple[Job | None, bool]:
        """Return a job by its id, and whether its server has died."""
        job = self.jobs.read(id_)
        return job, job is not None and self.jobs.is_lost(job)

    async def finished(self, id_: str) -> Job:
        """Wait until a job of this process is done or has failed, and return it."""
        task = self.tasks.get(id_)
        if task is not None:
            await asyncio.wait({task})
        return await self.get(id_)

    async def forget(self, job: Job) -> None:
        """Cancel a job, and delete its folder once nothing writes there."""
        task = self.tasks.get(job.id)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        await self.jobs.disk.run(job.owner, self.jobs.remove, job.id)

    async def forget_added(self, added: tuple[Job, str]) -> None:
        """Forget what ``add`` returned for a client that has left."""
        await self.forget(added[0])

    async def close(self) -> None:
        """Stop unfinished jobs and mark them as failed, so that the next server with this folder reports it."""
        under_way = dict(self.tasks)
        for task in under_way.values():
            task.cancel()
        await asyncio.gather(*under_way.values(), return_exceptions=True)
        await self.jobs.disk.run("", self._mark_stopped, under_way)
        self.jobs.close()

    def _mark_stopped(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            with contextlib.suppress(DragomanError):  # it is lost then, which others see by its age
                job = self.jobs.read(id_)
                if job is not None and not job.has_ended:
                    self.jobs.end(replace(job, status="error", error=STOPPED))

    async def _translate(self, job: Job, pair: Pair, options: TranslateOptions) -> None:
        """Translate a document in the background; its outcome, also a failure, goes to ``job.json``."""
        with self._touched(job):
            try:
                async with self._turns.of(job.owner) as turn:
                    job = replace(job, status="translating")
                    with contextlib.suppress(DragomanError):  # the work does not depend on it
                        await self.jobs.disk.run(job.owner, self.jobs.keep, job)
                    formats = DocumentOptions(**job.options)
                    info = DocumentInfo(job.name, pair.src, pair.tgt, tuple(job.columns), formats)
                    pieces = await self._begun(job, info)
                    await self._translate_pieces(pieces, pair, options, turn)
                    job = await self._finished(job, info, pieces)
                    self._translated(job.pair, job.n_chars, job.owner)
            except FullError:
                job = replace(job, status="error", error=FULL)
            except OutdatedError:
                job = replace(job, status="error", error=UPGRADED)
            except DragomanError as error:
                job = replace(job, status="error", error=str(error))
            except Exception:
                logger.exception("a document failed")
                job = replace(job, status="error", error="internal error; the log has its traceback")
            ending = asyncio.ensure_future(self.jobs.disk.run(job.owner, self.jobs.end, job))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending  # whoever cancels this looks at the job next
                raise

    async def _begun(self, job: Job, info: DocumentInfo) -> Pieces:
        """Read the texts of a document, and return their pieces; neither stays in memory while others have turns."""
        data = await self.jobs.disk.run(job.owner, self.jobs.source, job)
        texts = await _patiently(lambda: parsing.texts(data, info, job.owner))
        path, most = self.jobs.pieces(job), self._service.limits.chars
        return await self.jobs.disk.run(job.owner, Pieces.of, texts, path, most, info.src_lang or "")

    async def _translate_pieces(self, pieces: Pieces, pair: Pair, options: TranslateOptions, turn: Turn) -> None:
        """Translate the pieces of a document, a window at a time."""
        disk, failures = self.jobs.disk, 0
        window = await disk.run(turn.owner, pieces.window)
        while window:
            try:
                answers = await self._service.translate_document(window, pair, options, turn.owner, pause=turn.renew)
            except UnfinishedError:  # the window is searched again: what was translated before it is not lost
                failures += 1
                if failures > MOST_FAILURES:
                    raise
                continue
            await disk.run(turn.owner, pieces.add, [answer.lines[0] for answer in answers])
            window = await disk.run(turn.owner, pieces.window)

    async def _finished(self, job: Job, info: DocumentInfo, pieces: Pieces) -> Job:
        """Write the translation of a document; return its job as it is then."""
        data = await self.jobs.disk.run(job.owner, self.jobs.source, job)
        written = await _patiently(lambda: parsing.finished(data, info, pieces, job.owner))
        left = [(text[:200], why) for text, why in written.left[:100]]
        quality = of_counts(await self.jobs.disk.run(job.owner, pieces.qualities))
        await self.jobs.disk.run(job.owner, self.jobs.fill, job, written.content)  # deletes the pieces
        n_done = written.found - len(written.left)
        return replace(job, status="done", found=written.found, translated=n_done, left=left, quality=quality)

    @contextlib.contextmanager
    def _touched(self, job: Job) -> Iterator[None]:
        """Show other processes, while the body runs, that the server of this job is alive."""
        touching = asyncio.create_task(self._touch(job.id))
        try:
            yield
        finally:
            touching.cancel()

    async def _touch(self, id_: str) -> None:
        touched = None
        while True:
            await asyncio.sleep(TOUCHED_EVERY_S)
            if touched is None or touched.done():  # a disk may hang
                touched = self.jobs.disk.begin(self.jobs.touch, id_)  # whatever else its key wants to have done


async def _patiently(parsed: Callable[[], Awaitable[T]]) -> T:
    """Return what a parsing returns; while no process can be started for it, or it is stopped, wait and try again."""
    while True:
        try:
            return await parsed()
        except BusyError as busy:
            await asyncio.sleep(busy.retry_after_s)
        except UnfinishedError:
            await asyncio.sleep(parsing.AGAIN_AFTER_S)


def state_of_job(job: Job) -> dict[str, Any]:
    """Return the counts of a job as JSON for its client, with the segments that were not translated."""
    return {
        "segments": {
            "found": job.found, "translated": job.translated,
            "left": [{"text": text, "why": why} for text, why in job.left],
        },
        **({} if job.quality is None else {"quality": job.quality}),
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
