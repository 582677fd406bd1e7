"""Segments that are ready, of several calls, searched for together: each call gets what it gets alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.decoding.cancellation import Cancellation
from dragoman.translation.assemble import Translation, assemble
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import TextSegment, segment
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    run = tmp_path_factory.mktemp("ready") / "run"  # beside which CTranslate2's model is written
    shutil.copytree(tiny_run / "bundle", run / "bundle")
    return Translator.load(run, "cpu")


def hard_texts(count: int, seed: int) -> list[str]:
    """Texts that drive a small model into faults, some of them long; one of several sentences, and a blank one."""
    chance = random.Random(seed)
    words = ["dog", "cat", "the", "xyz", "!!!", "QQQ", "🙂", "sees", "1234"]
    return [
        "",
        "the dog sees. a cat sleeps.  the man!",
        *(" ".join(chance.choices(words, k=chance.randint(1, 60))) for _ in range(count)),
    ]


def together(
    calls: Sequence[tuple[list[str], Plan, int]], cancellations: Sequence[Cancellation | None] = (None, None)
) -> list[list[Translation]]:
    """What several calls get whose segments are searched for at once, by the plan of the first."""
    ready = [
        segment(texts, plan, Events(cancellation=cancellation), first_number)
        for (texts, plan, first_number), cancellation in zip(calls, cancellations, strict=False)
    ]
    numbers = [len(texts) for texts, _, _ in calls]
    moved = [  # an owner is a text of all calls
        replace(each, owner=each.owner + sum(numbers[:number])) for number, own in enumerate(ready) for each in own
    ]
    chance = random.Random(1)
    order = chance.sample(range(len(moved)), len(moved))
    results = dict(zip(order, translate_segments([moved[i] for i in order], calls[0][1]), strict=True))
    found, begun = [], 0
    for (texts, plan, _), own in zip(calls, ready, strict=True):
        found.append(assemble(texts, own, [results[begun + i] for i in range(len(own))], plan))
        begun += len(own)
    return found


def same(one: Sequence[Translation], other: Sequence[Translation]) -> None:
    """Compare translations that were searched for in batches of other shapes."""
    for a, b in zip(one, other, strict=True):
        assert (a.text, a.notes, a.n_parts, a.n_tokens, a.alignment) == (
            b.text,
            b.notes,
            b.n_parts,
            b.n_tokens,
            b.alignment,
        )
        assert a.score == pytest.approx(b.score, abs=1e-5)
        same(a.alternatives, b.alternatives)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"beam_size": 1}, {"n_best": 2, "alignments": True}, {"guard": False}, {"sample": True, "seed": 3},
        {"precision": "bf16", "guard": False}, {"engine": "ctranslate2", "guard": False}, {"exclude": ["hund"]},
    ],
    ids=str,
)  # fmt: skip
def test_segments_of_two_calls_get_what_they_get_alone(
    translator: Translator, toy_sentences: Callable[..., Any], options: dict[str, Any]
) -> None:
    plan = translator.plan(**options)
    calls = [
        ([src for src, _ in toy_sentences(6, 5)], plan, 0),
        (hard_texts(8, 4), plan, 100),
    ]
    alone = [translator.translate_planned(texts, plan, first_number=first) for texts, _, first in calls]
    for one, other in zip(together(calls), alone, strict=True):
        same(one, other)
    assert any(one.n_parts > 1 for one in alone[1])
    if not options:
        assert any(one.notes for one in alone[1])


@pytest.mark.parametrize(
    "others",
    [({"prefix": "die "}, {"prefix": "der "}), ({"exclude": ["hund"]}, {}), ({}, {"include": ["haus"]})],
    ids=str,
)
def test_constraints_are_those_of_each_call(
    translator: Translator, toy_sentences: Callable[..., Any], others: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    calls = [
        ([src for src, _ in toy_sentences(6, seed)], translator.plan(**options), 0)
        for seed, options in zip((5, 6), others, strict=True)
    ]
    alone = [translator.translate_planned(texts, plan) for texts, plan, _ in calls]
    for one, other in zip(together(calls), alone, strict=True):
        same(one, other)


def test_no_segments_are_no_results(translator: Translator) -> None:
    assert translate_segments([], translator.plan()) == []


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_segments_of_a_call_that_nobody_waits_for_are_dropped(
    translator: Translator, toy_sentences: Callable[..., Any], engine: str
) -> None:
    plan = translator.plan(engine=engine)
    calls = [([src for src, _ in toy_sentences(6, seed)], plan, 0) for seed in (5, 6)]
    alone = translator.translate_planned(calls[1][0], plan)
    cancelled = Cancellation()
    cancelled.cancel()
    dropped, kept = together(calls, (cancelled, Cancellation()))
    assert [(one.text, one.notes) for one in dropped] == [("", (Note("dropped", "cancelled"),))] * 6
    same(kept, alone)


def test_a_call_that_is_cancelled_while_it_is_searched_for_ends(translator: Translator) -> None:
    texts = ["the dog sees a cat", "", "the dog sees a cat " * 30, "a man"]
    n_asked = 0

    def is_asked() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked > 20

    said: list[str] = []
    events = Events(cancellation=Cancellation(is_asked), warn=lambda note: said.append(str(note)))
    found, want = translator.translate(texts, events=events), translator.translate(texts)
    assert [one.text for one in found] == [""] * 4
    assert [one.n_parts for one in found] == [one.n_parts for one in want]
    assert [one.notes for one in found] == [() if not text else (Note("dropped", "cancelled"),) for text in texts]
    assert said[-3:] == [f"line {number}: cancelled" for number in (1, 3, 4)]


def test_the_guard_does_not_search_again_for_what_is_cancelled(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled, plan, handed = Cancellation(), translator.plan(protect=False, truecase=False), list[int]()
    segments = segment(hard_texts(20, 3), plan, Events(cancellation=cancelled))
    search = plan.engine.search

    def counted(some: Any, *rest: Any) -> Any:
        handed.append(sum(not each.is_cancelled for each in some))
        result = search(some, *rest)
        cancelled.cancel()  # when the first search is done
        return result

    monkeypatch.setattr(plan.engine, "search", counted)
    results = translate_segments(segments, plan)
    assert handed[0] == sum(any(map(str.isalpha, each.text)) for each in segments)  # others are copied
    assert len(handed) > 1
    assert not any(handed[1:])
    assert all(result.hypotheses for result in results)


def test_results_stand_beside_their_segments(translator: Translator) -> None:
    plan = translator.plan(n_best=2)
    segments: list[TextSegment] = segment(["the dog", "", "a cat"], plan, QUIET)
    results = translate_segments(segments, plan)
    assert [each.owner for each in segments] == [0, 2]
    assert [(len(one.hypotheses), len(one.texts), one.note, one.sound) for one in results] == [(2, 2, None, True)] * 2
