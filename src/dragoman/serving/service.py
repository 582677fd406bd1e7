"""Translation for all APIs: texts to sentences, sentences through the batcher, and back to texts of the same lines."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

from dragoman.arguments import is_listable
from dragoman.decoding.cancellation import Cancellation
from dragoman.errors import ConfigError
from dragoman.languages import detection
from dragoman.languages.codes import match
from dragoman.languages.detection import Detected, is_target
from dragoman.serving.batcher import Batcher
from dragoman.serving.helpers import Helpers
from dragoman.serving.limits import Limits
from dragoman.serving.memory import TextCache, bytes_of_terms
from dragoman.serving.metrics import Metrics
from dragoman.serving.pairs import Pair, Pairs
from dragoman.serving.refusals import BusyError, NoMemoryError, UnservedError
from dragoman.serving.tickets import Ticket
from dragoman.translation.assemble import Translation, assemble
from dragoman.translation.notes import Events, Note
from dragoman.translation.options import TranslateOptions
from dragoman.translation.plan import Plan
from dragoman.translation.quality import Quality, of_text
from dragoman.translation.segments import SegmentResult, TextSegment, segment

OPERATOR_OPTIONS = ("engine", "precision", "fast", "batch_tokens", "threads", "shortlist", "deterministic")
"""Options set by the operator for all requests; no request may set them."""

LANGUAGE_OPTIONS = ("to", "from_lang")
"""Options set from ``source`` and ``target`` of a request."""

SHORT, FEW = 1000, 32
"""Most characters and most texts of a request that is prepared without a thread, which takes some milliseconds."""

FEW_DETECTED = 4
"""Most texts of a request whose languages are detected without a thread: that takes up to 5 ms for each."""

LOADING = "the models are loading"

T = TypeVar("T")

PART = 128
"""Largest number of sentences of a document in the queue at a time, so that a long one does not fill it."""

MOST_PLANS = 64
"""Largest number of plans kept for later requests with the same options."""

MOST_PLAN_BYTES = 32 << 20
"""Largest size of their glossaries together, in bytes: a request may bring one of a megabyte, which takes ten."""

_LINE_END = re.compile(r"(\r?\n)")


@dataclass(frozen=True)
class Part:
    """The part of a request that one language pair translates."""

    others: frozenset[int] = frozenset()  # numbers of the texts that it returns as they are
    waits: bool = False  # it waits while the queue is full, instead of being refused


WHOLE = Part()


@dataclass(frozen=True)
class Answer:
    """Translation of one text of a request."""

    text: str
    lines: tuple[Translation, ...]
    notes: tuple[Note, ...]  # of all lines
    ends: tuple[str, ...] = ("",)  # line end of each line; the last has none

    @property
    def confidence(self) -> float | None:
        """Lowest confidence of its lines, 0 to 1; None if not known."""
        known = [line.confidence for line in self.lines if line.n_tokens and line.confidence is not None]
        return min(known, default=None)

    @property
    def alternatives(self) -> list[str]:
        """Other translations, best first: each has the line of its rank, or the best of a line that has fewer."""
        most = max((len(line.alternatives) for line in self.lines), default=0)
        return [
            "".join(
                (line.alternatives[rank] if rank < len(line.alternatives) else line).text + end
                for line, end in zip(self.lines, self.ends, strict=True)
            )
            for rank in range(most)
        ]

    @property
    def quality(self) -> Quality | None:
        """Quality of the text from that of its lines; None if not known."""
        return of_text(line.quality for line in self.lines)


class Service:
    """Translates the texts of all requests of a server."""

    def __init__(self, pairs: Pairs, batcher: Batcher, limits: Limits, defaults: TranslateOptions) -> None:
        """Serve ``pairs``; ``defaults`` are the operator's options, such as the engine."""
        self.pairs, self.batcher, self.limits, self.defaults = pairs, batcher, limits, defaults
        self.plans: TextCache[Plan] = TextCache(MOST_PLAN_BYTES, MOST_PLANS)
        self._planning = threading.Lock()
        self.helpers = Helpers()
        self.unready: str | None = LOADING
        """Why no request is accepted now; None while they are."""

    @property
    def ready(self) -> bool:
        """True while requests are accepted."""
        return self.unready is None

    def warm(self) -> None:
        """Load what detects languages, every engine by translating a word with it, and all weights; accept requests.

        Raises:
            ConfigError: The package that detects languages is missing.
        """
        detection.load()
        for pair in self.pairs:
            plan = self.plan(pair, self.defaults)
            plan.reader, plan.constrained.engine  # noqa: B018  (now, and not in the first request that needs them)
            segments = segment(["1"], plan, Events())
            ticket = Ticket(plan, segments)
            self.batcher.submit(ticket)
            ticket.results.result()
        if self.unready == LOADING:  # not if the server is shutting down by now
            self.unready = None

    def pair(self, source: str, target: str | None, texts: Sequence[str]) -> Pair:
        """Return the language pair of a request; a source that is ``auto`` or empty is detected from the texts.

        Raises:
            UnservedError: The pair is not served, or the target must be given.
        """
        if is_auto(source):
            source = self.pairs.chosen_source(" ".join(texts), target)
        if not target:
            targets = self.pairs.targets_of(match(source, self.pairs.sources) or source)
            if len(targets) > 1:
                raise UnservedError(f"target is missing: give one of {', '.join(targets)} (source {source})")
            target = targets[0] if targets else ""
        return self.pairs.find(source, target)

    async def directions(self, source: str, target: str | None, texts: Sequence[str], owner: str) -> Directions:
        """Return the language pair of each text of a request; if ``source`` is ``auto`` it follows from the texts.

        Then texts that are surely in the target language stay as they are (``detection.is_target``), one that is surely
        in another source language than all together is translated from that, and short ones from that of all.

        Raises:
            UnservedError: See ``pair``.
        """
        if not is_auto(source):
            pair = self.pair(source, target, texts)
            return Directions(pair, (pair,) * len(texts))
        return await self._off_the_loop(_few(texts), owner, self._directions, source, target, texts)

    def _directions(self, source: str, target: str | None, texts: Sequence[str]) -> Directions:
        unchanged = self._in_target(match(target, self.pairs.targets), texts) if target else frozenset[int]()
        usual = self.pair(source, target, [text for i, text in enumerate(texts) if i not in unchanged] or texts)
        unchanged = unchanged if target else self._in_target(usual.tgt, texts)
        is_one = len(texts) - len(unchanged) <= 1
        pairs = [
            usual if is_one or i in unchanged else self.pairs.own_source(text, usual) for i, text in enumerate(texts)
        ]
        return Directions(usual, tuple(pairs), unchanged)

    def _in_target(self, tgt: str | None, texts: Sequence[str]) -> frozenset[int]:
        """Return the numbers of the texts that are surely in a target language; none if it is not served."""
        sources = self.pairs.sources_of(tgt) if tgt else []
        return frozenset(i for i, text in enumerate(texts) if tgt and is_target(text, sources, tgt) is not None)

    async def detected(self, texts: Sequence[str], directions: Directions, owner: str) -> list[Detected]:
        """Return the language in which each text was read, with its probability."""

        def of(i: int, text: str) -> Detected:
            pair = directions.pairs[i]
            if i in directions.unchanged:
                return self.pairs.detect(text, pair.tgt)
            return self.pairs.probability(text, pair.src, pair.tgt)

        return await self._off_the_loop(_few(texts), owner, lambda: [of(i, text) for i, text in enumerate(texts)])

    def options(self, **changes: Any) -> TranslateOptions:
        """Return the operator's options, changed by those of a request.

        Raises:
            ConfigError: An option is unknown, reserved for the operator, impossible, or beyond the limits.
            TooMuchError: There are too many prefixes.
        """
        for name in changes:
            if name in OPERATOR_OPTIONS:
                raise ConfigError(f"{name} is set for the whole server: leave it out")
            if name in LANGUAGE_OPTIONS:
                raise ConfigError(f"{name} follows from source and target: leave it out")
        prefixes = changes.get("prefix")
        if prefixes is not None and is_listable(prefixes):
            self.limits.check_prefixes(len(prefixes))
        # Sampling uses no beam: the operator's beam settings would make such a request invalid.
        unused = {"beam_size": None, "patience": None} if changes.get("sample") else {}
        options = TranslateOptions.of(self.defaults, {**unused, **changes})
        self.limits.check_options(options)
        return options

    def beam_size(self, pair: Pair) -> int:
        """Return the beam size for requests that set none."""
        return self.defaults.beam_size or min(pair.translator.config.decode.beam_size, self.limits.beam)

    def plan(self, pair: Pair, options: TranslateOptions) -> Plan:
        """Return the plan of a request: the same object for equal options, so that their sentences share batches.

        Raises:
            ConfigError: The model or the engine does not support an option.
        """
        if pair.to is not None:
            options = replace(options, to=pair.to, from_lang=pair.src)
        if options.beam_size is None and not options.sample:
            size = self.beam_size(pair)
            options = options if size == pair.translator.config.decode.beam_size else replace(options, beam_size=size)
        key = pair.name, repr(options)
        if (known := self.plans.get(key)) is not None:
            return known
        made = pair.translator.plan(options)
        n_bytes = sys.getsizeof(key[1]) + bytes_of_terms(key[1], len(made.glossary or ()))
        # The lock is held for a moment only: the plan of a large glossary takes a second, and the event loop plans too.
        with self._planning:
            return self.plans.get(key) or self.plans.put(key, made, n_bytes)

    async def aligned(self, pair: Pair, options: TranslateOptions, owner: str) -> TranslateOptions:
        """Return ``options`` with word alignments if the engine has them; without, tags are placed by position."""
        with_alignments = replace(options, alignments=True)
        try:
            await self._off_the_loop(_short((), options), owner, self.plan, pair, with_alignments)
        except ConfigError:
            return options
        return with_alignments

    async def translate(
        self, texts: Sequence[str], pair: Pair, options: TranslateOptions, owner: str, part: Part = WHOLE
    ) -> list[Answer]:
        """Translate texts; line ends stay as they are.

        Cancelling removes the sentences from the queue, and ends running searches at their next decoding step.

        Args:
            owner: Name of the client's API key, whose turns and share of the queue these texts take.
            part: What of a request with several language pairs is translated here; see ``Directions``.

        Raises:
            BusyError: The queue is full.
            ConfigError: See ``plan``.
            TooMuchError: The texts have too many sentences.
            NoMemoryError: There was no memory for a sentence.
        """
        if not part.waits:
            self.batcher.refuse_if_full(owner)
        short = _short(texts, options)
        work = await self._off_the_loop(short, owner, self.prepare, texts, pair, options, True, part.others)
        results = await self._searched(Ticket(work.plan, work.segments, owner=owner), part.waits)
        _refuse_lost(results)
        return await self._finished(work, results, owner)

    async def translate_document(
        self, texts: Sequence[str], pair: Pair, options: TranslateOptions, owner: str,
        pause: Callable[[], Awaitable[None]],
    ) -> list[Answer]:  # fmt: skip
        """Translate texts of a document, whose size in bytes was limited, and not its number of sentences.

        While the queue is full, it waits and tries again.

        Args:
            pause: Called before each ``PART`` sentences, so that others have their turns.

        Raises:
            ConfigError: See ``translate``.
        """
        work = await self._off_the_loop(
            _short(texts, options), owner, self.prepare, texts, pair, options, False, frozenset[int]()
        )  # fmt: skip
        results: list[SegmentResult] = []
        for first in range(0, len(work.segments), PART):
            await pause()
            results += await self._searched(Ticket(work.plan, work.segments[first : first + PART], owner=owner), True)
        return await self._finished(work, results, owner)

    async def _searched(self, ticket: Ticket, waits: bool) -> list[SegmentResult]:
        """Return the results of a ticket; see ``_queued``."""
        async with self._queued(ticket, waits):
            return await asyncio.wrap_future(ticket.results)

    async def _finished(self, work: _Work, results: Sequence[SegmentResult], owner: str) -> list[Answer]:
        """Return the answers of a request from the results of its sentences."""
        options = work.plan.options
        # Checking words and terms, and reading for alignments, takes long even for a short text.
        is_plain = not (options.alignments or options.constrains or options.glossary or options.n_best > 1)
        try:
            return await self._off_the_loop(work.lines if is_plain else None, owner, work.finish, results)
        except asyncio.CancelledError:
            work.cancellation.cancel()
            raise

    async def _off_the_loop(
        self, texts: Sequence[str] | None, owner: str, work: Callable[..., T], *arguments: Any
    ) -> T:  # fmt: skip
        """Run ``work`` in a thread when the turn of ``owner`` has come, so that it does not block the event loop."""
        # For short texts the hand-over to a thread would take longer than the work.
        if texts is not None and len(texts) <= FEW and sum(map(len, texts)) <= SHORT:
            return work(*arguments)
        return await self.helpers.run(owner, work, *arguments)

    async def stream(
        self,
        texts: Sequence[str],
        pair: Pair,
        options: TranslateOptions,
        owner: str,
        part: Part = WHOLE,
    ) -> AsyncGenerator[tuple[int, str] | list[Answer] | None, None]:
        """Yield None once the texts are queued, then (text number, translation) of each sentence in order, then all.

        Texts that stay unchanged come first.

        Raises:
            BusyError, ConfigError, TooMuchError: See ``translate``; raised before anything is yielded.
        """
        if not part.waits:
            self.batcher.refuse_if_full(owner)
        work = await self.helpers.run(owner, self.prepare, texts, pair, options, True, part.others)
        loop, arrivals = asyncio.get_running_loop(), asyncio.Queue[tuple[int, SegmentResult] | None]()
        # Search threads finish sentences in any order: one that is early is kept until those before it were yielded.
        # ``call_soon_threadsafe`` because an asyncio queue belongs to its event loop.
        ticket = Ticket(
            work.plan, work.segments,
            lambda i, result: loop.call_soon_threadsafe(arrivals.put_nowait, (i, result)), owner=owner,
        )  # fmt: skip
        early: dict[int, SegmentResult] = {}
        async with self._queued(ticket, part.waits):
            yield None
            for number in sorted(part.others):
                yield number, texts[number]
            all_results = asyncio.wrap_future(ticket.results)
            all_results.add_done_callback(partial(_note_end, arrivals))  # so that a failure ends the wait
            for number, source in enumerate(work.segments):
                while number not in early and (arrival := await arrivals.get()) is not None:
                    early[arrival[0]] = arrival[1]
                if number not in early:
                    break
                result = early.pop(number)
                _refuse_lost([result])
                hypotheses = result.texts
                yield work.text_of_line[source.owner], hypotheses[0] if hypotheses else ""
            results = await all_results
        yield await self._finished(work, results, owner)

    @contextlib.asynccontextmanager
    async def _queued(self, ticket: Ticket, waits: bool) -> AsyncIterator[None]:
        """Keep a ticket in the queue while the block runs; drop what is unfinished at its end.

        Args:
            waits: While the queue is full, wait and try again.

        Raises:
            BusyError: The queue is full.
        """
        while True:
            try:
                self.batcher.submit(ticket)
                break
            except BusyError as busy:
                if not waits:
                    raise
                await asyncio.sleep(min(5.0, busy.retry_after_s))
        try:
            yield
        finally:
            if not ticket.results.done() or ticket.results.cancelled():
                self.batcher.forget(ticket)

    def prepare(
        self, texts: Sequence[str], pair: Pair, options: TranslateOptions, limited: bool, unchanged: frozenset[int]
    ) -> _Work:
        plan = self.plan(pair, options)
        pieces = [_LINE_END.split(text) for text in texts]
        # Lines of other texts are blank here, and not left out: each line has a prefix of its own, if the request has.
        lines = ["" if i in unchanged else line for i, parts in enumerate(pieces) for line in parts[::2]]
        if not isinstance(options.prefix, str) and len(options.prefix) != len(lines):
            numbers = f"{len(options.prefix):,} prefixes for {len(lines):,} lines"
            raise ConfigError(f"{numbers}: give one for all, or one for each line of all texts")
        text_of_line = [number for number, parts in enumerate(pieces) for _ in parts[::2]]
        segments = segment(lines, plan, Events())
        if limited:
            self.limits.check_sentences(len(segments))
            self.limits.check_forced(s.search.rules for s in segments if s.search.rules is not None)
        own_texts = {i: texts[i] for i in unchanged}
        return _Work(plan, pieces, lines, text_of_line, segments, own_texts, Cancellation())


