"""What must arrive is cut out where the model loses it, and put back into its place; what is missing is named."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.decoding.request import Hypothesis, SearchResult, Segment
from dragoman.translation.keeping.carrying import put_in
from dragoman.translation.keeping.cutting import put_back, without
from dragoman.translation.keeping.protected import find
from dragoman.translation.notes import QUIET
from dragoman.translation.plan import Plan
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import SegmentResult, segment
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("🙂 A dog runs.", "A dog runs."),
        ("A dog runs. 🙂", "A dog runs."),
        ("A dog 🙂 runs.", "A dog runs."),
        ("A dog runs (https://a.org/b).", "A dog runs."),
        ("Mail info@example.org, please.", "Mail, please."),
        ("A <b>big</b> dog", "A big dog"),
        ("A 21-year-old man", "A year-old man"),
        ("https://a.org/b", ""),
    ],
)
def test_a_span_is_cut_out_with_its_space_and_brackets(text: str, bare: str) -> None:
    assert without(text, find(text))[0] == bare


@pytest.mark.parametrize(
    ("src", "tgt", "links", "expected"),
    [
        ("🙂 A dog runs.", "Ein Hund rennt.", ((0, 0), (1, 1), (2, 2)), "🙂 Ein Hund rennt."),
        ("A dog runs. 🙂", "Ein Hund rennt.", ((0, 0), (1, 1), (2, 2)), "Ein Hund rennt. 🙂"),
        ("A dog runs 🙂.", "Ein Hund rennt.", ((0, 0), (1, 1), (2, 2)), "Ein Hund rennt 🙂."),
        ("A dog 🙂 runs.", "Ein Hund rennt.", ((0, 0), (1, 1), (2, 2)), "Ein Hund 🙂 rennt."),
        ("Today the 12 dogs run.", "12er Die Hunde rennen heute.", ((0, 4), (1, 1), (2, 2), (3, 3)),
         "12er Die 12 Hunde rennen heute."),
        ("A dog (https://a.org/b) runs, %s.", "Ein Hund rennt.", ((0, 0), (1, 1), (2, 2)),
         "Ein Hund (https://a.org/b) rennt %s."),
        ("A <b>big</b> dog", "Ein großer Hund", ((0, 0), (1, 1), (2, 2)), "Ein <b>großer</b> Hund"),
        ("2. Dogs run.", "Hunde rennen.", ((0, 0), (1, 1)), "2. Hunde rennen."),  # the mark of a list is the number's
        ("2 Dogs run.", "Hunde rennen.", ((0, 0), (1, 1)), "2 Hunde rennen."),
        ("A dog 🙂 runs", "Ein Hund rennt", (), "Ein Hund 🙂 rennt"),  # no links: where it is by length
    ],
)  # fmt: skip
def test_a_span_is_put_where_the_alignment_says(src: str, tgt: str, links: tuple, expected: str) -> None:
    bare, cuts = without(src, find(src))
    assert put_back(bare, cuts, tgt, links, (False, False)) == expected


def test_there_are_no_spaces_where_a_language_has_none_and_nothing_comes_into_a_prefix() -> None:
    bare, cuts = without("A dog 🙂 runs", find("A dog 🙂 runs"))
    assert put_back(bare, cuts, "狗跑", ((1, 0), (2, 1)), (False, True)) == "狗🙂跑"
    bare, cuts = without("🙂 A dog runs", find("🙂 A dog runs"))
    assert put_back(bare, cuts, "Der Hund rennt", (), (False, False), first=3) == "Der 🙂 Hund rennt"


LINES = [
    "the dog sees a cat https://www.example.org/a?b=1", "🙂 the man sleeps here", "the woman %s finds {name} the house",
    "<b>the</b> dog runs &amp; sleeps", "the man sees 4711 red cat", "mail info@example.org today",
]  # fmt: skip


def test_what_a_model_never_saw_arrives_and_the_rest_is_translated_as_if_it_were_not_there(
    translator: Translator,
) -> None:
    for line, one in zip(LINES, translator.translate(LINES), strict=True):
        bare, _ = without(line, find(line))
        assert all(span.text in one.text for span in find(line))
        assert without(one.text, find(one.text))[0] == translator.translate([bare])[0].text
        assert [note for note in one.notes if note.kind in ("number", "placeholder")] == []
    unprotected = translator.translate(LINES, protect=False)
    assert any(find(line)[0].text not in one.text for line, one in zip(LINES, unprotected, strict=True))


def test_a_line_without_any_is_translated_as_ever(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["the dog runs", "a big cat sleeps here today"]
    searched = []
    plan = translator.plan()
    search = plan.engine.search
    monkeypatch.setattr(plan.engine, "search", lambda some, *rest: searched.append(len(some)) or search(some, *rest))
    assert translator.translate(lines, plan) == translator.translate(lines, protect=False)
    assert [n for n in searched if n] == [2, 2]  # each once


def test_a_line_of_nothing_else_is_copied(translator: Translator) -> None:
    lines = ["https://www.example.org/a", "🙂🙂 :-)", "<br/> %s", "00:00:01,000 --> 00:00:03,500"]
    found = translator.translate(lines)
    assert [one.text for one in found] == lines
    assert [[note.kind for note in one.notes] for one in found] == [[], [], [], ["not_text"]]


def test_a_line_of_signs_alone_follows_the_words_that_are_asked_for(translator: Translator) -> None:
    for line in ("🙂", "https://www.example.org/a", "🙂 5", "https://www.example.org/a 🙂"):
        begun = translator.translate(line, prefix="der ")
        assert begun.text == f"der {line}"
        with_word = translator.translate(line, include=["hund"])
        assert with_word.text == f"hund {line}"
        assert [
            note.kind for note in (*begun.notes, *with_word.notes) if note.kind in ("constraint", "placeholder")
        ] == []


def test_alternatives_whose_number_stays_wrong_do_not_change_the_best(translator: Translator) -> None:
    plan = translator.plan(n_best=3, beam_size=3)
    segments = segment(["the dog 1943 sleeps"], plan, QUIET)
    texts = "der hund 1934 schlaeft", "der hund schlaeft", "hund 1943 schlaeft"
    ids = translator.tgt_tokenizer.encode(list(texts))
    found = SegmentResult(tuple(Hypothesis(own, -i, -i) for i, own in enumerate(ids, 1)), texts)
    (one,) = put_in([found], segments, {}, plan)
    assert one.texts == ("der hund 1943 schlaeft", "hund 1943 schlaeft")
    assert [each.score for each in one.hypotheses] == [-1, -3]
    drawn = translator.plan(sample=True, n_best=3)
    (one,) = put_in([found], segments, {}, drawn)
    assert one.texts == ("der hund 1943 schlaeft", *texts[1:])  # a sample stays as it was drawn


def test_every_one_of_the_best_has_it_and_alignments_go_with_the_new_text(translator: Translator) -> None:
    (one,) = translator.translate(["the dog 🙂 sleeps"], n_best=3, beam_size=4, alignments=True)
    assert all("🙂" in other.text for other in (one, *one.alternatives))
    assert one.alignment is not None
    assert max(tgt for _, tgt in one.alignment) < len(one.text.split())


def test_what_is_missing_even_so_is_named(translator: Translator) -> None:
    plan = translator.plan()
    segments = segment(["the dog sees %s and 4711"], plan, QUIET)
    results = translate_segments(segments, plan)
    assert results[0].lost is None
    (named,) = put_in([replace(results[0], texts=("der hund sieht 4711",))], segments, {}, plan)
    assert named.lost is not None
    assert (named.lost.kind, named.lost.left) == ("placeholder", True)
    assert named.lost.text == "missing in the translation: the placeholder '%s'"


def test_it_goes_with_ctranslate2_too(tiny_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    shutil.copytree(tiny_run, tmp_path / "run")
    translator = Translator.load(tmp_path / "run", "cpu")
    texts = [[one.text for one in translator.translate(LINES, engine=engine)] for engine in ("ctranslate2", "torch")]
    assert texts[0] == texts[1]


class Reverser:
    """An engine that says the words of its source backwards, and loses what is neither a word nor a mask."""

    name = "reverser"

    def __init__(self, translator: Translator, keeps: str) -> None:
        self.tokenizer, self.keeps = translator.tgt_tokenizer, re.compile(keeps)
        self.asked: list[str] = []

    def search(self, segments: Sequence[Segment], *rest: object) -> SearchResult:
        texts = self.tokenizer.decode([segment.ids for segment in segments])
        self.asked += texts
        said = [" ".join(word for word in reversed(text.split()) if self.keeps.fullmatch(word)) for text in texts]
        sure = [-100.0 * 0.1 ** text.count("[") for text in texts]  # what was cut out leaves it unsure
        return SearchResult([[Hypothesis(ids, p, p)] for ids, p in zip(self.tokenizer.encode(said), sure, strict=True)])


def with_masks(plan: Plan, engine: Any) -> Plan:
    """A plan of a model that has learned masks."""
    return replace(plan, engine=engine, facts=replace(plan.facts, masks="[{}]"))


@pytest.mark.parametrize(
    ("keeps", "asked", "expected"),
    [
        (r"[a-z]+|\[\d\]", ["the dog [1] sees [2]", "the dog sees"], "%s sees 🙂 dog the"),
        (r"[a-z]+", ["the dog [1] sees [2]", "the dog sees"], None),  # it has not learned them after all
    ],
)
def test_masks_that_a_model_has_learned_stand_for_what_is_missing(
    translator: Translator, keeps: str, asked: list[str], expected: str | None
) -> None:
    engine = Reverser(translator, keeps)
    plan = with_masks(translator.plan(guard=False), engine)
    (one,) = translator.translate(["the dog 🙂 sees %s"], plan)
    assert engine.asked == ["the dog 🙂 sees %s", *asked]
    assert one.text == expected or (expected is None and "🙂" in one.text and "%s" in one.text)
    assert one.notes == ()


def test_a_mask_that_the_text_has_is_not_used(translator: Translator) -> None:
    engine = Reverser(translator, r"[a-z]+|\[\d\]")
    plan = with_masks(translator.plan(guard=False), engine)
    (one,) = translator.translate(["see [1] and %s"], plan)
    assert engine.asked[1] == "see [1] and [2]"
    assert one.text == "%s and [1] see"


def test_what_touches_a_word_is_cut_out_and_not_masked(translator: Translator) -> None:
    engine = Reverser(translator, r"[a-z]+|\[\d\]")
    plan = with_masks(translator.plan(guard=False), engine)
    translator.translate(["the <b>big</b> dog"], plan)
    assert engine.asked[1] == "the big dog"


@pytest.mark.parametrize(
    "span", ["{dog}", "dog@example.org", "https://www.dog.com/dog", "dog.txt", "#dog", "`a dog`", '<i a="the dog">']
)
def test_a_span_that_contains_a_term_arrives_unchanged(translator: Translator, span: str) -> None:
    """A match inside a span took its protection, and its translation had to appear besides."""
    glossary = {"dog": "wauwau", "the dog": "wuff", "example": "Beispiel"}
    (translation,) = translator.translate([f"a cat sees {span} today"], glossary=glossary)
    assert span in translation.text
    assert not any(word in translation.text for word in glossary.values())
    assert translation.terms == ()
    assert [note for note in translation.notes if note.kind in ("placeholder", "constraint")] == []
    (translation,) = translator.translate([f"the dog sees {span} today"], glossary=glossary)
    assert span in translation.text
    assert translation.terms == ("the dog",)
    assert "wuff" in translation.text
