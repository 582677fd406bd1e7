"""Text to text: as many lines out as in, in order, each as if it were alone."""

from __future__ import annotations

import inspect
import io
import pickle
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.bundle import Bundle, load_bundle
from dragoman.data.corpus import BOM_BYTES, Line
from dragoman.errors import ConfigError, DataError, DecodeError, DragomanError
from dragoman.languages.scripts import is_blank
from dragoman.translation.assemble import NOT_ALIGNED
from dragoman.translation.notes import Events, Note
from dragoman.translation.segments import pack, split_text
from dragoman.translation.streams import FIRST, windows
from dragoman.translation.translator import Translation, Translator
from echo import Echo
from limits import LONG_S
from searching import search_all

SENTENCES = ["the dog sees a cat", "a man finds the house today", "here", "the red tree sleeps", "a big dog runs"]


@pytest.fixture(scope="module")
def echo(tiny_run: Path) -> Translator:
    real = load_bundle(tiny_run)
    model: Any = Echo(real.src_tokenizer.vocab_size)
    return Translator(Bundle(real.config, model, *real[2:4], {}))  # what copies has no usual length


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


def translate_bytes(translator: Translator, content: bytes, **settings: Any) -> tuple[list[str], list[str]]:
    """The translations of a stream, and the warnings; the guard is left out, as an Echo does nothing but copy."""
    warnings: list[str] = []
    told = Events(warn=lambda note: warnings.append(str(note)))
    found = translator.translate_stream(io.BytesIO(content), "in", events=told, **{"guard": False, **settings})
    return [translation.text for translation in found], warnings


def each(count: Callable[[str], int]) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: list(map(count, texts))


def n_lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and content not in (b"", BOM_BYTES))


ODD = ["\r", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\0", "\ufeff", "\u2581", "\t", "\u3000", "猫"]
"""Characters that other programs take for the end of a line, or that mean something to a tokenizer."""

# The model does not see control characters: "a\x080" is a0 for it. So digits, which must arrive, are tested elsewhere.
ANY = st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Nd", "So"], exclude_characters="#@")
TEXT = st.text(st.one_of(st.sampled_from(ODD), st.sampled_from("ab cdog. "), ANY), max_size=30)


@settings(max_examples=80)
@given(
    st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=8), st.booleans(), st.sampled_from([1, 2, 2048])
)
def test_a_translation_stands_in_the_line_of_its_source(
    echo: Translator, texts: list[str], ended: bool, read_ahead: int
) -> None:
    content = "\n".join(texts).encode() + b"\n" * (ended and len(texts) > 0)
    lines, _ = translate_bytes(echo, content, read_ahead=read_ahead, beam_size=1)
    assert len(lines) == n_lines(content)
    for number, (text, line) in enumerate(zip(texts, lines, strict=False)):
        has_lf = ended or number < len(texts) - 1
        text = text.removesuffix("\r") if has_lf else text
        text = text.replace("\0", "\ufffd").removeprefix("\ufeff" if number == 0 else "")
        if is_blank(text):
            assert line == "", number
            continue
        clean = echo.src_tokenizer.normalised
        assert clean(line).text == clean(text).text, number  # the model reads it so
        outer = [(side[: len(side) - len(side.lstrip())], side[len(side.rstrip()) :]) for side in (text, line)]
        assert outer[0] == outer[1] or not line, number


@settings(max_examples=80)
@given(st.binary(max_size=80).map(lambda b: b.replace(b"\x01", b"\n").replace(b"\x02", b"\r\n")), st.integers(1, 5))
def test_any_bytes_give_as_many_lines_as_came_in(echo: Translator, content: bytes, read_ahead: int) -> None:
    lines, warnings = translate_bytes(echo, content, read_ahead=read_ahead, beam_size=1)
    assert len(lines) == n_lines(content)
    assert not any("\n" in line for line in lines)
    try:
        content.decode()
    except UnicodeDecodeError:
        assert any("not UTF-8, U+FFFD put in" in warning for warning in warnings)


@settings(max_examples=8)
@given(st.lists(TEXT.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=6))
def test_the_trained_model_gives_as_many_lines_as_came_in(translator: Translator, texts: list[str]) -> None:
    content = "".join(text + "\n" for text in texts).encode()
    lines, _ = translate_bytes(translator, content, beam_size=2, guard=True)
    assert len(lines) == len(texts)
    assert not any("\n" in line for line in lines)
    first = texts[0].removeprefix("\ufeff")
    assert [bool(line) or not text.strip() for text, line in zip([first, *texts[1:]], lines, strict=True)]


