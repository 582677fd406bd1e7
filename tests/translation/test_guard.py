"""The guard: sound translations pass untouched; for the others another is found, or the least bad, and it says so."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Self, cast

import pytest
import torch
from torch import Tensor, nn

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig
from dragoman.data.tokenizer import EOS_ID, PAD_ID
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Hypothesis, Sampling, SearchResult, SearchSettings, Segment
from dragoman.translation.faults import Sizes, faults, without_runs
from dragoman.translation.guard import LEAST_BEAM, NO_REPEAT_NGRAM, guard
from dragoman.translation.notes import Events, Note
from dragoman.translation.plan import ConstrainedSearch, Plan
from dragoman.translation.segments import SegmentResult, TextSegment
from dragoman.translation.translator import Translator
from searching import search_all

SRC = "a man is riding a bike down the street"
GOOD = "ein Mann fährt mit dem Rad die Straße hinab"
LOOP = "ein Mann " * 12
LONG = " ".join(f"Wort{i}" for i in range(60))


class Effort(NamedTuple):
    """How it was searched once more."""

    beam_size: int
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    exclude: tuple[tuple[str, ...], ...] = ()  # for each segment asked for


Answers = Callable[[int, Effort], list[tuple[str, float]]]


class Guarded(NamedTuple):
    """A translation that has been looked at."""

    text: str
    note: str
    score: float
    sound: bool


class World:
    """Texts as their own hypotheses: ids are words. ``answers`` gives what a search finds, with scores.

    It is both engines that the guard searches with again, and the tokenizer of what was found.
    """

    def __init__(self, answers: Answers | None = None) -> None:
        self.answers = answers
        self.texts: dict[int, str] = {}
        self.asked: list[tuple[list[int], Effort]] = []
        self.workers: list[int] = []  # of each search
        self.least_ratio = 0.0
        self.read: list[tuple[int, int]] = []  # pairs looked at, by their lengths

    def hypothesis(self, text: str, score: float) -> Hypothesis:
        self.texts[len(self.texts)] = text
        return Hypothesis([len(self.texts) - 1] * len(text.split()), score, score * 2)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [self.texts[ids[0]] if ids else "" for ids in rows]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.hypothesis(text, 0.0).ids for text in texts]

    def unread(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int) -> list[int]:
        self.read += [(len(src), len(tgt)) for src, tgt in pairs]
        return [len(src) - len(tgt) for src, tgt in pairs]

    def search(self, segments: Sequence[Segment], settings: SearchSettings) -> SearchResult:
        assert self.answers is not None
        assert (settings.n_best, settings.sampling, settings.shortlist) == (settings.decode.beam_size, None, False)
        assert settings.decode.batch_tokens * settings.decode.beam_size <= 4096 * 4  # takes no more memory
        rules = [segment.rules for segment in segments]
        effort, indices = Effort(settings.n_best), [int(str(segment.key)) for segment in segments]
        if strict := [rule for rule in rules if rule is not None]:
            assert len(strict) == len(rules)
            (ngram,), (least,) = {rule.no_repeat_ngram for rule in strict}, {rule.min_tokens for rule in strict}
            exclude = tuple(tuple(word.decode() for word in rule.exclude) for rule in strict)
            effort = Effort(settings.n_best, ngram, least, exclude)
        self.asked.append((indices, effort))
        self.workers.append(settings.workers)
        return SearchResult([[self.hypothesis(*answer) for answer in self.answers(i, effort)] for i in indices])

    def guard(
        self, pairs: Sequence[tuple[str, str]], limit: int = 500, langs: tuple[str, str] = ("en", "de")
    ) -> list[Guarded]:
        segments = [
            TextSegment(owner=i, start=0, text=src, search=Segment(ids=list(range(len(src.split()))), key=i))
            for i, (src, _) in enumerate(pairs)
        ]
        results = [SegmentResult((self.hypothesis(text, -1.0),), (text,)) for _, text in pairs]
        decode = DecodeConfig(beam_size=4, batch_tokens=4096, max_extra_tokens=1000)
        found = guard(results, segments, self.plan(decode, limit, *langs))
        for before, after in zip(results, found, strict=True):
            assert (after is before) == (after.note is None)
        return [
            Guarded(one.texts[0], "" if one.note is None else str(one.note), one.hypotheses[0].score, one.sound)
            for one in found
        ]

    def plan(self, decode: DecodeConfig, limit: int, src_lang: str, tgt_lang: str) -> Plan:
        """What the guard looks at of a plan."""
        search = SearchSettings(decode=decode, workers=2, shortlist=True, sampling=Sampling(seed=1), longest=limit)
        second = SearchSettings(decode=decode, workers=1)
        known: Any = SimpleNamespace(
            engine=self, search=search, tgt_tokenizer=self,
            constrained=ConstrainedSearch(lambda: cast(Any, self), second), can_search=lambda rules: False,
            src_lang=src_lang, tgt_lang=tgt_lang, encoder=SimpleNamespace(spelling=Spelling([])),
            facts=SimpleNamespace(least_ratio=self.least_ratio), aligner=self,
        )  # fmt: skip
        return cast(Plan, known)


def strict(effort: Effort) -> bool:
    return effort.no_repeat_ngram > 0


def test_sound_translations_pass_and_nothing_is_searched_for() -> None:
    world = World()
    pairs = [(SRC, GOOD), ("hello", "hello"), ("ha ha ha ha ha", "ha ha ha ha ha"), ("7 + 8 = 15", "7 + 8 = 15")]
    result = world.guard(pairs)
    assert [(g.text, g.note, g.score) for g in result] == [(text, "", -1.0) for _, text in pairs]
    assert world.asked == []
    assert world.guard([]) == []


def test_a_sound_hypothesis_of_a_wider_beam_is_taken_the_best_of_them() -> None:
    world = World(lambda i, effort: [(LOOP, -0.5), ("zu lang " + LONG, -0.6), (GOOD, -2.0), ("schlechter", -3.0)])
    [result] = world.guard([(SRC, LOOP)])
    assert (result.text, result.score) == (GOOD, -2.0)
    assert result.note == f"text was repeated: translated again with a beam of {LEAST_BEAM}"
    assert world.asked == [([0], Effort(LEAST_BEAM))]


def test_the_widest_beam_is_not_made_wider(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.translation.guard.faults", lambda *args, **facts: ("copy",))  # nothing is good enough
    (found,) = Translator.load(tiny_run, "cpu").translate(["the dog"], beam_size=600)
    assert found.notes[0].left


def test_what_leaves_out_a_part_of_its_source_is_searched_again_and_may_not_end_early() -> None:
    part = "ein Mann fährt"  # 3 words for 9
    world = World(lambda i, effort: [(GOOD, -3.0)] if strict(effort) else [(part, -1.0)])
    world.least_ratio = 0.6
    [result] = world.guard([(SRC, part)])
    assert (result.text, result.sound) == (GOOD, True)
    how = f"without repeated {NO_REPEAT_NGRAM}-grams and without an early end"
    assert result.note == f"part of the sentence was missing: translated again {how}"
    assert [effort.min_tokens for _, effort in world.asked] == [0, 6]
    assert set(world.read) == {(9, 3)}  # what is long enough is not looked at


def test_what_stays_short_is_left_and_named() -> None:
    world = World(lambda i, effort: [("ein Mann", -0.5), ("ein Mann fährt", -1.0)])
    world.least_ratio = 0.6
    [result] = world.guard([(SRC, "ein Mann fährt")])
    assert (result.text, result.sound) == ("ein Mann", False)  # the best by score of all that are short
    assert result.note == "part of the sentence is missing; no better translation was found"


def test_a_short_translation_that_read_all_of_its_source_is_sound_and_so_is_any_where_lengths_are_unknown() -> None:
    world = World()
    world.least_ratio = 0.6
    assert not world.guard([(SRC, "ein Mann fährt Rad dort")])[0].note  # 5 words for 9: but 4 are unread
    assert world.read == [(9, 5)]
    world.least_ratio = 0.0
    assert not world.guard([(SRC, "ein Mann")])[0].note
    assert world.read == [(9, 5)]


def test_the_engine_itself_has_the_wider_beam_and_constraints_go_to_who_can_do_them() -> None:
    world = World(lambda i, effort: [(GOOD if strict(effort) else LOOP, -1.0)])
    assert world.guard([(SRC, LOOP)])[0].text == GOOD
    assert world.workers == [2, 1]


def test_no_more_hypotheses_are_looked_at_than_it_takes() -> None:
    short, whole, never = "ein Mann", "ein Mann fährt mit dem Rad", "ein Hund"
    world = World(lambda i, effort: [(whole, -2.0), (never, -3.0), (short, -1.0)])
    world.least_ratio = 0.6
    assert world.guard([(SRC, "ein Mann fährt")])[0].text == whole
    assert world.read == [(9, 3), (9, 2)]  # what was there, and what is better by score than the sound one


def test_only_what_is_wrong_is_searched_for_again() -> None:
    world = World(lambda i, effort: [(f"gut {i}", -2.0)])
    result = world.guard([(SRC, GOOD), (SRC, LOOP), (SRC, GOOD), (SRC, "")])
    assert [g.text for g in result] == [GOOD, "gut 1", GOOD, "gut 3"]
    assert [bool(g.note) for g in result] == [False, True, False, True]
    assert [indices for indices, _ in world.asked] == [[1, 3]]


def test_rules_come_second_and_those_of_a_copy_forbid_the_words_of_its_source() -> None:
    world = World(lambda i, effort: [(GOOD, -3.0)] if strict(effort) else [(LOOP, -1.0), (SRC, -2.0)])
    loop, copy = world.guard([(SRC, LOOP), (SRC, SRC)])
    assert loop.text == copy.text == GOOD
    assert loop.note == "text was repeated: translated again without repeated 3-grams"
    assert copy.note == "the source was copied: translated again without repeated 3-grams or word pairs of the source"
    (_, first), (_, second) = world.asked
    assert first.exclude == ()
    assert (second.no_repeat_ngram, second.min_tokens) == (NO_REPEAT_NGRAM, 1)
    assert second.exclude[0] == ()
    assert second.exclude[1][:3] == ("a man", "man is", "is riding")


@pytest.mark.parametrize("first", ["", "  "])
def test_something_is_found_for_nothing(first: str) -> None:
    world = World(lambda i, effort: [("gut", -3.0)] if effort.min_tokens else [("", -1.0)])
    [result] = world.guard([(SRC, first)])
    assert (result.text, result.note) == ("gut", "the translation was empty: translated again without repeated 3-grams")


def test_a_copy_or_too_much_stays_where_nothing_is_better_and_it_is_said() -> None:
    world = World(lambda i, effort: [(LOOP, -0.1), (LONG, -0.2), (SRC, -5.0), ("", -0.1)])
    [result] = world.guard([(SRC, LOOP * 2)])
    assert result.text == SRC  # a copy is less bad than too much, and than a loop
    assert result.note == "the source is copied; no better translation was found"
    world = World(lambda i, effort: [(LOOP, -0.1), (LONG, -0.2)])
    [result] = world.guard([(SRC, SRC)])
    assert (result.text, result.score) == (SRC, -1.0)  # what was found at first
    assert result.note == "the source is copied; no better translation was found"


def test_a_loop_that_can_be_cut_is_better_than_too_much() -> None:
    world = World(lambda i, effort: [(LONG, -0.1)] if strict(effort) else [(LOOP, -0.5)])
    [result] = world.guard([(SRC, LOOP)])
    assert result.text.strip() == "ein Mann"
    world = World(lambda i, effort: [("", -0.1)])
    [result] = world.guard([(SRC, LONG)])
    assert (result.text, result.note) == (
        LONG, "the translation is too long; no better translation was found",
    )  # fmt: skip


def test_a_loop_in_every_hypothesis_is_said_once() -> None:
    world = World(lambda i, effort: [(LOOP, -0.1)])
    [result] = world.guard([(SRC, LOOP * 2)])
    assert result.text.strip() == "ein Mann"
    assert result.note == "text was repeated; no better translation was found, so the repetition is removed"


def test_where_there_is_nothing_at_all_the_source_stands() -> None:
    world = World(lambda i, effort: [("", -0.1)])
    [one, emoji] = world.guard([(SRC, ""), (" 🙂 ", "")])
    assert (one.text, emoji.text) == (SRC, "🙂")
    assert one.note == "the translation was empty; no better translation was found, so the source is copied"


def test_a_loop_that_can_be_cut_is_better_than_nothing() -> None:
    world = World(lambda i, effort: [("", -0.1), ("der der der der der der Hund", -9.0)])
    [result] = world.guard([(SRC, "")])
    assert result.text == "der Hund"
    assert result.note == "text was repeated; no better translation was found, so the repetition is removed"


def test_a_translation_that_was_stopped_at_its_limit_is_searched_for_again() -> None:
    n = len(GOOD.split()) + 1  # with the end
    world = World(lambda i, effort: [("kürzer", -2.0)])
    assert world.guard([(SRC, GOOD)], limit=n + 1)[0].note == ""
    [result] = world.guard([(SRC, GOOD)], limit=n)
    assert (result.text, result.note) == (
        "kürzer",
        f"the translation was too long: translated again with a beam of {LEAST_BEAM}",
    )


def test_whatever_the_searches_find_no_loop_and_nothing_empty_is_left() -> None:
    """Of all combinations of what may come first and then."""
    kinds = [GOOD, LOOP, LONG, SRC, "", " ", "a a a a a", "哈哈哈哈哈哈哈哈", ("und so weiter " * 9).strip()]
    for first in kinds:
        for second in kinds:
            world = World(lambda i, effort, second=second: [(second, -2.0)])  # type: ignore[misc]
            [result] = world.guard([(SRC, first)])
            left = faults(SRC, result.text, Sizes(9, 9), "en", "de")
            assert not {"loop", "empty"} & set(left), (first, second, result)
            assert (result.text == first) <= (result.note == "" or "no better translation" in result.note)
            assert (result.note == "") == (first == GOOD)
            assert result.sound == ("no better translation" not in result.note)


def test_between_unknown_or_near_languages_the_source_may_be_repeated() -> None:
    world = World(lambda i, effort: [])
    assert world.guard([(SRC, SRC)], langs=("da", "nb"))[0].note == ""


# --- in the translator, with models that go wrong ---------------------------------------------------------------------


class Place(NamedTuple):
    """What an Obstinate model knows of its rows: their sources, and what has been said."""

    src: Tensor
    said: Tensor

    def select(self, rows: Tensor) -> Self:
        return self._replace(src=self.src[rows], said=self.said[rows])


class Obstinate(nn.Module):
    """A model that wants one thing most, and the right translation a little less.

    What it prefers: the ids ``favourite``, over and over (none: eos at once; "copy": its source). The second choice is
    the source word by word in the order of ``second``, then the end.
    """

    def __init__(self, vocab_size: int, favourite: list[int] | str, second: list[int]) -> None:
        super().__init__()
        self.config = SimpleNamespace(positions="sinusoidal", n_positions=None)
        self.device_tag = nn.Parameter(torch.zeros(1))
        self.vocab_size, self.favourite, self.second = vocab_size, favourite, [*second, EOS_ID]
        self.n_starts = 0

    def start(self, src: Tensor) -> Place:
        self.n_starts += 1
        return Place(src, torch.zeros(len(src), 0, dtype=torch.int64))

    def step(self, place: Place, last_ids: Tensor) -> tuple[Tensor, Place]:
        said = torch.cat((place.said, last_ids[:, None]), dim=1)
        n = said.size(1) - 1
        logits = torch.full((len(last_ids), self.vocab_size), -6.0)
        for row in range(len(last_ids)):
            src = [int(i) for i in place.src[row] if i != PAD_ID]
            favourite = src if self.favourite == "copy" else [*self.favourite] or [EOS_ID]
            so_far = said[row, 1:].tolist()
            logits[row, self.second[min(n, len(self.second) - 1)] if so_far == self.second[:n] else EOS_ID] = 2.0
            if so_far == (favourite * (n + 1))[:n]:
                logits[row, (favourite * (n + 1))[n]] = 9.0
        return logits, Place(place.src, said)


@pytest.fixture
def obstinate(tiny_run: Path) -> Callable[..., Translator]:
    """A function that makes a translator of such a model: what it wants, and what it might say instead."""
    real = load_bundle(tiny_run)

    def make(favourite: str, second: str) -> Translator:
        tokenizer = real.tgt_tokenizer
        wanted: list[int] | str = favourite if favourite == "copy" else tokenizer.encode([favourite])[0]
        model = Obstinate(tokenizer.vocab_size, wanted, tokenizer.encode([second])[0])
        known = {**real.manifest, "least_length_ratio": 0.0}  # it has no attention to look at
        return Translator(Bundle(real.config, model, *real[2:4], known))  # type: ignore[arg-type]

    return make


SENTENCE = "the dog sees a cat here today"


@pytest.mark.parametrize(
    ("favourite", "fault"), [("hund ", "loop"), ("der hund mag ", "loop"), ("", "empty"), ("copy", "copy")]
)
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_that_goes_wrong_is_searched_again(
    obstinate: Callable[..., Translator], favourite: str, fault: str, beam_size: int
) -> None:
    translator = obstinate(favourite, "der hund sieht heute")
    texts = [SENTENCE, "", "dog"]
    bad = translator.translate(texts, beam_size=beam_size, guard=False)
    assert not bad[0].notes
    warnings: list[str] = []
    told = Events(warn=lambda note: warnings.append(str(note)))
    first, blank, word = translator.translate(texts, beam_size=beam_size, events=told)
    assert first.text != bad[0].text
    assert first.notes[0].kind == fault
    assert first.notes[0].kind == fault
    assert re.search("translated again|the next best translation is taken", str(first.notes[0]))
    assert warnings[0] == f"line 1: {first.notes[0]}"
    left = faults(SENTENCE, first.text, Sizes(9, first.n_tokens), "en", "de")
    assert left == ()
    assert (blank.text, blank.notes) == ("", ())
    assert word.text == ("dog" if favourite == "copy" else word.text)  # one word is never a copy
    assert word.text


def test_another_translation_of_the_same_search_is_tried_before_any_other_search() -> None:
    world = World(lambda i, effort: [("ein ganz anderer Satz", -1.0)])
    segment = TextSegment(owner=0, start=0, text=SENTENCE, search=Segment(ids=list(range(9)), key=0))
    loop, sound, worse = (
        world.hypothesis(text, score)
        for text, score in (("hund " * 8, -0.1), ("der hund sieht", -0.2), ("die katze sieht", -0.3))
    )
    plan = world.plan(DecodeConfig(beam_size=4, batch_tokens=4096, max_extra_tokens=1000), 500, "en", "de")
    result = SegmentResult((loop,), ("hund " * 8,), spare=(worse, sound))
    [found] = guard([result], [segment], plan)
    assert (found.texts, found.hypotheses[0].score, world.asked) == (("der hund sieht",), -0.2, [])
    assert str(found.note) == "text was repeated: the next best translation is taken"
    [found] = guard([dataclasses.replace(result, spare=(loop,))], [segment], plan)
    assert (found.texts, len(world.asked)) == (("ein ganz anderer Satz",), 1)


@pytest.mark.parametrize(
    ("rules", "searches"),
    [({"include": ((1,) * 20,)}, 1), ({"include": ((1,) * 10, (2,) * 11)}, 0), ({"prefix": b"a" * 200}, 1),
     ({"prefix": b"a" * 300}, 0), ({"exclude": (b"a" * 1000,)}, 1)],
)  # fmt: skip
def test_a_sentence_with_many_forced_subwords_is_not_searched_again(rules: dict[str, Any], searches: int) -> None:
    """Its search takes seconds, and the fault mostly stands in what is forced; the note stays."""
    world = World(lambda i, effort: [(GOOD, -1.0)])
    search = Segment(ids=list(range(9)), key=0, rules=Rules(Spelling([]), **rules))
    segment = TextSegment(owner=0, start=0, text=SRC, search=search)
    plan = world.plan(DecodeConfig(beam_size=4, batch_tokens=4096, max_extra_tokens=1000), 500, "en", "de")
    [found] = guard([SegmentResult((world.hypothesis(LOOP, -0.1),), (LOOP,))], [segment], plan)
    assert len(world.asked) == searches
    assert found.note is not None
    assert found.note.left == (searches == 0)


def test_alternatives_are_candidates_and_as_many_are_left_of_what_was_found() -> None:
    world = World(lambda i, effort: [("ein ganz anderer Satz", -1.0)])
    segment = TextSegment(owner=0, start=0, text=SENTENCE, search=Segment(ids=list(range(9)), key=0))
    texts = ("hund " * 8, "der hund sieht", "die katze sieht", "die katze schläft")
    found = [world.hypothesis(text, -0.1 * rank) for rank, text in enumerate(texts, 1)]
    result = SegmentResult(tuple(found[:2]), texts[:2], spare=tuple(found[2:]))
    plan = world.plan(DecodeConfig(beam_size=4, batch_tokens=4096, max_extra_tokens=1000), 500, "en", "de")
    sampled = plan.search
    plan.search = dataclasses.replace(sampled, sampling=None)  # type: ignore[misc]
    [guarded] = guard([result], [segment], plan)
    assert (guarded.texts, world.asked) == (texts[1:3], [])
    assert str(guarded.note) == "text was repeated: the next best translation is taken"
    assert [one.score for one in guarded.hypotheses] == sorted((one.score for one in guarded.hypotheses), reverse=True)
    # samples stay, even those that are the same as what takes the place of the faulty one
    plan.search = sampled  # type: ignore[misc]
    same = world.hypothesis("ein ganz anderer Satz", -1.0)
    world.answers = None
    world.search = lambda segments, settings: SearchResult([[same]])  # type: ignore[method-assign]
    drawn = SegmentResult((found[0], same, same, found[1]), (texts[0], *2 * ["ein ganz anderer Satz"], texts[1]))
    [guarded] = guard([drawn], [segment], plan)
    assert guarded.texts == (*3 * ["ein ganz anderer Satz"], texts[1])


def test_the_second_choice_of_the_model_is_found(obstinate: Callable[..., Translator]) -> None:
    [found] = obstinate("", "der hund sieht heute").translate([SENTENCE], beam_size=2)
    assert found.text == "der hund sieht heute"
    assert found.notes == (Note("empty", f"the translation was empty: translated again with a beam of {LEAST_BEAM}"),)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_end_can_be_kept_from_coming_at_once(obstinate: Callable[..., Translator], beam_size: int) -> None:
    translator = obstinate("", "der hund sieht heute")
    config = dataclasses.replace(translator.config.decode, beam_size=beam_size)
    spelling = Spelling(translator.tgt_tokenizer.spelled)

    def n_tokens(least: int) -> int:
        rules = [Rules(spelling, min_tokens=least)]
        return len(search_all(translator.model, [[9, 8]], config, translator.device, rules=rules)[0][0].ids)

    assert n_tokens(0) == 0
    assert [n_tokens(least) >= least for least in (1, 2, 5)] == [True] * 3


def test_good_output_costs_no_search(obstinate: Callable[..., Translator]) -> None:
    translator = obstinate("copy", "der hund")
    model = translator.model
    found = translator.translate(["dog", "7 8 9", "haus"])  # copies of which none is a fault
    assert [one.notes for one in found] == [(), (), ()]
    assert model.n_starts == 1


def test_what_was_asked_for_holds_in_the_second_search_too(obstinate: Callable[..., Translator]) -> None:
    translator = obstinate("hund ", "der hund sieht heute")
    [found] = translator.translate([SENTENCE], prefix="ein", exclude=["heute"], beam_size=2)
    assert found.text.startswith("ein")
    assert "heute" not in found.text.split()
    assert not {"loop", "empty"} & set(faults(SENTENCE, found.text, Sizes(9, 9), "en", "de"))


def test_a_part_of_a_long_line_is_named_in_its_note(obstinate: Callable[..., Translator]) -> None:
    translator = obstinate("hund ", "der hund sieht heute")
    chance = random.Random(0)
    long = " ".join(chance.choices(["dog", "cat", "sees", "finds", "a", "the"], k=280))
    [found] = translator.translate([long])
    n, (*of_parts, seam) = found.n_parts, found.notes
    assert n == len(of_parts) > 1
    assert all(str(note).endswith(f" (part {k} of {n})") for k, note in enumerate(of_parts, 1))
    assert str(seam) == "text was repeated where two parts of the sentence meet; the repetition is removed"
    assert {note.kind for note in found.notes} == {"loop"}
    assert found.text.strip() == "hund"  # each part says it, and the line does not say it over and over


def test_the_guard_gives_the_same_in_every_batch(tiny_run: Path) -> None:
    """With the trained model, on text that drives it into faults."""
    translator = Translator.load(tiny_run, "cpu")
    chance = random.Random(3)
    words = ["dog", "cat", "the", "xyz", "!!!", "QQQ", "🙂", "sees", "1234"]
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 20))) for _ in range(12)]
    alone = translator.translate(texts, deterministic=True)
    assert sum(bool(one.notes) for one in alone) > 2
    assert any(not one.notes for one in alone)
    assert [(f.text, f.notes) for f in translator.translate(texts)] == [(f.text, f.notes) for f in alone]
    order = list(range(len(texts)))
    chance.shuffle(order)
    for size in (1, 5):
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            found = translator.translate([texts[i] for i in batch])
            assert [(f.text, f.notes) for f in found] == [(alone[i].text, alone[i].notes) for i in batch]
            assert [f.score for f in found] == pytest.approx([alone[i].score for i in batch], abs=1e-5)
    for text, one in zip(texts, alone, strict=True):
        if one.n_parts > 1:
            continue  # each part is sound; two of them may say the same
        left = faults(text, one.text, Sizes(30, 1), "en", "de")
        assert not {"loop", "empty"} & set(left) or one.n_parts > 1, (text, one)
        assert one.text.strip()
        assert without_runs(text, one.text) == one.text  # not even where parts meet


def test_the_command_line_says_what_was_seen_in_which_line(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    chance = random.Random(3)
    words = ["dog", "cat", "the", "xyz", "!!!", "QQQ", "🙂", "sees", "1234"]
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 30))) for _ in range(12)]
    (tmp_path / "text").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    done = command("translate", tiny_run, "text", "--json", "-v", cwd=tmp_path)
    assert done.status == 0
    lines = [json.loads(line) for line in done.out.decode().splitlines()]
    noted = {number: line["notes"] for number, line in enumerate(lines, 1) if "notes" in line}
    assert noted
    said = [line for line in done.err.splitlines() if line.startswith("warning:") and "; split into " not in line]
    assert said == [f"warning: text:{n}: {note['text']}" for n, notes in noted.items() for note in notes]
    bare = command("translate", tiny_run, "text", "--no-guard", cwd=tmp_path)
    assert bare.status == 0
    assert not any("translated again" in line for line in bare.err.splitlines())
    outputs = bare.out.decode().split("\n")
    assert all(outputs[n - 1] == line["text"] for n, line in enumerate(lines, 1) if n not in noted)
