"""A source in letters that the model never saw is said to be so, and no search has made its translation right."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.written_numbers import CARRIERS
from dragoman.data.tokenizer import Tokenizer
from dragoman.translation.translator import Translator
from dragoman.translation.unseen_scripts import note_on_script


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.fixture(scope="module")
def tokenizer(translator: Translator) -> Tokenizer:
    return translator.src_tokenizer


FOREIGN = [carrier.format("5") for script, own in CARRIERS.items() if script != "latin" for carrier in own]
OTHERS = ["Привет, мир", "Καλημέρα κόσμε", "שלום עולם", "გამარჯობა", "Բարեւ", "안녕하세요", "ສະບາຍດີ",
          "𝐀 𝐝𝐨𝐠", "教师读书 OK",
          "Он читает WWW https://example.org/a/long/address"]  # fmt: skip


@pytest.mark.parametrize("text", FOREIGN + OTHERS)
def test_a_source_in_another_script_is_named(tokenizer: Tokenizer, text: str) -> None:
    note = note_on_script(text, tokenizer)
    assert note is not None
    assert (note.kind, note.left) == ("script", True)


@pytest.mark.parametrize(
    "text",
    ["the dog sleeps", "A", "der Hund schläft", "I love Москва", "the city of 北京 is big",
     "5 μm of β-carotene", "", "...", "12 %", "#привет the dog https://example.org", "der hund 🙂", "naïve café"],
)  # fmt: skip
def test_own_text_with_a_foreign_word_is_not(tokenizer: Tokenizer, text: str) -> None:
    assert note_on_script(text, tokenizer) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [("the d\u043eg sleeps", "d\u043eg"), ("\u0422he dog", "\u0422he"),
     ("the \u0441\u043e\u0440 sleeps", "\u0441\u043e\u0440"), ("\u0391 dog", "\u0391"), ("the do\u03bfr", "do\u03bfr")],
)  # fmt: skip
def test_letters_that_only_look_alike_are_named_with_their_word(tokenizer: Tokenizer, text: str, word: str) -> None:
    note = note_on_script(text, tokenizer)
    assert note is not None
    assert (note.kind, note.left) == ("script", False)
    assert repr(word) in note.text


def test_the_guard_does_not_call_such_a_translation_repaired(translator: Translator) -> None:
    lines = [*FOREIGN, "the dog sleeps"]
    *translations, own = translator.translate(lines)
    for translation in translations:
        notes = [note for note in translation.notes if note.kind not in ("number", "placeholder")]
        assert "script" in [note.kind for note in notes]
        assert all(note.left for note in notes)
    assert [note.kind for note in own.notes] == []
