"""Words that a request forces into its translations: what they count for, whom they share a batch with, who passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dragoman.serving.batcher import LEAST_SHARE, MOST_EXPECTED_S, Batcher
from dragoman.serving.limits import MOST_INCLUDED
from dragoman.serving.refusals import UnfinishedError
from dragoman.serving.tickets import Batch, Ticket
from dragoman.translation.notes import QUIET
from dragoman.translation.plan import Plan
from dragoman.translation.segments import segment
from dragoman.translation.translator import Translator
from limits import LONG_S

LONG_WORD = "qxzjwvkpgb" * (MOST_INCLUDED // 10)
"""A word of as many subwords as a request may include."""


@pytest.fixture
def batcher() -> Batcher:
    """A batcher without search threads: a test takes their place."""
    return Batcher(threads=0)


def ticket(plan: Plan, owner: str, *texts: str) -> Ticket:
    return Ticket(plan, segment(list(texts), plan, QUIET), owner=owner)


def submit(batcher: Batcher, plan: Plan, owner: str, *texts: str) -> Ticket:
    submitted = ticket(plan, owner, *texts)
    batcher.submit(submitted)
    return submitted


def taken(batcher: Batcher, number: int = 0) -> Batch:
    batch = batcher.take(number)
    assert batch is not None
    return batch


def all_taken(batcher: Batcher) -> list[Batch]:
    batches = []
    while batcher.n_waiting:
        batches.append(taken(batcher, len(batches)))
    return batches


def tokens(plan: Plan, text: str) -> int:
    (job,) = ticket(plan, "", text).waiting
    return job.n_tokens


def test_a_sentence_counts_for_what_its_forced_words_cost(served: Translator) -> None:
    """A search for 200 ids takes 5 s of the processor: as much as one of 4,000 other subwords, in batches."""
    plain = served.plan()
    n = tokens(plain, "the dog")
    assert n == len(plain.src_tokenizer.encode(["the dog"])[0]) + 1
    few, many = (tokens(served.plan(include=[word]), "the dog") for word in ("baum", LONG_WORD))
    assert n < few < LEAST_SHARE
    assert 2000 < many < 10_000
    assert tokens(served.plan(include=[LONG_WORD[:20]]), "the dog") < many / 20  # its beam is narrower too
    assert tokens(served.plan(prefix="qxzj " * 40), "the dog") >= n + 200
    assert tokens(served.plan(exclude=["baum"]), "the dog") == n
    assert tokens(served.plan(exclude=[f"baum{i}" for i in range(100)]), "the dog") == n + 25
    terms = served.plan(glossary={"dog": LONG_WORD[:60]})
    assert tokens(terms, "the dog") > n + 60
    assert tokens(terms, "the cat") == n  # without the term
    unsearched = served.plan(glossary={"dog": LONG_WORD})  # no search places so many ids
    assert tokens(unsearched, "the dog") == n


def test_a_sentence_counts_for_its_characters_where_its_tokens_do_not_tell(served: Translator) -> None:
    """Without bytes in a vocabulary any number of unknown characters is one token."""
    plan = served.plan()
    (job,) = ticket(plan, "", "the dog").waiting
    unknown = replace(job, segment=replace(job.segment, text="☌" * 50_000))
    assert (job.n_tokens, unknown.n_tokens) == (job.n_src, 3125)


def test_a_batch_that_has_just_ended_is_not_given_up(served: Translator) -> None:
    """The watchdog looks at a copy of the list; the other sentences of the request were dropped, or it failed."""
    plan, batcher = served.plan(), Batcher(threads=0)
    request = submit(batcher, plan, "ann", "the dog", "a cat")
    batch = taken(batcher)
    batch.is_searched = True
    batcher.give_up(batch)
    assert not request.cancellation.cancelled
    assert not request.results.done()


def test_the_metrics_count_tokens_of_the_source(served: Translator) -> None:
    batcher = Batcher()
    plan = served.plan(include=["baum"])
    submit(batcher, plan, "", "the dog").results.result(LONG_S)
    assert batcher.close(LONG_S)
    assert batcher.done.tokens == tokens(served.plan(), "the dog")


@pytest.mark.parametrize("more", [{"include": ["baum"]}, {"prefix": "ein"}, {"glossary": {"dog": "baum"}}])
def test_what_a_key_forces_shares_no_batch_with_other_keys(
    batcher: Batcher, served: Translator, more: dict[str, Any]
) -> None:
    plain, forced = served.plan(), served.plan(**more)
    for owner, plan in (("ann", forced), ("bob", plain), ("carol", forced), ("dave", plain), ("ann", forced)):
        submit(batcher, plan, owner, "the dog")
    batches = all_taken(batcher)
    assert sorted(sorted(job.ticket.owner for job in batch.jobs) for batch in batches) == [
        ["ann", "ann"], ["bob", "dave"], ["carol"],
    ]  # fmt: skip


def test_a_sentence_with_many_forced_words_is_searched_alone(batcher: Batcher, served: Translator) -> None:
    for _ in range(3):
        submit(batcher, served.plan(include=[LONG_WORD]), "ann", "a", "b")
    assert [len(batch.jobs) for batch in all_taken(batcher)] == [1] * 6


def test_many_forced_words_make_a_queue_long_for_their_own_key_alone(served: Translator) -> None:
    batcher = Batcher(longest_wait_s=5.0)
    batcher.close(LONG_S)  # its thread has ended, and what is in the queue stays
    batcher.closing, batcher.tokens_per_s = False, 1000.0
    submit(batcher, served.plan(include=[LONG_WORD]), "ann", "a")
    submit(batcher, served.plan(include=[LONG_WORD]), "ann", "a")
    assert batcher.busy_for_s("ann") is not None
    assert batcher.busy_for_s("bob") is None


def passing(batcher: Batcher, batch: Batch) -> list[tuple[str, int]]:
    """Return the keys of what passes a batch between two steps, and how many of their sentences at a time."""
    passed = []
    while (other := batcher.deal_passing(batch)) is not None:
        assert len(other.owners) == 1
        passed.append((*other.owners, len(other.jobs)))
    return passed


def test_a_batch_with_forced_words_is_passed_by_long_requests_too(batcher: Batcher, served: Translator) -> None:
    plain, forced = served.plan(), served.plan(include=[LONG_WORD])
    n = 2 * LEAST_SHARE // tokens(plain, "the dog")
    submit(batcher, forced, "ann", "a", "b")
    batch = taken(batcher)
    submit(batcher, plain, "bob", *["the dog"] * n)
    submit(batcher, forced, "dave", "a")
    submit(batcher, plain, "ann", "the dog")
    submit(batcher, plain, "carol", "the dog")
    passed = passing(batcher, batch)
    assert passed[0] == ("carol", 1)
    assert {owner for owner, _ in passed[1:]} == {"bob"}
    assert sum(n for _, n in passed[1:]) == n
    assert len(passed) > 2  # a part at a time
    assert batcher.n_waiting_by_owner() == {"ann": 2, "dave": 1}  # its own key, and what would take as long


def test_other_batches_are_passed_by_short_requests_alone(batcher: Batcher, served: Translator) -> None:
    plain, forced = served.plan(), served.plan(include=[LONG_WORD])
    submit(batcher, plain, "ann", "the dog")
    batch = taken(batcher)
    submit(batcher, forced, "bob", "a")
    submit(batcher, plain, "carol", *["the dog"] * LEAST_SHARE)
    submit(batcher, served.plan(include=["baum"]), "dave", "the dog")
    submit(batcher, plain, "erin", "the dog")
    assert passing(batcher, batch) == [("dave", 1), ("erin", 1)]


def test_short_requests_need_not_wait_until_long_ones_have_made_up_for_their_time(
    batcher: Batcher, served: Translator
) -> None:
    plain = served.plan()
    submit(batcher, served.plan(include=[LONG_WORD]), "ann", "a")
    batch = taken(batcher)
    batch.passed_long_s, batch.started = 100.0, batch.started - 100.0  # a step, then long requests for 100 s
    submit(batcher, plain, "bob", *["the dog"] * LEAST_SHARE)
    submit(batcher, plain, "carol", "the dog")
    assert passing(batcher, batch) == [("carol", 1)]


def test_what_a_batch_was_given_up_with_passes_no_other_and_is_passed(batcher: Batcher, served: Translator) -> None:
    """It may be what hangs: the batch that it passed would hang too."""
    plain = served.plan()
    batch, _ = together(batcher, plain)
    batcher.give_up(batch)
    again = taken(batcher)
    submit(batcher, plain, "carol", *["the dog"] * LEAST_SHARE)
    submit(batcher, plain, "dave", "the dog")
    assert {owner for owner, _ in passing(batcher, again)} == {"carol", "dave"}
    assert batcher.n_waiting_by_owner().keys() | again.owners == {"ann", "bob"}


def together(batcher: Batcher, plan: Plan) -> tuple[Batch, dict[str, Ticket]]:
    """Return a batch of two keys and their requests; one has a sentence more, which waits."""
    batcher.batch_tokens = 2 * tokens(plan, "the dog")
    tickets = {"ann": submit(batcher, plan, "ann", "the dog"), "bob": submit(batcher, plan, "bob", *["the dog"] * 2)}
    batch = taken(batcher)
    assert batch.owners == {"ann", "bob"}
    return batch, tickets


def test_what_shared_a_batch_that_is_given_up_is_searched_again_by_key_once(
    batcher: Batcher, served: Translator
) -> None:
    batch, tickets = together(batcher, served.plan())
    batcher.give_up(batch)
    assert not any(each.results.done() for each in tickets.values())
    assert all(each.search.is_cancelled for each in batch.segments())
    assert batcher.n_waiting_by_owner() == {"ann": 1, "bob": 2}
    batcher.end_batch(0)
    assert batcher.n_running == 0
    again = all_taken(batcher)
    assert sorted([*batch.owners] for batch in again) == [["ann"], ["bob"], ["bob"]]
    assert not any(each.search.is_cancelled for batch in again for each in batch.segments())
    batcher.give_up(next(batch for batch in again if batch.owners == {"ann"}))
    assert isinstance(tickets["ann"].results.exception(0), UnfinishedError)
    assert not tickets["bob"].results.done()


def test_what_is_searched_again_is_not_ended_by_the_batch_that_it_left(batcher: Batcher, served: Translator) -> None:
    batch, tickets = together(batcher, served.plan())
    batcher.give_up(batch)
    batcher.outlive(0, MemoryError())  # the batch may end in an error after it was given up
    assert not any(each.results.done() for each in tickets.values())
    assert batcher.n_waiting == 3


def test_a_batch_of_one_key_is_given_up_at_once(batcher: Batcher, served: Translator) -> None:
    own = [submit(batcher, served.plan(), "ann", "the dog") for _ in range(2)]
    batcher.give_up(taken(batcher))
    assert all(isinstance(each.results.exception(0), UnfinishedError) for each in own)
    assert batcher.n_waiting == 0


def test_whoever_left_a_batch_that_is_given_up_is_not_searched_for_again(batcher: Batcher, served: Translator) -> None:
    batch, tickets = together(batcher, served.plan())
    batcher.forget(tickets["bob"])
    batcher.give_up(batch)
    assert batcher.n_waiting_by_owner() == {"ann": 1}


@pytest.mark.parametrize("end", ["given up", "left", "failed"])
def test_the_time_of_a_batch_that_did_not_end_well_is_not_expected_of_others(
    end: str, batcher: Batcher, served: Translator
) -> None:
    """A batch of a minute let a hanging one hold its thread for half an hour."""
    plan = served.plan()
    own = submit(batcher, plan, "ann", "the dog")
    batch = taken(batcher)
    batch.started -= 61.0
    if end == "given up":
        batcher.give_up(batch)
    elif end == "left":
        batch.is_searched = True
        batcher.forget(own)
    batcher.end_batch(0, MemoryError() if end == "failed" else None)
    submit(batcher, plan, "ann", "the dog")
    assert taken(batcher).expected_s == 0


def test_no_batch_is_expected_to_take_more_than_half_a_minute(batcher: Batcher, served: Translator) -> None:
    plan = served.plan()
    submit(batcher, plan, "ann", "the dog")
    batch = taken(batcher)
    batch.is_searched, batch.started = True, batch.started - 61.0
    batcher.end_batch(0)
    submit(batcher, plan, "ann", "the dog")
    assert taken(batcher).expected_s == MOST_EXPECTED_S


def test_the_speed_is_not_told_by_a_batch_that_was_given_up(batcher: Batcher, served: Translator) -> None:
    jobs = list(ticket(served.plan(), "", "the dog").waiting)
    batcher.count(jobs, True, 61.0, False)
    assert (batcher.tokens_per_s, batcher.done.sentences, batcher.done.busy_s) == (0, 1, 61.0)