def test_blank_lines_stay_blank_and_the_model_is_not_asked(echo: Translator) -> None:
    before = echo.model.n_rows
    lines, warnings = translate_bytes(echo, "\n  \n\t\r\n\u2028\n\u3000 \x0b".encode())
    assert (lines, warnings) == ([""] * 5, [])
    assert echo.model.n_rows == before
    assert echo.translate(["", "a", " "])[0] == Translation("", 0.0, 0)
    assert echo.model.n_rows == before + 1
    assert translate_bytes(echo, b"") == ([], [])


def test_a_line_end_that_the_model_makes_up_becomes_a_space(echo: Translator) -> None:
    assert [found.text for found in echo.translate(["a\nb", "\n", "\nc\n"])] == ["a b", "", "c"]


def test_a_line_of_100_000_tokens_is_split_with_a_warning_and_its_neighbours_stay_as_they_are(
    echo: Translator,
) -> None:
    words = " ".join(random.Random(0).choices(["dog", "katze", "haus", "runs"], k=100_000))
    content = f"{SENTENCES[0]}\n{words}\n{SENTENCES[1]}\n".encode()
    lines, warnings = translate_bytes(echo, content, beam_size=1, batch_tokens=100_000)
    assert lines == [SENTENCES[0], words, SENTENCES[1]]  # every part in its place, nothing lost between them
    assert len(warnings) == 1
    n_tokens = len(echo.src_tokenizer.encode([words])[0])
    assert n_tokens >= 100_000
    assert warnings[0].startswith(f"in:2: {n_tokens:,} tokens are more than {echo.usual_tokens}; split into ")


def test_parts_are_as_long_as_the_usual_training_sentence_and_a_sentence_stays_whole(tiny_run: Path) -> None:
    real = load_bundle(tiny_run)
    lengths = np.diff(np.fromfile(tiny_run / "store/train/src.offsets", "<i8"))
    assert real.manifest["usual_src_tokens"] == np.sort(lengths)[-1]  # of 400 pairs the longest
    model: Any = Echo(real.src_tokenizer.vocab_size)
    echo = Translator(Bundle(real.config, model, *real[2:]))
    assert echo.usual_tokens == 32  # the least
    sentence = "the dog sees the cat."
    one = len(echo.src_tokenizer.encode([sentence])[0])
    joined = " ".join([sentence] * 20)
    found = echo.translate([joined, joined.replace(".", "")[: 4 * len(sentence)], sentence], guard=False)
    assert [each.text for each in found] == [joined, joined.replace(".", "")[: 4 * len(sentence)], sentence]
    assert found[0].n_parts >= 20 * one // 32 > 1
    assert [each.n_parts for each in found[1:]] == [1, 1]


def test_a_long_line_is_named_by_its_number_in_the_whole_stream(echo: Translator) -> None:
    long = "dog " * 300
    content = f"a\nb\nc\n{long}\nd\n{long}\n".encode()
    _, warnings = translate_bytes(echo, content, read_ahead=2, beam_size=1)
    assert [warning.partition(": ")[0] for warning in warnings] == ["in:4", "in:6"]
    said: list[str] = []
    told = Events(warn=lambda note: said.append(str(note)))
    assert [found.n_parts for found in echo.translate(["a", long], events=told, beam_size=1)] == [1, 3]
    assert said[0].startswith("line 2: ")


def test_the_trained_model_translates_the_neighbours_of_a_long_line_as_before(translator: Translator) -> None:
    long = " ".join(SENTENCES * 100)
    alone = [translator.translate([text])[0].text for text in SENTENCES[:2]]
    lines, warnings = translate_bytes(translator, f"{SENTENCES[0]}\n{long}\n{SENTENCES[1]}\n".encode())
    assert [lines[0], lines[2]] == alone
    assert lines[1]
    assert len(warnings) == 1


def test_bad_bytes_are_replaced_with_a_warning_that_names_the_line(echo: Translator) -> None:
    lines, warnings = translate_bytes(echo, b"a dog\ngr\xfcn \xff\nx\n")
    assert lines == ["a dog", "gr\ufffdn \ufffd", "x"]
    assert warnings == ["in:2:3: not UTF-8, U+FFFD put in 2 places"]


