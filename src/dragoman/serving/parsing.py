"""Parses what clients upload in worker processes, so that a hostile file or text costs one request, not the server.

Clients take turns by their API keys. One client has all workers but one at most, and short texts have workers of their
own, so nobody's request waits for another one's documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.budget import Budget, ReplacedError, StartError, StoppedError, Values, Workers
from dragoman.documents import markup, opening
from dragoman.documents.document import DocumentInfo
from dragoman.documents.opening import fields_of
from dragoman.errors import DragomanError
from dragoman.serving.pieces import Pieces
from dragoman.serving.refusals import BusyError, OutdatedError, UnfinishedError
from dragoman.translation.assemble import Translation

logger = logging.getLogger("dragoman.serving")

UPLOAD = Budget(memory=1 << 30, cpu_s=15, wall_s=300.0, result=1 << 27)
"""Limits of reading an uploaded document."""

WRITING = Budget(memory=2 << 30, cpu_s=300, wall_s=1500.0, result=1 << 28)
"""Limits of writing the translation of a document, which was read within ``UPLOAD`` when it was accepted.

It is read twice more, and each segment is aligned with its translation: measured, 4 to 14 times the processor time and
up to 4 times the memory of reading. The translation may have taken hours, so these limits leave room.
"""

TEXT = Budget(memory=512 << 20, cpu_s=4, wall_s=60.0, result=1 << 26, advice="send it in parts")
"""Limits of parsing the texts with tags of one request, and of writing their translations."""

COUNT = 3
"""Number of workers for texts, and of workers for documents; an idle one has some 25 MiB."""

NICENESS = {"texts": 5, "documents": 10}
"""How much the workers yield to the search threads."""

SHORT_S = 0.1
"""Seconds after which the parsing of a text yields: an ordinary one takes a few milliseconds, and would wait longer."""

MOST_WAITING = 64
"""Largest number of parsings that wait for a worker, of one client."""

AGAIN_AFTER_S = 2.0
"""Advice to a client that has too many parsings waiting."""

TRIED_S = 2.0
"""Longest time in seconds for which ``problems`` waits for a worker."""

UPLOADED = "the document"
"""Name of an upload in messages of the workers, which the log may get: the name of its file is the client's."""

PRELOAD = opening.__name__
TEXTS = Workers(COUNT, preload=PRELOAD, niceness=NICENESS["texts"], short_s=SHORT_S, tell=logger.error)
DOCUMENTS = Workers(COUNT, preload=PRELOAD, niceness=NICENESS["documents"], tell=logger.error)


async def warm() -> None:
    """Start a worker for texts, so that the first request does not wait for it.

    Raises:
        DataError: The system lets no process start.
    """
    await _tried(TEXTS)


async def _tried(workers: Workers) -> None:
    await asyncio.wrap_future(workers.submit(TEXT, "", opening.tagged_texts, sources=[""], kind="html", elements={}))


async def problems() -> list[str]:
    """Return why no worker can be started now, in sentences for the operator.

    A start that failed is tried again: a server that is not ready may get no more requests that would do it.
    """
    for workers in (TEXTS, DOCUMENTS):
        if workers.problem and not workers.n_waiting(""):
            with contextlib.suppress(DragomanError, RuntimeError, TimeoutError):  # told already
                await asyncio.wait_for(_tried(workers), TRIED_S)
    return sorted({workers.problem for workers in (TEXTS, DOCUMENTS)} - {""})


async def survey(data: bytes, info: DocumentInfo, owner: str) -> tuple[list[str], int]:
    """Return the first texts of a document, and the number of characters of all its texts.

    Args:
        owner: Name of the client's API key.

    Raises:
        DataError: The document cannot be read, or reading it exceeds its budget.
        BusyError: Too many parsings of this client wait.
    """
    task: dict[str, Any] = {"data": data, "info": fields_of(info)}
    facts = await _parsed(DOCUMENTS, UPLOAD, UPLOADED, opening.survey, owner, **task)
    return facts["sample"], facts["n_chars"]


async def texts(data: bytes, info: DocumentInfo, owner: str) -> list[str]:
    """Return every text of a document to translate, once, in document order; see ``survey``."""
    task: dict[str, Any] = {"data": data, "info": fields_of(info)}
    return list((await _parsed(DOCUMENTS, UPLOAD, UPLOADED, opening.texts, owner, **task))["texts"])


@dataclass(frozen=True)
class Finished:
    """A translated document."""

    content: bytes
    found: int  # segments
    left: list[tuple[str, str]]  # (text, reason) of each untranslated segment


async def finished(data: bytes, info: DocumentInfo, pieces: Pieces, owner: str) -> Finished:
    """Return a document with the translations of its pieces; see ``survey``. The limits are those of ``WRITING``."""
    lang = info.tgt_lang or ""
    task: dict[str, Any] = {"translations": pieces.translated(lang), "untranslated": pieces.untranslated(lang)}
    task |= {"data": data, "info": fields_of(info)}
    result = await _parsed(DOCUMENTS, WRITING, UPLOADED, opening.finished, owner, **task)
    return Finished(result["content"], result["found"], [(text, why) for text, why in result["left"]])


@dataclass(frozen=True)
class Tagged:
    """Texts with tags, and their units: the stretches of text between block tags."""

    sources: Sequence[str]
    kind: markup.Kind
    elements: Mapping[str, Sequence[str]]
    units: Sequence[Sequence[str]]  # of each text
    has_tags: bool  # inside a unit
    owner: str

    @property
    def plain(self) -> list[str]:
        """Each text without its tags, to detect its language."""
        return [" ".join(own) for own in self.units]

    async def written(self, translations: Mapping[str, Translation], languages: tuple[str, str]) -> list[str]:
        """Return the texts with their units translated.

        Args:
            translations: The translation of each unit.
            languages: Source and target.

        Raises:
            DataError: Writing them exceeds its budget.
            BusyError: Too many parsings of this client wait.
        """
        lines = [[text, line.text, line.alignment] for text, line in translations.items()]
        result = await _parsed(
            TEXTS, TEXT, "the text", opening.tagged_translations, self.owner, sources=list(self.sources),
            kind=self.kind, elements=self.elements, translations=lines, languages=list(languages),
        )  # fmt: skip
        texts: list[str] = result["texts"]
        return texts


async def tagged(sources: Sequence[str], kind: markup.Kind, owner: str, **elements: Sequence[str]) -> Tagged:
    """Return texts with tags, cut into their units; ``elements`` are those of ``markup.parse``.

    Raises:
        DataError: Parsing them exceeds its budget.
        BusyError: Too many parsings of this client wait.
    """
    result = await _parsed(
        TEXTS, TEXT, "the text", opening.tagged_texts, owner, sources=list(sources), kind=kind, elements=elements
    )
    units = iter(result["units"])
    own = [[next(units) for _ in range(n)] for n in result["counts"]]
    return Tagged(sources, kind, elements, own, result["tagged"], owner)


async def _parsed(
    workers: Workers, budget: Budget, name: str, function: Callable[..., Values], owner: str, **arguments: Any
) -> dict[str, Any]:  # fmt: skip
    if workers.n_waiting(owner) >= MOST_WAITING:
        raise BusyError(AGAIN_AFTER_S)
    try:
        return await asyncio.wrap_future(workers.submit(budget, name, function, owner=owner, **arguments))
    except StartError as error:
        raise (OutdatedError() if isinstance(error, ReplacedError) else BusyError(AGAIN_AFTER_S)) from None
    except StoppedError as error:
        logger.error("%s", error)
        raise UnfinishedError from None
