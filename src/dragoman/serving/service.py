"""What all APIs share: texts to sentences, sentences through the batcher, and back to texts of the same lines."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from dragoman.errors import ConfigError
from dragoman.serving.batcher import Batcher, Ticket
from dragoman.serving.limits import Limits
from dragoman.serving.pairs import Pair, Pairs, match
from dragoman.serving.refusals import UnservedError
from dragoman.translation.assemble import Translation, assemble
from dragoman.translation.notes import Events, Note
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, segment

OF_THE_SERVER = ("engine", "precision", "fast", "batch_tokens", "workers", "shortlist", "deterministic")
"""Options that the operator chooses for all; a request does not."""

OF_THE_PAIR = ("to", "from_lang")
"""Options that the languages of a request say."""

SHORT = 1000
"""Characters in a request up to which reading and joining them takes about a millisecond."""

T = TypeVar("T")

KEPT_PLANS = 64
"""Plans kept for the next request with the same options."""

_LINE_END = re.compile(r"(\r?\n)")


@dataclass(frozen=True)
class Answer:
    """What became of a text."""

    text: str
    lines: tuple[Translation, ...]  # of each of its lines
    notes: tuple[Note, ...]  # of all of them

    @property
    def confidence(self) -> float | None:
        """That of its least sure line; None: not known."""
        known = [line.confidence for line in self.lines if line.n_tokens and line.confidence is not None]
        return min(known, default=None)


class Service:
    """Translates the texts of requests; one for each server."""

    def __init__(self, pairs: Pairs, batcher: Batcher, limits: Limits, defaults: TranslateOptions) -> None:
        """``defaults``: the operator's options, such as the engine."""
        self.pairs, self.batcher, self.limits, self.defaults = pairs, batcher, limits, defaults
        self._plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()
        self._planning = threading.Lock()
        self.ready = False

    def warm(self) -> None:
        """Load every engine and translate a word with it; only then is the server ready."""
        for pair in self.pairs:
            plan = self.plan(pair, self.defaults)
            segments = segment(["1"], plan, Events())
            ticket = Ticket(plan, segments)
            self.batcher.submit(ticket)
            ticket.found.result()
        self.ready = True

    def pair(self, source: str, target: str | None, texts: Sequence[str]) -> Pair:
        """The pair that a request means; ``auto`` (or nothing) as its source is detected in its texts.

        Raises:
            UnservedError: There is none, or it must be named.
        """
        if not source or source.lower() == "auto":
            source = self.pairs.detect(" ".join(texts)[:5000], target).code
        if not target:
            targets = self.pairs.targets_of(match(source, self.pairs.sources) or source)
            if len(targets) > 1:
                raise UnservedError(f"target is missing: from {source} there is {', '.join(targets)}")
            target = targets[0] if targets else ""
        return self.pairs.find(source, target)

    def options(self, **asked: Any) -> TranslateOptions:
        """The operator's options with those of a request.

        Raises:
            ConfigError: One is unknown, the operator's, impossible, or beyond the limits.
        """
        for name in asked:
            if name in OF_THE_SERVER:
                raise ConfigError(f"{name} is set for the whole server: leave it out")
            if name in OF_THE_PAIR:
                raise ConfigError(f"{name} is said by source and target: leave it out")
        # a request that samples does not search, so the operator's settings of the search are not for it
        unused = {"beam_size": None, "patience": None} if asked.get("sample") else {}
        options = TranslateOptions.of(self.defaults, {**unused, **asked})
        self.limits.check_options(options)
        return options

    def beam_size(self, pair: Pair) -> int:
        """Return the beam size of a request that does not set one."""
        return self.defaults.beam_size or pair.translator.config.decode.beam_size

    def plan(self, pair: Pair, options: TranslateOptions) -> Plan:
        """The plan of a request; those of equal options are one, so that their sentences can be searched together.

        Raises:
            ConfigError: The model or the engine cannot do what is asked.
        """
        if pair.to is not None:
            options = replace(options, to=pair.to, from_lang=pair.src)
        key = pair.name, repr(options)
        with self._planning:
            plan = self._plans.pop(key, None)
            if plan is None:
                plan = pair.translator.plan(options)
            self._plans[key] = plan
            while len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        return plan

    def aligned(self, pair: Pair, options: TranslateOptions) -> TranslateOptions:
        """``options`` with word alignments, where the engine has them; else tags are placed by position."""
        wanted = replace(options, alignments=True)
        try:
            self.plan(pair, wanted)
        except ConfigError:
            return options
        return wanted

    async def translate(
        self, texts: Sequence[str], pair: Pair, options: TranslateOptions, *, limited: bool = True
    ) -> list[Answer]:
        """Translate texts, each with its own line ends again.

        If this is cancelled, its sentences leave the queue, and those being searched for stop at the next step.

        Args:
            limited: Their number of sentences is; not that of a document, whose bytes are.

        Raises:
            BusyError: The queue is full.
            ConfigError: See ``plan``.
            TooMuchError: They have too many sentences.
        """
        work = await _aside(texts, self._prepare, texts, pair, options, limited)
        ticket = Ticket(work.plan, work.segments)
        with self._queued(ticket):
            results = await asyncio.wrap_future(ticket.found)
        return await _aside(texts if not options.alignments else None, work.finish, results)

    async def stream(
        self, texts: Sequence[str], pair: Pair, options: TranslateOptions
    ) -> AsyncIterator[tuple[int, str] | list[Answer] | None]:
        """None once they are in the queue; sentence by sentence, in order, (text number, its translation); all answers.

        Raises:
            BusyError, ConfigError, TooMuchError: As ``translate``; instead of None.
        """
        work = await asyncio.to_thread(self._prepare, texts, pair, options, True)
        loop, news = asyncio.get_running_loop(), asyncio.Queue[tuple[int, SegmentResult] | None]()
        ticket = Ticket(
            work.plan, work.segments,
            lambda i, result: loop.call_soon_threadsafe(news.put_nowait, (i, result)),
        )  # fmt: skip
        early: dict[int, SegmentResult] = {}
        with self._queued(ticket):
            yield None
            found = asyncio.wrap_future(ticket.found)
            found.add_done_callback(lambda _: news.put_nowait(None))  # an end, also where there is no more news
            for number, each in enumerate(work.segments):
                while number not in early and (new := await news.get()) is not None:
                    early[new[0]] = new[1]
                if number not in early:
                    break
                said = early.pop(number).texts
                yield work.text_of_line[each.owner], said[0] if said else ""
            results = await found
        yield await asyncio.to_thread(work.finish, results)

    @contextlib.contextmanager
    def _queued(self, ticket: Ticket) -> Iterator[None]:
        """In the queue while this is open; whatever is not done then is dropped."""
        self.batcher.submit(ticket)
        try:
            yield
        finally:
            if not ticket.found.done() or ticket.found.cancelled():
                self.batcher.forget(ticket)

    def _prepare(self, texts: Sequence[str], pair: Pair, options: TranslateOptions, limited: bool) -> _Work:
        plan = self.plan(pair, options)
        pieces = [_LINE_END.split(text) for text in texts]
        lines = [line for parts in pieces for line in parts[::2]]
        text_of_line = [number for number, parts in enumerate(pieces) for _ in parts[::2]]
        segments = segment(lines, plan, Events())
        if limited:
            self.limits.check_sentences(len(segments))
        return _Work(plan, pieces, lines, text_of_line, segments)