@dataclass(frozen=True)
class Directions:
    """The language pair of each text of a request."""

    usual: Pair  # that of all together
    pairs: tuple[Pair, ...]
    unchanged: frozenset[int] = frozenset()  # numbers of the texts that are not translated

    @property
    def parts(self) -> dict[Pair, Part]:
        """The part of each pair; those after the first wait for room in the queue, as the request was accepted."""
        return {
            pair: Part(frozenset(i for i, own in enumerate(self.pairs) if own is not pair) | self.unchanged, number > 0)
            for number, pair in enumerate(dict.fromkeys(self.pairs or (self.usual,)))
        }

    def source(self, i: int) -> str:
        """Return the language that text number ``i`` is in, as detected: the target language, if it is unchanged."""
        return self.usual.tgt if i in self.unchanged else self.pairs[i].src

    async def each(self, work: Callable[[Pair, Part], Awaitable[Sequence[T]]]) -> list[T]:
        """Return the results for all texts of ``work``, which is called for each of ``parts``."""
        results = {pair: await work(pair, part) for pair, part in self.parts.items()}
        return [results[pair][i] for i, pair in enumerate(self.pairs)]

    def count(self, metrics: Metrics, texts: Sequence[str], owner: str) -> None:
        """Count the characters of the texts as translated."""
        for pair in self.parts:
            n_chars = sum(len(text) for text, own in zip(texts, self.pairs, strict=True) if own is pair)
            metrics.translated(pair.name, n_chars, owner)