def test_the_translation_of_a_sentence_does_not_depend_on_the_batch_it_is_in(translator: Translator) -> None:
    chance = random.Random(5)
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 14))) for _ in range(56)]
    texts += [". ".join(chance.sample(texts, chance.randint(2, 4))) for _ in range(8)]
    alone = translator.translate(texts, deterministic=True)
    assert max(found.n_parts for found in alone) > 1
    assert len({found.text for found in alone}) > 50
    for size in (1, 2, 7, 64):
        order = list(range(len(texts)))
        chance.shuffle(order)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            found = translator.translate([texts[i] for i in batch])
            assert [f.text for f in found] == [alone[i].text for i in batch]
            assert [f.score for f in found] == pytest.approx([alone[i].score for i in batch], abs=1e-5)


def test_the_run_learned_its_language(translator: Translator) -> None:
    """So that the tests here are about translations and not about noise."""
    assert translator.translate(["the dog sees a cat"])[0].text == "der hund sieht ein katze"


def test_settings_change_the_search_and_impossible_ones_are_refused(translator: Translator) -> None:
    text = ["a house finds here the cat"]
    base = translator.translate(text)[0]
    assert translator.translate(text, length_penalty=0.0)[0].score < base.score  # less than the log-probability's share
    with pytest.raises(ConfigError, match="beam_size must be 1 or more, got 0"):
        translator.translate(text, beam_size=0)
    with pytest.raises(ConfigError, match="length_penalty must be 0 or more, got -1"):
        translator.translate(text, length_penalty=-1)
    assert translator.translate([]) == []


def test_diverged_weights_are_an_error_and_not_a_translation(tiny_run: Path) -> None:
    broken = Translator.load(tiny_run, "cpu")
    with torch.no_grad():
        broken.model.generator.weight[5] = float("nan")
    with pytest.raises(DecodeError, match="not finite"):
        broken.translate(["a dog"])


@settings(max_examples=100)
@given(
    st.text(st.sampled_from("aé猫 \u3000\t.!?。！;…1"), max_size=120),
    st.integers(1, 12),
    st.sampled_from([len, lambda text: len(text.encode()), lambda text: len(text.split()) + text.count("。")]),
)
def test_a_text_is_split_into_parts_that_fit_and_nothing_but_spaces_is_lost(
    text: str, max_tokens: int, n_tokens: Any
) -> None:
    parts = split_text(text, max_tokens, each(n_tokens))
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(n_tokens(part) <= max_tokens or len(part) < 2 for part in parts)


def test_splitting_ends_where_the_whole_has_more_tokens_than_its_parts() -> None:
    assert split_text("ab cd", 8, each(lambda text: 9 if " " in text else 1)) == ["ab", "cd"]


def test_what_stands_between_sentences_stays_as_it_is() -> None:
    text = "One  two. He said 你好。再见 to me. Three four. Five six."
    assert split_text(text, 40, each(len)) == ["One  two. He said 你好。再见 to me.", "Three four. Five six."]


def test_one_sentence_stays_whole_while_that_is_short_enough() -> None:
    assert split_text("One two. Three four five.", 12, each(len), longest_sentence=24) == [
        "One two.",
        "Three four five.",
    ]
    assert split_text("One two. Three four five.", 12, each(len), longest_sentence=15) == [
        "One two.",
        "Three four",
        "five.",
    ]


def test_sentences_are_packed_together_while_they_fit() -> None:
    assert split_text("One two. Three. Four five six. Seven.", 18, each(len)) == [
        "One two. Three.",
        "Four five six.",
        "Seven.",
    ]
    assert split_text("一二三。四五。六七八九。", 9, each(len)) == ["一二三。四五。", "六七八九。"]
    assert pack("a b  c", [(0, 1), (2, 3), (5, 6)], 4, each(len)) == ["a b", "c"]


def test_lines_are_handed_on_when_the_input_pauses() -> None:
    def grouped(size: int) -> list[list[str]]:
        taken, found = threading.Event(), []

        def pausing() -> Iterator[Line]:
            yield from (Line("a", None), Line("b", None))
            assert taken.wait(LONG_S)
            yield from (Line("c", None), Line("d", None), Line("e", None))

        for window in windows(pausing(), size, pause_s=1.0):
            found.append([line.text for line in window])
            taken.set()
        return found

    assert grouped(2) == [["a", "b"], ["c", "d"], ["e"]]
    assert grouped(9) == [["a", "b"], ["c", "d", "e"]]


def test_the_first_lines_come_soon_and_then_more_at_a_time() -> None:
    lines = [Line(str(i), None) for i in range(1000)]
    found = list(windows(lines, 300))
    assert [line for window in found for line in window] == lines
    assert [len(window) for window in found] == [FIRST, 2 * FIRST, 4 * FIRST, 300, 252]