async def _aside(texts: Sequence[str] | None, work: Callable[..., T], *arguments: Any) -> T:
    """Do some work: here where the texts are short, for a thread of its own would wait longer than that takes."""
    if texts is not None and sum(map(len, texts)) <= SHORT:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


@dataclass(frozen=True)
class _Work:
    """A request between its sentences and their translations."""

    plan: Plan
    pieces: list[list[str]]  # of each text: line, line end, line, ...
    lines: list[str]
    text_of_line: list[int]
    segments: list[TextSegment]

    def finish(self, results: Sequence[SegmentResult]) -> list[Answer]:
        """The answer for each text."""
        translations = iter(assemble(self.lines, self.segments, results, self.plan))
        answers = []
        for parts in self.pieces:
            own = [next(translations) for _ in parts[::2]]
            ends = [*parts[1::2], ""]
            text = "".join(line.text + end for line, end in zip(own, ends, strict=True))
            notes = tuple(
                replace(note, where=f"line {number}") if len(own) > 1 else note
                for number, line in enumerate(own, 1)
                for note in line.notes
            )
            answers.append(Answer(text, tuple(own), notes))
        return answers


def request_options() -> list[Any]:
    """The declared options that a request may give: their dataclass fields."""
    return [each for each in fields(TranslateOptions) if each.name not in (*OF_THE_SERVER, *OF_THE_PAIR)]
