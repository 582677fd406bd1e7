"""A part that is put in stands between words of every script, never inside a cluster, a word, a span or a term."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dragoman.decoding.words import word_spans
from dragoman.translation.keeping.cutting import put_back, without
from dragoman.translation.keeping.places import closed_places, in_subwords, open_place
from dragoman.translation.keeping.placing import occurrences
from dragoman.translation.keeping.protected import find
from dragoman.translation.keeping.rendering import cores, runs
from dragoman.translation.translator import Translator
from script_texts import is_spaced, places_inside, words_by_script

SOURCES = ("31 dogs run", "the 31 dogs run", "dogs run on 31", "dogs <b>run</b> now", "dogs 🙂 run", "see %s and 31")


@pytest.mark.parametrize("script", sorted(words_by_script()))
def test_no_part_is_put_inside_a_word_or_cluster_of_any_script(script: str) -> None:
    chance = random.Random(40)
    words = [word for word in words_by_script()[script] if len(word) > 1]
    unspaced = not is_spaced(words[0])
    for _ in range(12):
        some = chance.sample(words, 2)
        tgt = some[0] if unspaced else " ".join(some)
        src = chance.choice(SOURCES)
        bare, cuts = without(src, find(src))
        links = tuple((chance.randrange(len(bare.split())), k) for k in range(0, len(word_spans(tgt, unspaced)), 2))
        text = put_back(bare, cuts, tgt, links, (False, unspaced))
        pieces = text
        for cut in cuts:
            assert cut.text in text
            pieces = pieces.replace(cut.text, "\n", 1)
        edge = 0
        for piece in pieces.split("\n")[:-1]:
            edge += len(piece.replace(" ", ""))
            plain = tgt.replace(" ", "")
            inside = places_inside(tgt) if unspaced else {k for k in range(1, len(plain)) if k != len(some[0])}
            assert edge not in inside or " " in tgt[edge - 1 : edge + 1], (src, tgt, text)


@pytest.mark.parametrize(
    ("tgt", "inside"),
    [
        ("ค.ศ. ๒", "ค.ศ."),
        ("the U.S. now", "U.S."),
        ("ดู %(name)sแล้ว", "%(name)s"),
        ("我在Berlin住", "Berlin"),
        ("約1.5倍", "1.5"),
    ],
)
def test_abbreviations_spans_and_words_of_other_scripts_stay_whole(tgt: str, inside: str) -> None:
    start = tgt.index(inside)
    closed = closed_places(tgt)
    assert set(range(start + 1, start + len(inside))) <= closed
    assert not closed & {start, start + len(inside)}
    bare, cuts = without("a 31 b", find("a 31 b"))
    for k in range(len(word_spans(tgt, True))):
        assert inside in put_back(bare, cuts, tgt, ((0, k - 1), (1, k)), (False, True))


def test_a_number_has_spaces_around_it_where_the_script_writes_them() -> None:
    bare, cuts = without("dogs 31 run", find("dogs 31 run"))
    assert put_back(bare, cuts, "หมาวิ่ง", ((0, 0), (0, 1), (1, 2)), (False, True)) == "หมา 31 วิ่ง"
    assert put_back(bare, cuts, "ที่", ((0, 0),), (False, True)) == "ที่ 31"
    assert put_back(bare, cuts, "狗跑", ((0, 0), (1, 1)), (False, True)) == "狗31跑"
    closed = {place for start, end in occurrences("หมาวิ่ง", "หมาวิ่ง") for place in range(start + 1, end)}
    assert "หมาวิ่ง" in put_back(bare, cuts, "หมาวิ่ง", ((0, 0), (1, 2)), (False, True), 0, closed)


def test_what_translates_one_word_stays_together_in_thai_but_not_in_chinese() -> None:
    bare, cuts = without("must 31 define", find("must 31 define"))
    links = ((0, 0), (1, 1), (1, 2), (1, 3))
    assert "กำหนด" in put_back(bare, cuts, "ก็กำหนด", links, (False, True))
    assert open_place(3, {2, 3, 4}, 9) == 5
    assert open_place(1, {1}, 2) == 2


def test_a_run_of_characters_that_a_term_replaces_ends_at_open_places(tiny_run: Path) -> None:
    text = "จำนวนปี"
    spans = cores(text, unspaced=True)
    odds = [-1.0, 9.0, 9.0, -1.0, 5.0][: len(spans)] + [5.0] * (len(spans) - 5)
    assert (runs(odds, spans, True)[0].start, runs(odds, spans, True)[0].end) != (0, 5)
    closed = set(range(1, 5))
    assert all(not closed & {run.start, run.end} for run in runs(odds, spans, True, closed))
    tokenizer = Translator.load(tiny_run, "cpu").tgt_tokenizer
    assert in_subwords("a dog", tokenizer.encode(["a dog"])[0], tokenizer) == set()