def test_an_error_while_reading_comes_after_the_lines_before_it() -> None:
    def breaking() -> Iterator[Line]:
        yield Line("a", None)
        raise OSError("gone")

    found = windows(breaking(), 9)
    assert [line.text for line in next(found)] == ["a"]
    with pytest.raises(OSError, match="gone"):
        next(found)


def test_the_optimised_model_finds_what_the_plain_one_finds(translator: Translator) -> None:
    ids = translator.src_tokenizer.encode(SENTENCES)
    config = translator.config.decode
    plain = [found[0] for found in search_all(translator.model, ids, config, torch.device("cpu"))]
    found = translator.translate(SENTENCES)
    assert [one.text for one in found] == translator.tgt_tokenizer.decode([one.ids for one in plain])
    assert [one.score for one in found] == pytest.approx([one.score for one in plain], abs=1e-5)


def test_weights_that_have_changed_translate_otherwise(tiny_run: Path) -> None:
    changing = Translator.load(tiny_run, "cpu")
    before = changing.translate(SENTENCES[:1])[0]
    assert changing.translate(SENTENCES[:1])[0] == before
    with torch.no_grad():
        changing.model.generator.weight.mul_(0.5)
    assert changing.translate(SENTENCES[:1])[0].score != pytest.approx(before.score, abs=1e-3)


@pytest.mark.parametrize("settings", [{}, {"beam_size": 1}, {"n_best": 3}, {"deterministic": True}], ids=str)
def test_several_workers_find_the_same_in_order(translator: Translator, settings: dict[str, Any]) -> None:
    texts = [" ".join(random.Random(i).choices(["dog", "cat", "tree", "runs"], k=1 + i % 9)) for i in range(40)]
    settings = settings if "deterministic" in settings else {"batch_tokens": 60, **settings}
    want = translator.translate(texts, **settings)
    found = translator.translate(texts, threads=3, **settings)
    assert [one.text for one in found] == [one.text for one in want]
    assert [one.score for one in found] == pytest.approx([one.score for one in want], abs=1e-5)
    with pytest.raises(ConfigError, match="threads must be 1 or more, got 0"):
        translator.translate(texts, threads=0, **settings)


