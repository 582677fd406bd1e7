"""Rows R1, S26 and S29: search threads outlive every error, every request ends; no key holds up another."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from amounts import amounts
from leaving_clients import SENTENCE, StubPlan, answer, crowd, ended, race, search_threads

from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Segment
from dragoman.serving import tickets
from dragoman.serving import turns as module_of_turns
from dragoman.serving.admission import Starts
from dragoman.serving.batcher import LEAST_SHARE, Batcher
from dragoman.serving.refusals import UnfinishedError
from dragoman.serving.tickets import Batch, Ticket
from dragoman.serving.turns import Turns
from dragoman.translation.segments import SegmentResult, TextSegment
from failing import fail_once
from limits import LONG_S, wait_until

Figure = Callable[[str, str], None]

KINDS = (
    RuntimeError, MemoryError, OSError, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration,
    asyncio.CancelledError, concurrent.futures.CancelledError, concurrent.futures.InvalidStateError, BaseException,
)  # fmt: skip
QUIETLY = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
"""A dead thread fails these tests by what they assert."""


@QUIETLY
@amounts(4_000, 1_000_000)
def test_R1_no_search_thread_dies_of_clients_that_leave(
    n: int, figure: Figure, caplog: pytest.LogCaptureFixture
) -> None:
    seen = {"direct race": race(n), "through a batcher": crowd(n // 2 if n < 10_000 else n)}
    figure("R1", f"clients that leave: {json.dumps(seen)}")
    for counts in seen.values():
        assert counts["dead_search_threads"] == counts["requests_without_end"] == 0, seen
    assert not caplog.records  # nor had it anything to outlive


@dataclass(frozen=True)
class Fault:
    """A way in which a batch fails."""

    place: str
    kind: type[BaseException]

    def engine(self, segments: Sequence[TextSegment]) -> list[SegmentResult]:
        """Search, or fail."""
        if self.place == "engine":
            raise self.kind
        return answer(segments)[: -1 if self.place == "too few results" else None]

    def on_result(self, number: int, result: SegmentResult) -> None:
        """Receive a result, or fail."""
        if self.place == "on_result":
            raise self.kind

    def __eq__(self, other: object) -> bool:
        """Compare as search settings, or fail."""
        for fault in (self, other) if self is not other else ():
            if isinstance(fault, Fault) and fault.place == "queue":
                raise fault.kind
        return self is other

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Settings:
    """Search settings whose comparison may fail."""

    fault: Fault
    decode: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.fault == other.fault

    __hash__ = object.__hash__


def faults() -> list[Any]:
    places = ("engine", "on_result", "count", "queue")
    every = [Fault(place, kind) for place in places for kind in KINDS]
    every += [Fault("too few results", ValueError), Fault("cancelled", ValueError)]
    return [pytest.param(fault, id=f"{fault.place}-{fault.kind.__name__}") for fault in every]


@QUIETLY
@pytest.mark.parametrize("fault", faults())
def test_R1_a_search_thread_outlives_a_fault_and_each_request_ends(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    holding = StubPlan(engine=lambda segments: answer(segments) if held.wait() else [])
    usual: Callable[..., None] = Batcher.count

    def count(self: Batcher, jobs: Any, *more: Any) -> None:
        if fault.place == "count" and jobs[0].ticket in tickets:
            raise fault.kind
        usual(self, jobs, *more)

    monkeypatch.setattr(Batcher, "count", count)
    tickets: list[Ticket] = []
    with search_threads(1) as (batcher, n_dead):
        first = holding.ticket()
        batcher.submit(first)  # so that the next ones share a batch
        while batcher.n_waiting:
            pass
        for own in (fault, Fault("", ValueError)) if fault.place == "queue" else (fault,) * 2:
            search = Settings(own, StubPlan().search.decode)
            plan = StubPlan(engine=answer if fault.place == "queue" else fault.engine, search=search)
            # the second request of a batch is innocent: only an error of the engine is its error too
            more = {"on_result": fault.on_result} if not tickets else {}
            tickets.append(plan.ticket(2, **more))
            if fault.place == "cancelled":
                leave_at_the_end(tickets[-1])
        for ticket in tickets:
            batcher.submit(ticket)
        held.set()
        assert ended(first.results, n_dead)
        assert all(ended(ticket.results, n_dead) for ticket in tickets)
        for ticket in tickets:
            asyncio.run(awaited(ticket))
        if fault.place == "on_result":
            assert tickets[1].results.exception() is None
        last = StubPlan().ticket(3)
        batcher.submit(last)
        assert ended(last.results, n_dead)
        assert len(last.results.result()) == 3
        assert not n_dead()
    assert (batcher.n_waiting, batcher.n_running) == (0, 0)


def leave_at_the_end(ticket: Ticket) -> None:
    """Let the client leave between the last look at a request and its result."""
    usual = ticket.results.set_result

    def late(results: Any) -> None:
        ticket.results.cancel()
        usual(results)

    ticket.results.set_result = late  # type: ignore[method-assign]


async def awaited(ticket: Ticket) -> None:
    """Check that an event loop receives the end of a request, and is not ended by it."""
    future = asyncio.wrap_future(ticket.results)
    for _ in range(10):
        await asyncio.sleep(0)
    assert future.done()
    assert not future.cancelled()  # nobody has left
    error = future.exception()
    assert error is None or isinstance(error, Exception)


MOST_FORCED = Rules(Spelling([]), include=(tuple(range(100, 200)), tuple(range(200, 300))))
"""Rules of a letter with two words of a hundred subwords: as many as a request may include."""
HOSTILE = TextSegment(owner=0, start=0, text="a", search=Segment(ids=[7], rules=MOST_FORCED))


class Steps:
    """An engine that makes steps for the hostile sentence until it may end, or is cancelled; it answers others at once.

    It notes how many steps were made before each other batch.
    """

    def __init__(self) -> None:
        self.n, self.others, self.entered, self.go = 0, list[tuple[int, int]](), threading.Event(), threading.Event()

    def __call__(self, segments: Sequence[TextSegment]) -> list[SegmentResult]:
        if not any(segment.text == HOSTILE.text for segment in segments):
            self.others.append((self.n, len(segments)))
            return answer(segments)
        while not (self.go.is_set() or segments[0].search.is_cancelled):
            self.n += 1
            if (between_steps := segments[0].search.between_steps) is not None:
                between_steps()
            self.entered.set()
            time.sleep(0.001)
        return answer(segments)


def test_S26_what_one_key_forces_holds_up_no_other_key(figure: Figure) -> None:
    """Two requests of one letter, each with words of 200 subwords, stopped all other keys for a minute."""
    engine = Steps()
    plan, n_long = StubPlan(engine=engine), LEAST_SHARE
    with search_threads(1) as (batcher, _):
        hostile = [Ticket(plan, [HOSTILE] * 3, owner="ann") for _ in range(2)]  # type: ignore[arg-type]
        for ticket in hostile:
            batcher.submit(ticket)
        assert engine.entered.wait(LONG_S)
        long, short = plan.ticket(n_long, owner="bob"), plan.ticket(owner="carol")
        batcher.submit(long)
        batcher.submit(short)
        assert len(short.results.result(LONG_S)) == 1
        assert len(long.results.result(LONG_S)) == n_long
        assert not any(ticket.results.done() for ticket in hostile)
        (running,) = batcher.running()
        assert running.owners == {"ann"}
        assert len(running.jobs) == 1  # of six: each takes as long as a batch
        (counted,) = {job.n_tokens for job in running.jobs}
        engine.go.set()
        assert all(len(ticket.results.result(LONG_S)) == 3 for ticket in hostile)
    largest = max(n for _, n in engine.others)
    assert largest * len(SENTENCE.search.ids) <= LEAST_SHARE
    figure("S26", f"200 forced subwords count for {counted:,} tokens, one sentence a batch; between its steps another "
                  f"key's short request and one of {n_long} sentences end, at most {largest} at a time")  # fmt: skip


def test_S26_a_batch_that_is_given_up_ends_requests_of_the_key_alone_that_held_it_up(figure: Figure) -> None:
    """Whatever else one key's sentence takes long for."""
    engine, holding = Steps(), threading.Event()
    slow = TextSegment(owner=0, start=0, text=HOSTILE.text, search=Segment(ids=[7]))
    plan = StubPlan(engine=engine)
    with search_threads(1) as (batcher, _):
        first = StubPlan(engine=lambda segments: answer(segments) if holding.wait(LONG_S) else []).ticket(owner="dave")
        batcher.submit(first)  # so that the next ones share a batch
        wait_until(lambda: batcher.running())
        honest = [plan.ticket(owner=owner) for owner in ("bob", "carol", "bob")]
        hostile = Ticket(plan, [slow], owner="ann")  # type: ignore[arg-type]
        for ticket in (honest[0], hostile, *honest[1:]):
            batcher.submit(ticket)
        holding.set()
        assert engine.entered.wait(LONG_S)
        (batch,) = batcher.running()
        assert batch.owners == {"ann", "bob", "carol"}
        batcher.give_up(batch)
        assert all(len(ticket.results.result(LONG_S)) == 1 for ticket in honest[:1])
        alone: list[Batch] = []
        wait_until(lambda: alone.extend(each for each in batcher.running() if each.owners == {"ann"}) or alone)
        batcher.give_up(alone[0])
        assert isinstance(hostile.results.exception(LONG_S), UnfinishedError)
        assert all(len(ticket.results.result(LONG_S)) == 1 for ticket in honest)
    assert (batcher.n_waiting, batcher.n_running) == (0, 0)
    figure("S26", "a batch of three keys that is given up: 0 of 3 requests of the other keys fail")


