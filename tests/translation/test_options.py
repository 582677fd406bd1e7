"""What a translation can be asked for, on a trained run: n best, samples, words, ensembles, scores, alignments."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dragoman
from dragoman.bundle import load_bundle
from dragoman.decoding.request import Hypothesis
from dragoman.decoding.words import word_numbers
from dragoman.errors import BundleError, ConfigError, DataError, DecodeError, DragomanError
from dragoman.languages.words import has_word
from dragoman.translation.assemble import assemble, paired_by_chance
from dragoman.translation.keeping.glossary import Glossary
from dragoman.translation.language_pairs import Direction
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.segments import SegmentResult, segment
from dragoman.translation.translator import Translation, Translator
from failing import fail_long_lines

SENTENCES = ["the dog sees a cat", "a man finds the house today", "here", "the red tree sleeps", "a big dog runs"]
LONG = " ".join(["the dog sees a cat.", "a man finds  the house today.\t"] * 40)


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.fixture(scope="module")
def other_run(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., dict[str, Any]]) -> Path:
    """Another run on the same text: other weights, the same subwords."""
    mapping = tiny(max_steps=60, validate_every=60, save_every=60, seed=7)
    run = tmp_path_factory.mktemp("runs") / "other"
    dragoman.train(dragoman.Config.from_mapping(mapping), out=run, quiet=True)
    return run


def told(lines: list[str]) -> Events:
    """Events that write warnings down."""
    return Events(warn=lambda note: lines.append(str(note)))


def texts(count: int, seed: int = 5) -> list[str]:
    chance = random.Random(seed)
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    return [" ".join(chance.choices(words, k=chance.randint(1, 9))) for _ in range(count)]


def best(found: list[Translation]) -> list[str]:
    return [one.text for one in found]


def test_the_n_best_come_with_their_scores_best_first(translator: Translator) -> None:
    found = translator.translate([*SENTENCES, ""], n_best=4)
    assert best(found) == best(translator.translate([*SENTENCES, ""], n_best=1))
    for one in found[:-1]:
        everyone = [one, *one.alternatives]
        assert len({each.text for each in everyone}) > 1
        assert [each.score for each in everyone] == sorted((each.score for each in everyone), reverse=True)
        assert all(each.n_tokens > 0 and each.log_prob < 0 for each in everyone)
    assert found[-1] == Translation("", 0.0, 0)
    with pytest.raises(ConfigError, match=r"n_best must be at most beam_size = 4, got 9"):
        translator.translate(SENTENCES, n_best=9)
    assert len(translator.translate([LONG], n_best=2)[0].alternatives) == 1


OPTIONS: dict[str, dict[str, Any]] = {
    "n best": dict(n_best=3),
    "sampling": dict(sample=True, temperature=1.5, top_k=20, top_p=0.95, seed=3, n_best=2),
    "prefix": dict(prefix="ein kat"),
    "include": dict(include=["haus", "rennt hier"]),
    "exclude": dict(exclude=["hund", "ein"], no_repeat_ngram=2),
    "glossary": dict(glossary=Glossary([("dog", "baum"), ("cat", None)])),
    "alignments": dict(alignments=True),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_asked_for_does_not_depend_on_the_batch(translator: Translator, name: str) -> None:
    sources = texts(24)
    together = translator.translate(sources, **OPTIONS[name])
    for number, one in enumerate(together):
        alone = translator.translate([sources[number]], first_number=number, **OPTIONS[name])[0]
        assert (alone.text, alone.alignment, alone.notes) == (one.text, one.alignment, one.notes)
        assert alone.score == pytest.approx(one.score, abs=1e-5)
        assert best(list(alone.alternatives)) == best(list(one.alternatives))
    small = translator.translate(sources, batch_tokens=20, **OPTIONS[name])
    assert best(small) == best(together)


@pytest.mark.parametrize("options", [{}, OPTIONS["include"], OPTIONS["sampling"], {"precision": "bf16"}], ids=str)
def test_deterministic_is_the_same_to_the_last_bit_whatever_else_is_there(
    translator: Translator, options: dict[str, Any]
) -> None:
    sources = texts(20)
    together = translator.translate(sources, deterministic=True, **options)
    order = random.Random(1).sample(range(20), 20)
    if "sample" not in options:
        shuffled = translator.translate([sources[i] for i in order], deterministic=True, **options)
        assert torch.equal(
            torch.tensor([one.score for one in shuffled], dtype=torch.float64),
            torch.tensor([together[i].score for i in order], dtype=torch.float64),
        )
        assert best(shuffled) == [together[i].text for i in order]
    alone = [
        translator.translate([text], deterministic=True, first_number=i, **options)[0] for i, text in enumerate(sources)
    ]
    assert alone == together  # texts, scores and log-probabilities, bit by bit


def test_samples_belong_to_their_seed_and_line(translator: Translator) -> None:
    sources = texts(10)
    one = translator.translate(sources, sample=True, temperature=2.0, seed=1)
    assert one == translator.translate(sources, sample=True, temperature=2.0, seed=1)
    assert best(one) != best(translator.translate(sources, sample=True, temperature=2.0, seed=2))
    same = translator.translate(["a big dog"] * 30, sample=True, temperature=3.0)
    assert len(set(best(same))) > 5
    with pytest.raises(ConfigError, match="top_p"):
        translator.translate(sources, sample=True, top_p=2)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("prefix", ["ein", "ein ", "ein hu", "der hund sie", "xyz 7 é 猫", " zwei"])
def test_translations_begin_with_the_prefix(translator: Translator, prefix: str, beam_size: int) -> None:
    for one in translator.translate(texts(8), prefix=prefix, beam_size=beam_size, guard=False):
        assert one.text.startswith(prefix)
        assert one.notes == ()


def test_a_prefix_may_end_within_a_word_which_then_continues(translator: Translator) -> None:
    free = translator.translate(["a cat sees the house"])[0]
    for n in range(len(free.text)):
        found = translator.translate(["a cat sees the house"], prefix=free.text[:n])[0]
        assert found.text == free.text  # what the model would say anyway costs nothing
        assert found.score == pytest.approx(free.score, abs=1e-5)
    each = translator.translate(["a cat", "a dog"], prefix=["der", "die"])
    assert [one.text[:3] for one in each] == ["der", "die"]
    with pytest.raises(ConfigError, match="2 prefixes for 1 texts"):
        translator.translate(["a cat"], prefix=["a", "b"])
    with pytest.raises(ConfigError, match="line break"):
        translator.translate(["a cat"], prefix="a\nb")


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_words_that_must_be_there_are_there_and_others_are_not(translator: Translator, beam_size: int) -> None:
    sources = texts(12)
    for include in (["katze"], ["GPU"], ["gruen rennt", "katze"], ["猫 é", "haus", "haus"], ["zwei"] * 3):
        for one in translator.translate(sources, include=include, beam_size=beam_size, guard=False):
            assert one.notes == ()
            for word in set(include):
                assert has_word(one.text, word), one.text
                assert one.text.count(word) >= include.count(word)
    free = translator.translate(sources, beam_size=beam_size)
    for number, one in enumerate(free):
        word = one.text.split()[0]
        found = translator.translate(sources[number], exclude=[word], beam_size=beam_size, guard=False)
        assert not has_word(found.text, word)
        assert found.notes == ()
    with pytest.raises(ConfigError, match="blank word"):
        translator.translate(sources, include=[" "])
    with pytest.raises(ConfigError, match="list of words"):
        translator.translate(sources, exclude="hund")


def test_a_word_that_the_model_likes_stands_where_it_likes_it(translator: Translator) -> None:
    for one in translator.translate(SENTENCES):
        for word in one.text.split():
            found = translator.translate([SENTENCES[0]], include=[word])[0]
            assert has_word(found.text, word)
    free = translator.translate(SENTENCES)
    for source, one in zip(SENTENCES, free, strict=True):
        assert translator.translate([source], include=one.text.split()[-1:])[0].text == one.text


def test_what_cannot_be_kept_is_said(translator: Translator) -> None:
    warnings: list[str] = []
    both = translator.translate(["a dog"], include=["katze"], exclude=["katze"], guard=False, events=told(warnings))[0]
    assert has_word(both.text, "katze")  # what must be wins
    assert both.notes == (Note("constraint", "the excluded 'katze' appears"),)
    assert warnings == ["line 1: the excluded 'katze' appears"]
    begun = translator.translate(["a dog"], prefix="hund ", exclude=["hund"])[0]
    assert begun.text.startswith("hund ")
    assert begun.notes == (Note("constraint", "the excluded 'hund' appears"),)


def test_a_glossary_speaks_for_the_lines_that_have_its_terms(translator: Translator) -> None:
    glossary = Glossary([("dog", "wauwau"), ("red tree", "Rotbaum"), ("Zug-7", None)])
    sources = [*SENTENCES, "the Dog sees a Zug-7 today", "dog dog"]
    free = translator.translate(sources)
    found = translator.translate(sources, glossary=glossary, guard=False)
    for one, alone in ((found[i], free[i]) for i in (1, 2)):
        assert one.text == alone.text
        assert one.score == pytest.approx(alone.score, abs=1e-5)
    assert all(has_word(found[i].text, "wauwau") for i in (0, 4, 5))
    assert has_word(found[3].text, "Rotbaum")
    assert has_word(found[5].text, "Zug-7")
    assert found[6].text.count("wauwau") == 2
    assert all(one.notes == () for one in found)
    long = translator.translate([LONG], glossary=Glossary([("dog", "rot")]), guard=False)[0]
    assert long.n_parts > 1
    assert long.text.split().count("rot") >= 40  # each part has as many as its source
    cut = " ".join(["the dog sees a red house today"] * 30)  # somewhere within a term, for there is no sentence's end
    for term in ("red house", "dog sees", "today the"):
        split = Glossary([(term, "rot")])
        found = translator.translate([cut], glossary=split, guard=False)
        assert found[0].n_parts > 1
        assert found[0].text.split().count("rot") >= len(split.find(cut)), term
        assert found[0].notes == ()


def test_a_word_that_is_asked_for_twice_is_looked_for_twice(translator: Translator) -> None:
    found = translator.translate(["the dog sees a cat"], include=["haus"] * 4)[0]
    n_there = found.text.split().count("haus")
    assert (Note("constraint", "'haus' could not be placed") in found.notes) == (n_there < 4)


def test_a_word_is_not_let_through_because_the_prefix_has_its_letters(translator: Translator) -> None:
    for prefix in ("der hunde und ", "hundert ", "der hunde und"):
        found = translator.translate(["the dog dog dog"], prefix=prefix, exclude=["hund"], guard=False)[0]
        assert found.text.startswith(prefix)
        assert not has_word(found.text, "hund"), found
    kept = translator.translate(["the dog dog dog"], prefix="der hund ", exclude=["hund"], guard=False)[0]
    assert kept.text.startswith("der hund")


def test_samples_in_which_words_must_stand_are_refused_whatever_the_texts(translator: Translator) -> None:
    for option in ({"include": ["hund"]}, {"glossary": Glossary([("zebra", "zebra")])}):
        for lines in ([], ["the dog"]):
            with pytest.raises(ConfigError, match="sampling cannot place words"):
                translator.translate(lines, sample=True, **option)  # type: ignore[arg-type]


def test_an_ensemble_translates_and_needs_the_same_subwords(
    tiny_run: Path, other_run: Path, tmp_path: Path, tiny: Callable[..., dict[str, Any]], make_corpus: Any
) -> None:
    pair = Translator.load([tiny_run, other_run], "cpu")
    alone = [Translator.load(run, "cpu") for run in (tiny_run, other_run)]
    target = ["der hund sieht ein katze"]
    each = [one.score(SENTENCES[:1], target)[0].token_log_probs for one in alone]
    both = pair.score(SENTENCES[:1], target)[0].token_log_probs
    mean = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(*each, strict=True)]
    assert list(both) == pytest.approx(mean, abs=1e-5)
    found = pair.translate(SENTENCES, alignments=True, include=["hund"])
    assert best(found) == best([pair.translate([text], include=["hund"])[0] for text in SENTENCES])
    twice = Translator.load([tiny_run, tiny_run], "cpu")
    assert best(twice.translate(SENTENCES)) == best(alone[0].translate(SENTENCES))
    mapping = tiny(make_corpus(tmp_path, 50), max_steps=2, validate_every=2, save_every=2, warmup_steps=1)
    mapping["data"]["tokenizer"]["vocab_size"] = 350
    stranger = dragoman.train(dragoman.Config.from_mapping(mapping), out=tmp_path / "run", quiet=True).run
    with pytest.raises(BundleError, match=r"its subword models differ from those of"):
        Translator.load([tiny_run, stranger], "cpu")
    with pytest.raises(ConfigError, match="no run to load"):
        Translator.load([])


def test_given_translations_are_scored_as_the_search_scores_them(translator: Translator) -> None:
    found = translator.translate(SENTENCES, n_best=4)
    pairs = [
        (text, each)
        for text, one in zip(SENTENCES, found, strict=True)
        for each in (one, *one.alternatives)
        if each.text
    ]
    scored = translator.score([text for text, _ in pairs], [one.text for _, one in pairs])
    same = 0
    for one, (_, found_one) in zip(scored, pairs, strict=True):
        assert one.log_prob == pytest.approx(sum(one.token_log_probs))
        assert len(one.tokens) == one.n_tokens
        ids = translator.tgt_tokenizer.encode([found_one.text])[0]
        if len(ids) + 1 == found_one.n_tokens:  # cut as the search has cut it
            same += 1
            assert one.log_prob == pytest.approx(found_one.log_prob, abs=2e-5)
            assert one.score == pytest.approx(found_one.score, abs=1e-5)
    assert same > len(pairs) / 2
    right, wrong = translator.score(["the dog"] * 2, ["der hund", "die katze"])
    assert right.log_prob > wrong.log_prob


def test_pairs_that_cannot_be_scored_are_said(translator: Translator) -> None:
    found = translator.score(["a dog", "", "a cat", "a " * 400], ["", "x", "ein katze", "ein " * 400], alignments=True)
    assert [math.isnan(one.log_prob) for one in found] == [True, True, False, False]
    assert found[0].notes == found[1].notes == (Note("not_scored", "not scored: a side is blank"),)
    assert found[2].notes == ()
    assert "of the training text" in found[3].notes[0].text
    assert found[0].alignment == ()
    assert translator.score([], []) == []
    with pytest.raises(DecodeError, match="equal length"):
        translator.score(["a"], [])


def test_scoring_is_planned_once_and_what_is_impossible_is_refused_then(translator: Translator) -> None:
    pairs = ["the dog", "a cat"], ["der hund", "ein katze"]
    plan = translator.plan_scoring(alignments=True, length_penalty=0.0)
    assert plan.score(*pairs) == translator.score(*pairs, alignments=True, length_penalty=0.0)
    with pytest.raises(ConfigError, match="precision must be fp32 or bf16, got 'int8'"):
        translator.plan_scoring(precision="int8")
    with pytest.raises(ConfigError, match="beam_size has no effect on scoring"):
        translator.plan_scoring(beam_size=2)


def test_no_text_comes_twice_among_the_n_best_and_they_are_best_first(translator: Translator) -> None:
    with_terms = translator.translate(
        [f"the dog {text}" for text in texts(20, 3)], n_best=4, glossary={"dog": "wauwau"}
    )
    with_spans = translator.translate(
        [f"{text} https://example.org/a/b/{len(text)}" for text in texts(20, 4)], n_best=4
    )
    for found in (*with_terms, *with_spans):
        listed = [found, *found.alternatives]
        assert len({one.text for one in listed}) == len(listed)
    for found in with_spans:
        scores = [one.score for one in (found, *found.alternatives)]
        assert found.notes or scores == sorted(scores, reverse=True)  # with a note: what was chosen instead is first


def test_words_are_aligned_with_those_they_translate(translator: Translator) -> None:
    """The toy language is translated word by word, so the truth is the diagonal."""
    sources = texts(60, seed=9)
    right = asked = 0
    for source, one in zip(sources, translator.translate(sources, alignments=True), strict=True):
        assert one.alignment is not None
        n_src, n_tgt = len(source.split()), len(one.text.split())
        assert {tgt for _, tgt in one.alignment} == set(range(n_tgt))
        assert all(0 <= src < n_src for src, _ in one.alignment)
        scored = translator.score([source], [one.text], alignments=True)[0]
        assert scored.alignment == one.alignment
        if n_src == n_tgt:
            right += sum(src == tgt for src, tgt in one.alignment)
            asked += n_tgt
    print(f"alignment: {right} of {asked} words on the diagonal")
    assert right > 0.85 * asked > 100
    assert translator.translate([""], alignments=True)[0].alignment == ()
    assert translator.translate(["a dog"])[0].alignment is None


def test_a_text_that_was_split_is_aligned_as_a_whole(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    short = bundle.config.model_copy(update={"data": bundle.config.data.model_copy(update={"max_tokens": 6})})
    one = Translator(bundle._replace(config=short)).translate([LONG], alignments=True)[0]
    assert one.n_parts > 80
    assert one.alignment is not None
    n_src, n_tgt = len(LONG.split()), len(one.text.split())
    assert {tgt for _, tgt in one.alignment} == set(range(n_tgt))
    assert max(src for src, _ in one.alignment) >= n_src - 3
    rate = n_src / n_tgt
    near = sum(abs(src - tgt * rate) < 25 for src, tgt in one.alignment)
    assert near > 0.9 * len(one.alignment)


def test_bf16_is_nearly_the_same(translator: Translator) -> None:
    sources = texts(40)
    full, half = translator.translate(sources), translator.translate(sources, precision="bf16")
    same = sum(a.text == b.text for a, b in zip(full, half, strict=True))
    print(f"bf16: {same} of {len(sources)} translations are those of fp32")
    assert same > 0.8 * len(sources)
    assert [one.score for one in half] != [one.score for one in full]  # it is another arithmetic
    assert [one.score for one in half] == pytest.approx([one.score for one in full], abs=0.5)
    with pytest.raises(ConfigError, match="precision must be fp32, bf16 or int8, got"):
        translator.translate(sources, precision="fp16")


def test_x4_a_line_without_memory_is_blank_said_and_alone(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources = [*SENTENCES[:2], "the dog sees a cat " * 4, *SENTENCES[2:]]
    want = best(translator.translate(sources))
    fail_long_lines(monkeypatch)
    failed: list[str] = []
    found = translator.translate(sources, alignments=True, events=Events(failed=lambda note: failed.append(str(note))))
    assert best(found) == [*want[:2], "", *want[3:]]
    assert [len(one.notes) for one in found] == [0, 0, 1, 0, 0, 0]
    assert len(failed) == 1
    assert failed[0].startswith("line 3: out of memory")
    with pytest.raises(DecodeError, match="line 3: out of memory"):
        translator.translate(sources)
    content = "".join(f"{text}\n" for text in sources).encode()
    got: list[str] = []
    warnings: list[str] = []
    with pytest.raises(DecodeError, match="in: 1 lines ran out of memory and are blank"):
        got.extend(one.text for one in translator.translate_stream(io.BytesIO(content), "in", events=told(warnings)))
    assert got == [*want[:2], "", *want[3:]]
    assert [warning.split(": ")[0] for warning in warnings] == ["in:3"]
    (tmp_path / "src").write_bytes(content)
    with pytest.raises(DecodeError, match="src: 1 lines ran out of memory and are blank"):
        translator.translate_file(tmp_path / "src", tmp_path / "out", events=told(warnings), read_ahead=2)
    assert (tmp_path / "out").read_text(encoding="utf-8").split("\n")[:-1] == got
    assert warnings[1].startswith(f"{tmp_path}/src:3: out of memory")


@pytest.mark.parametrize("text", ["dog ー cat", "dog \u0e31cat", "\u0301dog cat", "dog \ufe0f cat", "ー"])
def test_a_mark_behind_a_space_is_aligned_in_a_language_without_spaces(
    translator: Translator, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Direction, "src_unspaced", True)
    (line,) = translator.translate([text], alignments=True)
    n_characters = max((number for number in word_numbers(text, True)), default=-1) + 1
    assert all(src < n_characters for src, _ in line.alignment or ())
    numbers = word_numbers(text, True)
    assert [number >= 0 for number in numbers] == [not character.isspace() for character in text]


def test_samples_of_several_sentences_are_paired_by_chance_and_not_by_their_scores() -> None:
    scores = [[-float(rank) for rank in range(8)], [-float(rank) for rank in range(8)]]
    pairs = paired_by_chance(scores, 8)
    assert pairs[0] == (0, 0)
    assert [sorted(own) for own in zip(*pairs, strict=True)] == [list(range(8))] * 2, "each sample is used once"
    assert sum(one == other for one, other in pairs) < 4
    sums = [one + other for one, other in pairs[1:]]
    assert sums == sorted(sums)
    assert paired_by_chance([[0.0, -1.0, -2.0]], 3) == [(0,), (1,), (2,)]
    assert paired_by_chance([[0.0, -1.0, -2.0], [0.0]], 3) == [(0, 0)]
    assert paired_by_chance([], 3) == [()]


def test_a_plan_is_for_the_translator_that_made_it(translator: Translator, tiny_run: Path) -> None:
    other, plan = Translator.load(tiny_run, "cpu"), translator.plan(beam_size=2)
    assert translator.plan(plan, beam_size=1).search.decode.beam_size == 1
    for options in ({}, {"beam_size": 1}):
        with pytest.raises(ConfigError, match="another translator"):
            other.translate(["the dog"], plan, **options)


def test_half_of_a_surrogate_pair_is_named_by_its_text(translator: Translator) -> None:
    with pytest.raises(DataError, match=r"^text 3, character 9: U\+D800"):
        translator.translate(["", "One. Two.", "One. Two\ud800."])
    with pytest.raises(DataError, match=r"^target 2, character 2: U\+DC00"):
        translator.score(["a", "b"], ["a", "b\udc00"])


def test_a_stream_of_text_is_refused_before_a_line_is_read(translator: Translator) -> None:
    with pytest.raises(DragomanError, match="stream must be"):
        translator.translate_stream(io.StringIO("the dog\n"), "a text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "listed"),
    [("der hund|die katze|der hund", "der hund|die katze"), ("a|b|c|b|d|a", "a|b|c|d"), ("a|a|a", "a")],
)
def test_of_equal_texts_the_best_stays_in_its_place(translator: Translator, found: str, listed: str) -> None:
    """Two hypotheses become one text when numbers and terms are put in."""
    n = found.count("|") + 1
    plan = translator.plan(n_best=n, beam_size=n, alignments=True)
    segments = segment(["the dog"], plan, QUIET)
    texts_found = tuple(found.split("|"))
    ids = translator.tgt_tokenizer.encode(list(texts_found))
    hypotheses = tuple(Hypothesis(own, -1.0 - i, -2.0 - i) for i, own in enumerate(ids))
    (one,) = assemble(["the dog"], segments, [SegmentResult(hypotheses, texts_found)], plan)
    every = [one, *one.alternatives]
    assert [each.text for each in every] == listed.split("|")
    assert [each.score for each in every] == sorted((each.score for each in every), reverse=True)
    assert one.alignment is not None
    assert max(place for _, place in one.alignment) < len(one.text.split())


def test_a_prefix_comes_before_the_space_of_the_source(translator: Translator) -> None:
    for source in ("\tthe dog", "  the dog ", "\u3000the dog"):
        one = translator.translate(source, prefix="der", n_best=2, beam_size=3)
        assert all(each.text.startswith("der") for each in (one, *one.alternatives))
    assert translator.translate("  the dog ").text == "  der hund "