def _few(texts: Sequence[str]) -> Sequence[str] | None:
    """Return the texts whose length says how long detecting their languages takes; None if they are many."""
    return texts if len(texts) <= FEW_DETECTED else None


def _refuse_lost(results: Iterable[SegmentResult]) -> None:
    """Refuse an answer that would lack a sentence: most clients see no notes."""
    if any(result.note is not None and result.note.kind == "memory" for result in results):
        raise NoMemoryError


def _note_end(arrivals: asyncio.Queue[Any], results: asyncio.Future[Any]) -> None:
    """Put a last arrival into the queue; an error is taken for seen, as the client may have left."""
    if not results.cancelled():
        results.exception()
    arrivals.put_nowait(None)


def _short(texts: Sequence[str], options: TranslateOptions) -> Sequence[str] | None:
    """Return the texts whose length says how long preparing them takes; None if something else may take longer."""
    return None if options.glossary or len(options.prefixes) > FEW else texts


@dataclass(frozen=True)
class _Work:
    """Request that was split into sentences and waits for their translations."""

    plan: Plan
    pieces: list[list[str]]  # of each text: line, line end, line, ...
    lines: list[str]
    text_of_line: list[int]
    segments: list[TextSegment]
    unchanged: Mapping[int, str]  # texts that are returned as they are, by number
    cancellation: Cancellation  # of what is left to do once all sentences are translated

    def finish(self, results: Sequence[SegmentResult]) -> list[Answer]:
        """Join the translated sentences; return one answer for each text."""
        translations = iter(assemble(self.lines, self.segments, results, self.plan, self.cancellation))
        answers = []
        for i, parts in enumerate(self.pieces):
            own = [next(translations) for _ in parts[::2]]
            ends = (*parts[1::2], "")
            text = "".join(line.text + end for line, end in zip(own, ends, strict=True))
            notes = tuple(
                replace(note, where=f"line {number}") if len(own) > 1 else note
                for number, line in enumerate(own, 1)
                for note in line.notes
            )
            if i in self.unchanged:
                message = f"not translated: it is in the target language already ({self.plan.tgt_lang})"
                text, notes = self.unchanged[i], (Note("same_language", message),)
            answers.append(Answer(text, tuple(own), notes, ends))
        return answers


def is_auto(source: str) -> bool:
    """True if the source language of a request is to be detected."""
    return not source or source.lower() == "auto"


def request_options() -> list[Any]:
    """Return the dataclass fields of the options that a request may set."""
    return [field for field in fields(TranslateOptions) if field.name not in (*OPERATOR_OPTIONS, *LANGUAGE_OPTIONS)]
