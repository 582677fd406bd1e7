"""Lines without a word are copied, and invisible ones are blank; neither is given to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.wordless_lines import lines, wrong
from dragoman.config import DataConfig, ModelConfig
from dragoman.data.corpus import Cleaner
from dragoman.languages.scripts import is_blank
from dragoman.model.transformer import Transformer
from dragoman.translation.notes import Events
from dragoman.translation.segments import segment
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


def test_lines_of_all_categories_without_letters_are_copied_or_blank(translator: Translator) -> None:
    drawn = lines()
    assert len({line.kind for line in drawn}) >= 30
    assert wrong(translator, drawn) == []


def test_they_are_copied_beside_others_and_never_given_to_the_model(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["***", "the dog sleeps", "\u200b", "...", "5 %", "https://a.org 🙂", "the cat. --- the man.", " ★ ★ "]
    plan = translator.plan()
    search, given = plan.engine.search, list[str]()

    def recorded(some: Any, *others: Any) -> Any:
        given.extend(translator.src_tokenizer.decode([segment.ids for segment in some]))
        return search(some, *others)

    monkeypatch.setattr(plan.engine, "search", recorded)
    translations = translator.translate(texts, plan)
    assert [translations[i].text for i in (0, 2, 3, 4, 5, 7)] == ["***", "", "...", "5 %", "https://a.org 🙂", " ★ ★ "]
    assert all(any(map(str.isalpha, text)) for text in given)
    assert [note for i in (0, 2, 3, 4, 5, 7) for note in translations[i].notes] == []


def test_n_best_samples_and_alignments_have_the_copy_too(translator: Translator) -> None:
    (line,) = translator.translate(["→ ·"], n_best=3, alignments=True)
    assert (line.text, line.alternatives) == ("→ ·", ())
    assert line.alignment
    (line,) = translator.translate(["→ ·"], n_best=3, sample=True)
    assert [other.text for other in (line, *line.alternatives)] == ["→ ·"] * 3


def test_a_copy_that_is_longer_than_the_model_can_read_is_aligned_with_itself(translator: Translator) -> None:
    bundle = translator.bundle
    sizes: dict[str, Any] = dict(
        d_model=16, d_ff=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, positions="learned", max_len=64
    )
    n = translator.src_tokenizer.vocab_size
    model = Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, **sizes)).eval()
    config = bundle.config.model_copy(update={"model": model.config})
    learned = Translator(bundle._replace(weights=model, config=config))
    copy, words = learned.translate(["12 " * 99 + "34", "the dog"], alignments=True)
    assert copy.text == "12 " * 99 + "34"
    assert copy.alignment == tuple((i, i) for i in range(100))
    assert words.alignment


def test_words_that_are_asked_for_are_in_the_translation_of_a_line_without_a_word(translator: Translator) -> None:
    assert translator.translate(["..."], prefix="der")[0].text.startswith("der")
    assert "katze" in translator.translate(["..."], include=["katze"])[0].text
    assert translator.translate(["& &"], glossary={"&": "und"})[0].text.count("und") == 2


def test_without_protection_a_number_is_left_to_the_model_and_a_mark_is_not(translator: Translator) -> None:
    assert [line.text for line in translator.translate(["§§§", "→"], protect=False)] == ["§§§", "→"]


def test_a_pair_with_an_invisible_side_is_not_scored_and_not_trained_on(translator: Translator) -> None:
    scored = translator.score(["the dog", "..."], ["\ufeff\u200b", "..."])
    assert [bool(pair.n_tokens) for pair in scored] == [False, True]
    pairs = [("the dog", "der hund"), ("\u2060", "der hund"), ("the dog", "\u200e\ufe0f")]
    sizes = np.array([2, 2, 2])
    config = DataConfig.model_construct(max_tokens=9, max_ratio=None, drop_duplicates=False)
    assert Cleaner(config).keep(pairs, sizes, sizes).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "text", ["", " \t\u00a0\u3000\u2028", "\u200b\ufeff\u2060\u00ad\u202e\u2069", "\ufe0f\u034f\u3164\U000e0101"]
)
def test_what_is_not_drawn_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}.")
    assert not is_blank(f"{text}\u0600")  # a sign before numbers is drawn


def test_a_long_line_without_a_word_is_split_where_words_are_asked_for(translator: Translator) -> None:
    """The model would read it whole, in the square of its length, or could not; the other lines would be lost too."""
    long = " ".join(["12345"] * 800)
    for options in (dict(prefix="der"), dict(include=["katze"]), dict(glossary={"12345": "hund"})):
        segments = segment(["the dog", long], translator.plan(**options), Events())  # type: ignore[arg-type]
        assert max(len(own.search.ids) for own in segments) <= 2 * translator.usual_tokens
        assert "".join(own.text for own in segments if own.owner == 1).replace(" ", "") == long.replace(" ", "")
    assert len(segment([long], translator.plan(), Events())) == 1  # it is copied