def test_words_that_were_cut_where_parts_meet_have_no_links(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(tiny_run, "cpu")
    long = " ".join(["the dog sees a cat"] * 15)
    [found] = translator.translate([long], alignments=True)
    assert found.alignment
    cut = lambda src, one: replace(one, text="der")  # noqa: E731
    monkeypatch.setattr("dragoman.translation.assemble.without_seam", cut)
    [found] = translator.translate([long], alignments=True)
    assert found.alignment == ()
    assert found.notes[-1] == NOT_ALIGNED


def test_a_stream_that_is_left_lets_its_thread_end(echo: Translator) -> None:
    def endless() -> Iterator[Line]:
        while True:
            yield Line("a", None)

    before = threading.enumerate()  # those of other tests may be about to end
    grouped = windows(endless(), 4)
    assert len(next(grouped)) == 4
    (thread,) = [one for one in threading.enumerate() if one.name == "read-ahead" and one not in before]
    grouped.close()
    thread.join(LONG_S)
    assert not thread.is_alive()
    for wrong in ({"n_best": 99}, {"beam_size": 0}):
        with pytest.raises(DragomanError):
            list(echo.translate_stream(io.BytesIO(b"a\n" * 20_000), "text", read_ahead=10, **wrong))
    for thread in threading.enumerate():
        if thread.name == "read-ahead":
            thread.join(LONG_S)
            assert not thread.is_alive()


def test_one_text_gives_one_translation_and_a_list_gives_a_list(translator: Translator) -> None:
    found = translator.translate(SENTENCES[0], beam_size=2)
    assert isinstance(found, Translation)
    assert [found] == translator.translate([SENTENCES[0]], beam_size=2) == translator([SENTENCES[0]], beam_size=2)
    assert translator(SENTENCES[0], beam_size=2) == found
    assert str(found) == found.text
    blank = translator.translate("")
    assert (blank.text, blank.n_parts) == ("", 0)


def test_one_pair_gives_one_score(translator: Translator) -> None:
    one = translator.score(SENTENCES[0], "der hund sieht ein katze")
    assert [one] == translator.score([SENTENCES[0]], ["der hund sieht ein katze"])
    for wrong in ((SENTENCES[0], ["der"]), (["the"], "der"), (["the"], [])):
        with pytest.raises(DecodeError, match="two texts, or two lists of equal length"):
            translator.score(*wrong)  # type: ignore[call-overload]


def _texts(translator: Translator) -> list[str]:
    return [one.text for one in translator.translate(SENTENCES)]


def test_a_pickled_translator_translates_the_same(tiny_run: Path) -> None:
    whole = Translator.load(tiny_run, "cpu")
    texts = _texts(whole)  # its engine is loaded, and is not pickled
    for again in (
        pickle.loads(pickle.dumps(whole)),
        pickle.loads(pickle.dumps(Translator.load([tiny_run] * 2, "cpu"))),
    ):
        assert _texts(again) == texts


def test_a_pickled_translator_keeps_what_was_set_and_changed(tiny_run: Path) -> None:
    changed = Translator.load(tiny_run, "cpu")
    changed.confidence = None
    with torch.no_grad():
        changed.model.generator.weight.mul_(0.5)
    again = pickle.loads(pickle.dumps(changed))
    assert again.confidence is None
    assert torch.equal(again.model.generator.weight, changed.model.generator.weight)
    # a changed one is no longer that of its run, whose exports would translate otherwise
    assert again.run is None
    assert pickle.loads(pickle.dumps(Translator.load(tiny_run, "cpu"))).run == tiny_run


def test_what_things_are_is_said_in_one_line(tiny_run: Path, translator: Translator) -> None:
    n = sum(weight.numel() for weight in translator.model.parameters())
    bleu = translator.manifest["validation"]["bleu"]
    said = f"<Translator: en to de, {n:,} parameters, cpu, BLEU {bleu:.1f} in validation, step 250>"
    assert repr(translator) == said
    assert "ensemble of 2" in repr(Translator.load([tiny_run] * 2, "cpu"))
    assert repr(translator.model) == (
        f"<Transformer: 1 + 1 layers, 48 wide, 2 heads, post-norm, sinusoidal positions, {n:,} parameters>"
    )
    found = Translation("a 'b'", -0.12345, notes=(Note("loop", "loop"),), confidence=0.5)
    assert repr(found) == """Translation("a 'b'", score=-0.123, confidence=0.50, notes=['loop'])"""
    assert repr(Events(warn=print)) == "Events(warn=...)"


def test_signatures_show_no_addresses_and_no_names_of_types_as_strings() -> None:
    for each_method in (Translator.translate, Translator.translate_stream, Translator.translate_file, Translator.score):
        signature = inspect.signature(each_method)
        assert "0x" not in str(signature)
        kinds = [one.annotation for one in signature.parameters.values() if one.name != "self"]
        assert not any(isinstance(kind, str) for kind in kinds)


def test_a_notebook_shows_a_translation_with_what_to_know_of_it() -> None:
    other = Translation("<i>", -0.2)
    nasty = "<script>alert(1)</script>"
    shown = Translation(nasty, -0.1, notes=(Note("loop", nasty),), alternatives=(other,), confidence=0.5)._repr_html_()
    assert "<script" not in shown
    assert "<i>" not in shown
    for words in ("&lt;script&gt;", "&lt;i&gt;", "confidence", "0.50", "-0.100", "alternative, -0.200"):
        assert words in shown


def test_progress_is_shown_if_asked_for_or_told_to_a_function(
    translator: Translator, capsys: pytest.CaptureFixture[str]
) -> None:
    translator.translate(SENTENCES)
    assert capsys.readouterr().err == ""
    translator.translate(SENTENCES, progress=True)
    assert f"{len(SENTENCES)} of {len(SENTENCES)}" in capsys.readouterr().err
    told: list[tuple[int, int, str]] = []
    translator.translate(SENTENCES, progress=lambda *given: told.append(given))
    assert told[-1][:2] == (len(SENTENCES), len(SENTENCES))
    assert capsys.readouterr().err == ""
    translator.score(SENTENCES, SENTENCES, progress=True)
    assert f"{len(SENTENCES)} of {len(SENTENCES)}" in capsys.readouterr().err


@pytest.mark.parametrize("texts", [None, 1, b"a dog", [None], ["a dog", 1], [b"a dog"], [["a"]]])
def test_what_is_no_text_is_refused_by_its_number(tiny_run: Path, texts: Any) -> None:
    translator = Translator.load(tiny_run)
    for call in (translator.translate, lambda texts: translator.score(texts, texts)):
        got = "NoneType|int|bytes|list|None, a missing value: .*"
        with pytest.raises(DataError, match=rf"must be a text .*, got ({got})$") as caught:
            call(texts)
        assert ("number" in str(caught.value)) == isinstance(texts, list)
