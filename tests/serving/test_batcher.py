"""Sentences of several requests share batches, fairly; what nobody waits for goes; the queue is bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dragoman.decoding.request import SearchResult
from dragoman.errors import ServeError
from dragoman.serving.batcher import LEAST_SHARE, Batcher, BusyError
from dragoman.serving.tickets import Ticket
from dragoman.translation.notes import QUIET
from dragoman.translation.plan import Plan
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import TextSegment, segment
from dragoman.translation.translator import Translator
from limits import LONG_S, wait_until


class Slow:
    """An engine that searches when it is let, and notes what it was given."""

    name = "slow"

    def __init__(self, inner: Any) -> None:
        self.inner, self.go, self.batches = inner, threading.Event(), []
        self.entered = threading.Event()

    def search(self, segments: Any, settings: Any, progress: Any = None) -> SearchResult:
        self.batches.append([list(each.ids) for each in segments])
        self.entered.set()
        assert self.go.wait(LONG_S)
        return self.inner.search(segments, settings, progress)


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    made = Batcher()
    yield made
    made.close(LONG_S)


def submit(batcher: Batcher, texts: list[str], plan: Plan) -> Ticket:
    ticket = Ticket(plan, segment(texts, plan, QUIET))
    batcher.submit(ticket)
    return ticket


def sentences(texts: list[str], plan: Plan) -> list[TextSegment]:
    return segment(texts, plan, QUIET)


def slow(served: Translator, **changes: Any) -> tuple[Plan, Slow]:
    plan = served.plan(guard=False, protect=False, **changes)
    engine = Slow(plan.engine)
    return replace(plan, engine=engine), engine


def test_what_is_found_is_what_is_found_without_it(served: Translator, batcher: Batcher) -> None:
    plan = served.plan()
    texts = [f"the {noun} sees a {other}" for noun in ("dog", "cat", "man") for other in ("house", "tree", "woman")]
    alone = [translate_segments(sentences([text], plan), plan)[0].texts for text in texts]
    tickets = [submit(batcher, [text], plan) for text in texts]
    assert [ticket.results.result(LONG_S)[0].texts for ticket in tickets] == alone
    assert batcher.done.sentences == len(texts)
    assert batcher.done.batches < len(texts)


def test_after_a_batch_that_failed_the_rest_of_its_requests_is_searched_for_nobody(
    served: Translator, batcher: Batcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, engine = slow(served, batch_tokens=16)
    monkeypatch.setattr(engine, "inner", None)  # a bug of the engine
    ticket = submit(batcher, ["the cat sleeps"] * 12, plan)
    engine.go.set()
    with pytest.raises(AttributeError):
        ticket.results.result(LONG_S)
    wait_until(lambda: not batcher.running())
    assert batcher.n_waiting == 0
    assert batcher.n_waiting_by_owner() == {}
    assert len(engine.batches) == 1


def test_requests_take_turns(served: Translator, batcher: Batcher) -> None:
    plan, engine = slow(served, batch_tokens=16)
    submit(batcher, ["the dog"], plan)  # keeps the owner busy
    assert engine.entered.wait(LONG_S)
    long = submit(batcher, ["the cat sleeps"] * 12, plan)
    short = submit(batcher, ["a man runs"], plan)
    engine.go.set()
    short.results.result(LONG_S)
    assert len(long.results.result(LONG_S)) == 12
    wanted = plan.src_tokenizer.encode(["a man runs"])[0]
    assert wanted in engine.batches[1]  # the first batch after the one that ran, not after all twelve


def test_batches_are_short_while_another_key_may_come_again(served: Translator) -> None:
    plan, engine = slow(served, batch_tokens=64)
    engine.go.set()

    def largest_batch(batcher: Batcher) -> int:
        ticket = Ticket(plan, segment(["the cat sleeps"] * 40, plan, QUIET), owner="alice")
        batcher.submit(ticket)
        ticket.results.result(LONG_S)
        return max(sum(len(ids) + 1 for ids in batch) for batch in engine.batches)

    alone = Batcher()
    assert 48 < largest_batch(alone) <= 64
    alone.close(LONG_S)
    shared = Batcher()
    ticket = Ticket(plan, segment(["a man runs"], plan, QUIET), owner="bob")
    shared.submit(ticket)
    ticket.results.result(LONG_S)
    engine.batches.clear()
    assert largest_batch(shared) <= 16
    shared.close(LONG_S)


def test_a_short_request_of_another_key_passes_a_batch_between_two_of_its_steps(served: Translator) -> None:
    plan = served.plan(guard=False, protect=False)
    inner, entered, go = plan.engine, threading.Event(), threading.Event()

    class Pausing:
        """The engine, which waits before the first step of a batch until it may go on."""

        name = "pausing"

        def search(self, segments: Any, settings: Any, progress: Any = None) -> SearchResult:
            go_on = segments[0].between_steps

            def wait() -> None:
                entered.set()
                assert go.wait(LONG_S)
                if go_on is not None:
                    go_on()

            return inner.search([replace(each, between_steps=wait) for each in segments], settings, progress)

    plan = replace(plan, engine=Pausing())  # type: ignore[arg-type]
    finished: list[str] = []

    def submit_for(owner: str, texts: list[str]) -> Ticket:
        ticket = Ticket(plan, segment(texts, plan, QUIET), lambda i, result: finished.append(owner), owner=owner)
        batcher.submit(ticket)
        return ticket

    plain = replace(plan, engine=inner)
    alone = [translate_segments(sentences([text], plain), plain)[0].texts for text in ("the cat sleeps", "a man runs")]
    batcher = Batcher()
    long = submit_for("alice", ["the cat sleeps"] * 3)
    assert entered.wait(LONG_S)
    same = submit_for("alice", ["a man runs"])  # of the same key: it waits for the end of the batch
    short = submit_for("bob", ["a man runs"])
    large = submit_for("carol", ["a man runs"] * (LEAST_SHARE // 2))
    go.set()
    results = [ticket.results.result(LONG_S) for ticket in (short, long, same)]
    assert len(large.results.result(LONG_S)) == LEAST_SHARE // 2
    assert finished[:4] == ["bob", "alice", "alice", "alice"]
    assert [result[0].texts for result in results] == [alone[1], alone[0], alone[1]]
    assert batcher.n_running == batcher.n_waiting == 0
    assert batcher.running() == []
    batcher.close(LONG_S)


def test_short_and_long_requests_share_no_batch(served: Translator, batcher: Batcher) -> None:
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)  # keeps the search thread busy
    assert engine.entered.wait(LONG_S)
    texts = {"alice": ["the cat sleeps"] * (LEAST_SHARE // 2), "bob": ["a man runs"], "carol": ["a tree", "a house"]}
    tickets = [Ticket(plan, segment(own, plan, QUIET), owner=owner) for owner, own in texts.items()]
    for ticket in tickets:
        batcher.submit(ticket)
    engine.go.set()
    assert [len(ticket.results.result(LONG_S)) for ticket in tickets] == [LEAST_SHARE // 2, 1, 2]
    ids = {owner: plan.src_tokenizer.encode(own) for owner, own in texts.items()}
    of_batches = [{owner for owner in texts if any(part in batch for part in ids[owner])} for batch in engine.batches]
    assert [owners for owners in of_batches if owners] in ([{"alice"}, {"bob", "carol"}], [{"bob", "carol"}, {"alice"}])


def test_what_nobody_waits_for_leaves_the_queue_at_once(served: Translator, batcher: Batcher) -> None:
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    ticket = submit(batcher, ["the cat sleeps"] * 5, plan)
    assert batcher.n_waiting == 5
    batcher.forget(ticket)
    assert batcher.n_waiting == 0
    engine.go.set()
    submit(batcher, ["a man"], plan).results.result(LONG_S)
    assert len(engine.batches) == 2  # and none of the five
    assert not ticket.results.done()


def test_what_is_being_searched_for_stops_at_the_next_step(served: Translator, batcher: Batcher) -> None:
    plan, engine = slow(served)
    ticket = submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    batcher.forget(ticket)
    engine.go.set()
    found = ticket.results.result(LONG_S)[0]
    assert found.hypotheses == ()
    assert found.note is not None
    assert found.note.kind == "dropped"


def test_a_full_queue_refuses_and_says_when_to_come_again(served: Translator) -> None:
    batcher = Batcher(most_waiting=3)
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    submit(batcher, ["the cat"] * 3, plan)
    with pytest.raises(BusyError) as refused:
        submit(batcher, ["a man"], plan)
    assert refused.value.retry_after_s >= 1
    engine.go.set()
    assert batcher.close(LONG_S)


def test_the_queue_is_bounded_by_the_time_it_takes(served: Translator) -> None:
    batcher = Batcher(longest_wait_s=1.0)
    plan, engine = slow(served)
    batcher.tokens_per_s = 10.0
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    submit(batcher, ["the cat sleeps here"] * 8, plan)  # well over ten tokens: more than a second
    assert batcher.expected_wait_s > 1
    with pytest.raises(BusyError):
        submit(batcher, ["a man"], plan)
    engine.go.set()
    assert batcher.close(LONG_S)


def test_an_owner_takes_no_more_than_its_turn(served: Translator) -> None:
    batcher = Batcher(batch_tokens=12)
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    tickets = [submit(batcher, ["the cat"], plan) for _ in range(8)]
    engine.go.set()
    for ticket in tickets:
        ticket.results.result(LONG_S)
    assert batcher.close(LONG_S)
    assert batcher.done.batches > 2  # the plan's own batch would hold them all
    assert batcher.done.sentences == 9


@pytest.mark.parametrize(("batch_tokens", "n"), [(1024, 64), (None, 200)])
def test_S30_a_batch_on_a_cpu_has_few_very_short_lines(
    served: Translator, batch_tokens: int | None, n: int, figure: Callable[[str, str], None]
) -> None:
    """Each is as many rows of the size of the vocabulary as a long one; a GPU says where it has no room for them."""
    batcher, plan = Batcher(threads=0, batch_tokens=batch_tokens), served.plan()
    submit(batcher, ["a"] * 200, plan)
    batch = batcher.take(0)
    assert batch is not None
    figure("S30", f"200 lines of one letter: {len(batch.jobs)} in a batch of {batch_tokens or 'the size of the run'}")
    assert len(batch.jobs) == n
    assert sum(job.n_tokens for job in batch.jobs) < 1024
    assert batcher.n_waiting == 200 - n


def test_the_speed_is_told_by_batches_that_leave_nobody_out_or_are_large(served: Translator) -> None:
    batcher = Batcher()
    plan, _ = slow(served)
    jobs = list(Ticket(plan, sentences(["the dog"] * 200, plan)).waiting)
    few, many = jobs[:1], jobs
    batcher.count(few, False, 10.0)
    assert batcher.tokens_per_s == 0  # a lone request of a server that has just begun refuses nobody
    batcher.count(few, True, 1.0)
    slow_one = batcher.tokens_per_s
    assert slow_one == few[0].n_tokens  # others waited, and could not be searched with it: this is the speed
    batcher.count(many, False, 1.0)
    assert batcher.tokens_per_s > slow_one
    known = batcher.tokens_per_s
    batcher.count(few, False, 1.0)
    assert batcher.tokens_per_s == known  # a lone request makes no queue look hopeless
    batcher.count(many, False, 100.0)
    assert batcher.tokens_per_s < known  # a full batch that was slow counts
    assert batcher.close(LONG_S)


def test_many_that_come_at_once_after_a_lone_slow_request_are_let_in(served: Translator) -> None:
    batcher = Batcher(longest_wait_s=0.5)
    plan, engine = slow(served)
    first = submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    time.sleep(0.5)
    engine.go.set()
    first.results.result(LONG_S)
    engine.go.clear()  # none of those that come is done before all have come
    tickets = [submit(batcher, ["the cat sleeps here"], plan) for _ in range(40)]
    engine.go.set()
    assert all(len(ticket.results.result(LONG_S)) == 1 for ticket in tickets)
    assert batcher.close(LONG_S)


def test_closing_finishes_what_was_taken_in_and_takes_nothing_more(served: Translator) -> None:
    batcher = Batcher()
    plan, engine = slow(served)
    tickets = [submit(batcher, ["the dog sees a cat"], plan) for _ in range(20)]
    assert engine.entered.wait(LONG_S)
    closing = threading.Thread(target=batcher.close, args=(LONG_S,))
    closing.start()
    while not batcher.closing:
        time.sleep(0.001)
    with pytest.raises(ServeError, match="shutting down"):
        submit(batcher, ["a man"], plan)
    engine.go.set()
    closing.join(LONG_S)
    assert all(ticket.results.result(0)[0].texts for ticket in tickets)


def test_what_was_not_finished_in_time_is_told_so(served: Translator) -> None:
    batcher = Batcher()
    plan, engine = slow(served)
    submit(batcher, ["the dog"], plan)
    assert engine.entered.wait(LONG_S)
    left = submit(batcher, ["the cat"], plan)
    assert not batcher.close(0.1)
    with pytest.raises(ServeError, match="shut down"):
        left.results.result(0)
    engine.go.set()


def test_an_error_of_a_batch_reaches_its_requests_and_the_owner_lives_on(
    served: Translator, batcher: Batcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, engine = slow(served)
    engine.go.set()
    found: Callable[..., SearchResult] = engine.inner.search

    def fails(*args: Any) -> SearchResult:
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "inner", type("Inner", (), {"search": staticmethod(fails)}))
    broken = submit(batcher, ["the dog"], plan)
    with pytest.raises(ZeroDivisionError):
        broken.results.result(LONG_S)
    monkeypatch.setattr(engine, "inner", type("Inner", (), {"search": staticmethod(found)}))
    assert submit(batcher, ["the dog"], plan).results.result(LONG_S)[0].texts