def test_S29_a_lack_of_memory_in_the_queue_costs_one_request(monkeypatch: pytest.MonkeyPatch, figure: Figure) -> None:
    """The queue stood still for all keys, and nothing said so."""
    plan = StubPlan(engine=answer)
    for name, caller in (("notify_all", "submit"), ("wait", "take")):
        with search_threads(1) as (batcher, _), monkeypatch.context() as patch:
            failed = fail_once(patch, threading.Condition, name, caller)
            requests = [plan.ticket(owner=owner) for owner in ("ann", "bob", "ann")]
            for ticket in requests:
                try:
                    batcher.submit(ticket)
                except MemoryError:
                    ticket.fail(MemoryError())
            ended = [ticket.results.exception(LONG_S) for ticket in requests]
            assert sum(error is None for error in ended) >= 2
            wait_until(lambda failed=failed: failed)
            last = plan.ticket(owner="bob")
            batcher.submit(last)
            assert last.results.exception(LONG_S) is None
        assert (batcher.n_waiting, batcher.n_waiting_by_owner(), batcher.n_running) == (0, {}, 0)
    figure("S29", "one failing allocation in the queue: one request ends with an error, 0 of the others")


def test_S29_a_lack_of_memory_at_the_end_of_a_request_leaves_it_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = StubPlan(engine=answer).ticket(owner="ann")
    fail_once(monkeypatch, tickets, "_deliverable")
    with pytest.raises(MemoryError):
        ticket.fail(RuntimeError("first"))
    ticket.fail(RuntimeError("second"))
    assert str(ticket.results.exception(LONG_S)) == "second"


def test_S29_a_lack_of_memory_loses_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> list[str]:
        turns, came = Turns(1), list[str]()

        async def work(owner: str) -> None:
            async with turns.of(owner):
                came.append(owner)
                await asyncio.sleep(0)

        waiting = [asyncio.ensure_future(work(owner)) for owner in ("ann", "bob", "carol")]
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*waiting, return_exceptions=True)
            await work("dave")
        return came

    failed = fail_once(monkeypatch, module_of_turns, "taken_in_turn")
    assert asyncio.run(run())[-1] == "dave"
    assert failed


def test_S29_a_lack_of_memory_in_a_round_lets_the_next_requests_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        starts = Starts()
        loop = asyncio.get_running_loop()
        with monkeypatch.context() as patch:
            fail_once(patch, loop, "call_soon")
            with pytest.raises(MemoryError):
                await starts.turn("ann")
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*(starts.turn(owner) for owner in "abc" for _ in range(20)))

    asyncio.run(run())
