"""Lines of several sentences: cut, translated one by one, joined as they were."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.bundle import Bundle, load_bundle
from dragoman.data.store import Store
from dragoman.errors import BundleError
from dragoman.translation.assemble import best_sums
from dragoman.translation.confidence import confidence_features, fit
from dragoman.translation.keeping.protected import find, has_letters
from dragoman.translation.notes import QUIET, Events
from dragoman.translation.segments import segment, split_text
from dragoman.translation.translator import Translator
from echo import Echo

JOINED = "the dog sees a cat.  a man sleeps!\tthe house?"
GUARD_OFF: dict[str, Any] = {"guard": False}


def echo_of(tiny_run: Path, tgt_lang: str = "de", **facts: Any) -> Translator:
    real = load_bundle(tiny_run)
    model: Any = Echo(real.src_tokenizer.vocab_size)
    data = real.config.data.model_copy(update={"tgt_lang": tgt_lang})
    config = real.config.model_copy(update={"data": data})
    return Translator(Bundle(config, model, *real[2:4], facts))


def parts(translator: Translator, text: str, **options: Any) -> list[str]:
    return [each.text for each in segment([text], translator.plan(**options), QUIET)]


def test_a_line_is_cut_into_sentences_and_joined_with_its_own_spaces(tiny_run: Path) -> None:
    echo = echo_of(tiny_run)
    warned: list[Any] = []
    texts = [JOINED, "one dog", f"  {JOINED} ", "the dog.\n\na cat.", "狗。猫。"]
    found = echo.translate(texts, events=Events(warn=warned.append), **GUARD_OFF)
    assert [one.text for one in found] == [
        JOINED, "one dog", f"  {JOINED} ", "the dog.  a cat.", "狗。 猫。"
    ]  # fmt: skip
    assert [one.n_parts for one in found] == [3, 1, 3, 2, 2]
    assert {note.kind for note in warned} == {"script"}  # Chinese; splitting is no more than what was asked for
    assert parts(echo, JOINED) == ["the dog sees a cat.", "a man sleeps!", "the house?"]


def test_there_are_no_spaces_between_sentences_where_the_target_language_has_none(tiny_run: Path) -> None:
    [found] = echo_of(tiny_run, tgt_lang="zh").translate(["the dog. a cat.\u3000the man.\tall."], **GUARD_OFF)
    assert found.text == "the dog.a cat.\u3000the man.\tall."


def test_as_many_sentences_as_a_training_line_has_stay_together(tiny_run: Path) -> None:
    echo = echo_of(tiny_run, usual_src_sentences=2)
    assert echo.usual_sentences == 2
    assert parts(echo, JOINED) == ["the dog sees a cat.  a man sleeps!", "the house?"]
    assert parts(echo, "the dog. a cat.") == ["the dog. a cat."]
    short = echo_of(tiny_run, usual_src_sentences=9, usual_src_tokens=32)
    sentence = " ".join(["a cat"] * 10) + "."
    assert parts(short, " ".join([sentence] * 3)) == [sentence] * 3  # but no more than the tokens of one


def test_what_is_asked_for_decides(tiny_run: Path) -> None:
    assert parts(echo_of(tiny_run), JOINED, sentence_split=False) == [JOINED]


def test_a_sentence_that_is_too_long_is_split_with_a_warning_and_the_others_are_not(tiny_run: Path) -> None:
    echo = echo_of(tiny_run, usual_src_tokens=32)
    long = " ".join(["the dog sees a cat"] * 40)
    warned: list[str] = []
    told = Events(warn=lambda note: warned.append(str(note)))
    [found] = echo.translate([f"a man. {long}. the house."], events=told, **GUARD_OFF)
    assert found.text == f"a man. {long}. the house."
    n_tokens = len(echo.src_tokenizer.encode([f"{long}."])[0])
    assert warned == [f"line 1: {n_tokens} tokens are more than 32; split into {found.n_parts - 2}"]


def test_the_glossary_and_the_prefix_are_for_the_sentence_they_belong_to(tiny_run: Path) -> None:
    plan = echo_of(tiny_run).plan(glossary={"house": "Haus", "dog": "Hund"}, prefix="Nun", include=["Rad"])
    made = segment([JOINED], plan, QUIET)
    constraints = [each.constraints for each in made if each.constraints is not None]
    assert [[word for word, _ in each.placed] for each in constraints] == [["Rad", "Hund"], [], ["Haus"]]
    assert [each.prefix for each in constraints] == ["Nun", "", ""]


@pytest.mark.parametrize(
    "options",
    [
        {}, {"n_best": 2, "alignments": True}, {"sample": True, "seed": 3}, {"deterministic": True},
        {"engine": "ctranslate2"}, {"threads": 2}, {"beam_size": 1},
    ],
    ids=str,
)  # fmt: skip
def test_the_first_sentence_of_a_line_becomes_what_it_becomes_alone(
    tiny_run: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    if options.get("engine") == "ctranslate2":
        pytest.importorskip("ctranslate2")
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")  # beside which CTranslate2's model is written
    translator = Translator.load(tmp_path / "run", "cpu")
    texts = ["the dog sees a cat.", "a man sleeps."]
    alone = translator.translate(texts, **options)
    [joined] = translator.translate([" ".join(texts)], **options)
    assert joined.n_parts == 2
    assert joined.text.startswith(alone[0].text)  # samples of the second are others: it stands elsewhere
    if not options.get("sample"):
        assert joined.text == f"{alone[0].text} {alone[1].text}"
        assert joined.log_prob == pytest.approx(alone[0].log_prob + alone[1].log_prob, abs=1e-4)
    if options.get("alignments"):
        n_src, n_tgt = len(texts[0].split()), len(alone[0].text.split())
        later = tuple((src + n_src, tgt + n_tgt) for src, tgt in alone[1].alignment or ())
        assert joined.alignment == (*(alone[0].alignment or ()), *later)


def test_the_n_best_of_a_line_are_the_best_combinations_of_its_sentences(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    texts = ["the dog sees a cat.", "a man sleeps here.", "tree house."]
    apart = [[one, *one.alternatives] for one in translator.translate(texts, n_best=4)]
    [joined] = translator.translate([" ".join(texts)], n_best=4)
    every = [(sum(one.score for one in chosen), " ".join(one.text for one in chosen)) for chosen in product(*apart)]
    wanted = sorted(every, reverse=True)[:4]
    found = [joined, *joined.alternatives]
    assert [one.score for one in found] == pytest.approx([score for score, _ in wanted], abs=1e-5)
    assert [one.text for one in found] == [text for _, text in wanted]


def test_a_line_is_scored_sentence_by_sentence_where_both_sides_have_as_many(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    sources, targets = (
        ["the dog sees a cat.", "a man sleeps here."],
        ["der hund sieht ein katze.", "Ein mann schlaeft."],
    )
    options: dict[str, Any] = {"alignments": True}
    one, other = translator.score(sources, targets, **options)
    [joined] = translator.score([" ".join(sources)], ["\t".join(targets)], **options)
    assert joined.log_prob == pytest.approx(one.log_prob + other.log_prob, abs=1e-5)
    assert joined.score == pytest.approx(one.score + other.score, abs=1e-5)
    assert (joined.tokens, joined.n_tokens) == (one.tokens + other.tokens, one.n_tokens + other.n_tokens)
    assert joined.token_log_probs == pytest.approx(one.token_log_probs + other.token_log_probs, abs=1e-5)
    later = tuple((src + 5, tgt + 5) for src, tgt in other.alignment or ())
    assert joined.alignment == (*(one.alignment or ()), *later)
    whole = translator.score([" ".join(sources)], ["\t".join(targets)], sentence_split=False)[0]
    assert whole.n_tokens == len(translator.tgt_tokenizer.encode(["\t".join(targets)])[0]) + 1
    unequal = " ".join(targets).replace(".", "", 1)
    assert translator.score([" ".join(sources)], [unequal])[0].n_tokens == (
        len(translator.tgt_tokenizer.encode([unequal])[0]) + 1
    )


def test_what_is_to_be_known_of_a_sentence_is_said_of_its_line(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    scored = translator.score(["a dog. " + "a cat " * 300 + ". a man."], ["ein hund. ein katze. ein mann."])
    assert scored[0].n_tokens  # too long is said, and scored all the same
    assert [note.kind for note in scored[0].notes] == ["too_long"]


@settings(max_examples=100)
@given(st.lists(st.lists(st.integers(-9, 0), min_size=1, max_size=5), max_size=4), st.integers(1, 8))
def test_the_best_sums_are_those_of_all_ways_to_take_one_of_each(scores: list[list[float]], most: int) -> None:
    every = list(product(*(range(len(own)) for own in scores)))

    def total(ranks: Sequence[int]) -> float:
        return sum(own[rank] for own, rank in zip(scores, ranks, strict=True))

    found = best_sums(scores, most)
    assert len(set(found)) == len(found) == min(most, len(every))
    assert found[0] == (0,) * len(scores)
    others = sorted((total(ranks) for ranks in every if ranks != found[0]), reverse=True)
    assert [total(ranks) for ranks in found[1:]] == others[: len(found) - 1]


def test_training_counts_the_sentences_and_the_lengths_of_its_lines(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    assert translator.manifest["usual_src_sentences"] == 1
    store = Store.open(tiny_run / "store/train")
    pairs = [store.pair(i) for i in range(len(store))]
    ratios = sorted(len(tgt) / len(src) for src, tgt in pairs if len(src) >= 8)
    assert ratios[len(ratios) // 50] - 1e-4 <= translator.least_ratio <= ratios[len(ratios) // 30] + 1e-4


@pytest.mark.parametrize("wrong", [-0.5, "1", None, True])
def test_an_impossible_ratio_of_lengths_is_refused(reseal: Any, wrong: Any) -> None:
    with pytest.raises(BundleError, match="least_length_ratio"):
        load_bundle(reseal({"least_length_ratio": wrong}))


def test_the_model_says_how_much_of_a_source_a_translation_left_unread(tiny_run: Path) -> None:
    translator = Translator.load(tiny_run, "cpu")
    aligner, src = translator.plan().aligner, translator.src_tokenizer.encode(["the dog sees a cat " * 3])[0]
    whole, part = translator.tgt_tokenizer.encode([("der hund sieht ein katze " * 3).strip(), "der hund"])
    unread = aligner.unread([(src, whole), (src, part)], 4096)
    assert 0 <= unread[0] < unread[1] <= len(src)


def test_the_confidence_of_a_line_is_the_mean_of_its_sentences_and_a_fault_in_one_of_them_is_seen(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(tiny_run, "cpu")
    chance = random.Random(1)
    rows = [confidence_features(-chance.random() * 9, 9, 8, 0) for _ in range(200)]
    translator.confidence = fit(rows, [100 * math.exp(row[0]) for row in rows])
    texts = ["the dog sees a cat.", "xyz qqq."]
    alone, [joined] = translator.translate(texts, guard=False), translator.translate([" ".join(texts)], guard=False)
    sizes = [one.n_tokens for one in alone]
    said = [one.confidence or 0.0 for one in alone]
    mean = sum(value * n for value, n in zip(said, sizes, strict=True)) / sum(sizes)
    assert joined.confidence == pytest.approx(mean, abs=1e-5)
    assert said[0] != pytest.approx(said[1], abs=1e-3)
    monkeypatch.setattr(
        "dragoman.translation.segment_search.guard",
        lambda results, segments, plan: [replace(results[0], sound=False), *results[1:]],
    )
    [joined] = translator.translate([" ".join(texts)])
    assert joined.confidence == pytest.approx(said[1] * sizes[1] / sum(sizes), abs=1e-5)


def test_an_impossible_number_of_sentences_is_refused(reseal: Any) -> None:
    with pytest.raises(BundleError, match="usual_src_sentences must be 1 or more, got 0 in its manifest"):
        load_bundle(reseal({"usual_src_sentences": 0}))


def test_an_older_bundle_has_one_sentence_a_line(tiny_run: Path) -> None:
    assert echo_of(tiny_run).usual_sentences == 1


LONG_URL = (
    "https://www.example-shop.com/products/garden-furniture/item-12345?utm_source=newsletter&ref=a8f3b2c1d4e5f6a7"
)


@pytest.mark.parametrize(
    "span",
    [
        LONG_URL, '<a title="Go now. Then wait a little." href="x">',
        '<span style="color: red; font-size: 12px; background: url(x.png)">',
        '`docker run --rm -it -v /tmp/x:/data image sh -c "echo hi. Sleep; 5"`', "<!-- A dog. A cat! A remark. -->",
        "{n, plural, one {A dog. It runs.} other {Many dogs. They run.}}", "+49 170 123 45 67",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["{}", "A man sees {} today.", "A man sees ({}).", "{}a man</a> {} sees", "猫{}猫。"])
def test_what_must_arrive_unchanged_is_not_split(tiny_run: Path, span: str, form: str) -> None:
    text = form.replace("{}", span)
    spans = [own.text for own in find(text)]
    for usual in (8, 32):
        echo = echo_of(tiny_run, usual_src_tokens=usual)
        split = parts(echo, text, sentence_split=False)
        assert [own.text for part in split for own in find(part)] == spans
        assert "".join("".join(split).split()) == "".join(text.split())
        assert parts(echo, text) == split


def test_a_span_counts_as_one_token_of_a_sentence(tiny_run: Path) -> None:
    """The sentence is translated without it if the model loses it, so its length is no reason to split."""
    echo = echo_of(tiny_run, usual_src_tokens=32)
    text = f"A man reads {LONG_URL} at home."
    assert 64 < len(echo.src_tokenizer.encode([text])[0]) <= echo.max_tokens
    assert parts(echo, text) == [text]
    assert len(parts(echo, text, protect=False)) > 1
    # But the model reads it once, so it is no longer than the model can read.
    longer = f"A man reads {LONG_URL}{'/abcde' * echo.max_tokens} at home."
    assert parts(echo, longer) == ["A man reads", longer.split()[3], "at home."]


def test_a_span_that_is_read_must_fit_however_long_it_is(tiny_run: Path) -> None:
    echo = echo_of(tiny_run, usual_src_tokens=32)
    text = f"{LONG_URL}{'/abcde' * echo.max_tokens} is here. {LONG_URL}{'/abcde' * echo.max_tokens} too."

    def sizes(**options: Any) -> list[int]:
        plan = echo.plan(**options)
        return [len(own.search.ids) for own in segment([text], plan, QUIET)]

    assert max(sizes(protect=False)) <= echo.max_tokens
    first, *others = sizes(prefix="Nun")
    assert first <= echo.max_tokens  # it is not copied, but begins with the prefix
    assert sum(size > echo.max_tokens for size in others) == 1  # it is copied
    assert sum(size > echo.max_tokens for size in sizes()) == 2


SPANS = ["https://a.org/b.c?d", "<b>", '<i x="A. B">', "`a b. c`", "{x}", "1 000 000", "🙂", "#tag", "a@b.org"]
WORDS = ["a ", "dog ", " é", "  ", ". ", "猫。", "!", "(", "猫", "aaaaaaaaaaa "]


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(WORDS),
            st.builds(str.format, st.sampled_from([" {} ", "猫{}。猫", " ({}). "]), st.sampled_from(SPANS)),
        ),
        max_size=20,
    ).map("".join),
    st.integers(1, 20),
)
def test_parts_fit_or_are_copied_and_no_span_of_a_text_is_split(text: str, max_tokens: int) -> None:
    split = split_text(text, max_tokens, lambda texts: list(map(len, texts)), protect=True)
    assert "".join("".join(split).split()) == "".join(text.split())
    bare = text.strip()
    ends, at = [], 0
    for part in split:
        at = bare.index(part, at) + len(part)
        ends.append(at)
    for span in find(bare):
        assert not any(span.start < end < span.end for end in ends)
    assert all(len(part) <= max_tokens or len(part) < 2 or not has_letters(part) for part in split)
