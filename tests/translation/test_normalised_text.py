"""Lines altered in ways that a reader does not see: the same translation, score and alignment; outer space put back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.normalising import ALTERATIONS, altered
from dragoman.bundle import load_bundle
from dragoman.data.normalisation import NO_RULES, with_normaliser
from dragoman.translation.notes import QUIET
from dragoman.translation.segments import segment
from dragoman.translation.translator import Translator

LINES = ["the dog sees a small cat", "a woman finds the red house today", "a man likes here the big tree"]


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run)


@pytest.fixture
def old(reseal: Callable[..., Path], tiny_run: Path) -> Translator:
    """The same model with subwords as they were before texts were normalised."""
    proto = load_bundle(tiny_run).src_tokenizer.proto
    return Translator.load(reseal(joint=with_normaliser(proto, NO_RULES)))


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_an_altered_line_is_translated_and_scored_as_the_line_itself(translator: Translator, kind: str) -> None:
    plain, changed = translator.translate(LINES, n_best=2), altered(kind, LINES)
    for line, src, other in zip(plain, changed, translator.translate(changed, n_best=2), strict=True):
        before, after = src[: len(src) - len(src.lstrip())], src[len(src.rstrip()) :]
        assert other.text == before + line.text + after
        assert [one.text for one in other.alternatives] == [before + one.text + after for one in line.alternatives]
        assert (other.score, other.confidence) == (pytest.approx(line.score, abs=1e-4), line.confidence)
        assert [note.kind for note in other.notes] == [note.kind for note in line.notes]
    targets = [line.text for line in plain]
    own = translator.score(LINES, targets, alignments=True)
    for sources, hyps in ((changed, targets), (LINES, altered(kind, targets))):
        scored = translator.score(sources, hyps, alignments=True)
        assert [one.log_prob for one in scored] == pytest.approx([one.log_prob for one in own], abs=1e-3)
        assert [one.alignment for one in scored] == [one.alignment for one in own]


def test_alignments_of_a_translation_do_not_drift(translator: Translator) -> None:
    own = translator.translate(LINES, alignments=True)
    for kind in ALTERATIONS:
        found = translator.translate(altered(kind, LINES), alignments=True)
        assert [line.alignment for line in found] == [line.alignment for line in own]


def test_a_prefix_is_followed_as_the_model_writes_it_and_arrives_as_given(translator: Translator) -> None:
    plain = translator.translate(LINES[0], prefix="eine katze ")
    for prefix in ("eine\u00a0katze ", "eine  katze\u00a0", "\ufeffeine katze ", "eine k\u00adatze "):
        line = translator.translate(LINES[0], prefix=prefix)
        assert line.text == prefix + plain.text.removeprefix("eine katze ")
        assert line.score == pytest.approx(plain.score, abs=1e-4)
        assert not [note for note in line.notes if note.kind == "constraint"]


def test_words_to_include_and_to_exclude_are_those_that_the_model_writes(translator: Translator) -> None:
    line = translator.translate(LINES[0], include=["f\u00adrau\u00a0"])
    assert "frau" in line.text.split()
    assert not [note for note in line.notes if note.kind == "constraint"]
    assert "hund" in translator.translate(LINES[0]).text
    assert "hund" not in translator.translate(LINES[0], exclude=["h\u00adund"]).text


def test_what_must_arrive_arrives_as_it_stands_in_the_source(translator: Translator) -> None:
    source = "the dog sees  http://a.example/x\u00adyz  and 1\u202f234\u202f567\u00a0today"
    text = translator.translate(source).text
    assert "http://a.example/x\u00adyz" in text
    assert "1\u202f234\u202f567" in text


def test_a_line_of_invisible_characters_alone_is_blank(translator: Translator) -> None:
    found = translator.translate(["\u200b", "\u200b \ufeff", "", " \u00a0 ", LINES[0]])
    assert [line.text.strip() for line in found[:4]] == [""] * 4
    assert [line.n_parts for line in found] == [0, 0, 0, 0, 1]
    assert translator.score(["\u200b"], ["hund"])[0].notes[0].kind == "not_scored"


def test_subwords_without_rules_translate_every_character_as_it_is(old: Translator, translator: Translator) -> None:
    assert old.src_tokenizer is old.tgt_tokenizer
    assert old.src_tokenizer.encode([" the  dog\t"]) != old.src_tokenizer.encode(["the dog"])
    options: dict[str, Any] = {"guard": False}
    assert old.translate(LINES, **options)[0] == translator.translate(LINES, **options)[0]
    assert not old.translate("  the dog  ", **options).text.endswith("  ")


def test_a_bundle_names_its_normalisation(tiny_run: Path) -> None:
    assert load_bundle(tiny_run).manifest["normalisation"] == "standard"


@pytest.mark.parametrize(
    "line", ["the dog" + " " * 20_000, "\t" * 20_000 + "the dog", " " * 9000 + "the dog" + " " * 9000]
)
def test_an_older_model_reads_no_thousands_of_spaces(old: Translator, line: str) -> None:
    [only] = segment([line], old.plan(), QUIET)
    assert only.text == "the dog"
    assert old.translate([line])[0].text == old.translate(["the dog"])[0].text
    assert segment(["the dog  "], old.plan(), QUIET)[0].text == "the dog  "
