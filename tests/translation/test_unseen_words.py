"""Words that the model never saw are named: in Python, on the command line, in documents and over HTTP alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.bundle import Bundle, Tables, amend_bundle, load_bundle, save_bundle
from dragoman.data.seen_words import words_of
from dragoman.model.weights import untied
from dragoman.translation.confidence import FEATURES, Confidence
from dragoman.translation.notes import Note
from dragoman.translation.translator import Translator
from dragoman.translation.unseen_words import MOST, note_on_words


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


def named(translator: Translator, text: str, **options: Any) -> list[str]:
    """Return the words that the note on a translation names."""
    notes = [note for note in translator.translate(text, **options).notes if note.kind == "unseen"]
    assert len(notes) <= 1
    return [word for note in notes for word in note.words]


@pytest.mark.parametrize(
    ("text", "words"),
    [("the dog sees a cat", []), ("THE DOG", []), ("The dog.", []), ("", []), ("12 %", []),
     ("the quetzal sees Boston", ["quetzal", "Boston"]), ("the quetzal, the quetzal", ["quetzal"]),
     ("ｔｈｅ dog", []), ("the dog https://example.org/quetzal", []), ("the dogcat", ["dogcat"])],
)  # fmt: skip
def test_words_that_the_model_never_saw_are_named_once(translator: Translator, text: str, words: list[str]) -> None:
    assert named(translator, text) == words


def test_one_note_names_the_words_of_all_sentences_of_a_line(translator: Translator) -> None:
    assert named(translator, "the quetzal sleeps. a dog sees the axolotl.") == ["quetzal", "axolotl"]


def test_a_term_of_the_glossary_is_no_such_word(translator: Translator) -> None:
    assert named(translator, "the quetzal sees Boston", glossary={"quetzal": "Quetzal"}) == ["Boston"]


def test_a_source_in_another_script_has_no_second_note(translator: Translator) -> None:
    kinds = [note.kind for note in translator.translate("教师读书").notes]
    assert "script" in kinds
    assert "unseen" not in kinds


def test_the_note_names_a_few_words_and_counts_the_others() -> None:
    words = tuple(f"w{i}" for i in range(MOST + 2))
    assert note_on_words(words).text.endswith("w6, w7 and 2 more")
    assert note_on_words(("Tom",)).text == "a word that the model never saw: Tom"


def test_a_bundle_without_words_says_nothing(tiny_run: Path, tmp_path: Path) -> None:
    bundle = load_bundle(tiny_run)
    save_bundle(
        tmp_path / "old", bundle.config, bundle.model.config, untied(bundle.model), bundle.src_tokenizer,
        bundle.tgt_tokenizer, {},
    )  # fmt: skip
    assert not (tmp_path / "old/words.hashes").exists()
    old = Translator.load(tmp_path / "old", "cpu")
    assert named(old, "the quetzal sees Boston") == []
    assert Translator(tmp_path / "old", tiny_run, device="cpu").seen_words is None


def test_a_changed_bundle_keeps_its_words(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "run/bundle")
    amend_bundle(tmp_path / "run", step=7)
    assert named(Translator.load(tmp_path / "run", "cpu"), "the quetzal") == ["quetzal"]


def test_an_ensemble_names_what_no_member_saw(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    assert bundle.words is not None
    half = Bundle(*bundle[:6], type(bundle.words)(bundle.words.hashes[::2]))
    assert named(Translator(half, device="cpu"), "the dog sees a cat")
    assert named(Translator(half, bundle, device="cpu"), "the dog sees a cat") == []


def test_a_fine_tuned_run_knows_the_words_of_its_parent(
    tiny_run: Path, tmp_path: Path, toy_sentences: Callable[[int, int], list[tuple[str, str]]]
) -> None:
    pairs = [(f"{src} quetzal", f"{tgt} quetzal") for src, tgt in toy_sentences(3, 5)] * 10
    for side, lang in enumerate(("en", "de")):
        for name, some in (("a", pairs), ("valid", toy_sentences(20, 6))):
            text = "".join(pair[side] + "\n" for pair in some)
            (tmp_path / f"{name}.{lang}").write_text(text, encoding="utf-8")
    dragoman.train(
        tmp_path / "a.en", tmp_path / "a.de", valid_src=tmp_path / "valid.en", valid_tgt=tmp_path / "valid.de",
        out=tmp_path / "tuned", from_run=tiny_run,
        overrides=["train.max_steps=1"], quiet=True,
    )  # fmt: skip
    tuned = Translator.load(tmp_path / "tuned", "cpu")
    parent = load_bundle(tiny_run)
    assert parent.words is not None
    assert tuned.seen_words is not None
    assert set(parent.words.hashes.tolist()) < set(tuned.seen_words.hashes.tolist())
    assert named(tuned, "the quetzal sees an axolotl") == ["an", "axolotl"]


def test_the_command_line_counts_the_lines_and_lists_them(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    text = tmp_path / "a.en"
    text.write_text("the quetzal\nthe dog\n" + "a axolotl sees\n" * 4, encoding="utf-8")
    done = command("translate", tiny_run, text, "--out", tmp_path / "a.de")
    assert "; 5 with words that the model never saw; list: -v" in done.err
    assert "axolotl" not in done.err
    done = command("translate", tiny_run, text, "--out", tmp_path / "b.de", "-v")
    assert done.err.count("a word that the model never saw: axolotl") == 4
    done = command("translate", tiny_run, text, "--out", tmp_path / "c.jsonl", "--json")
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text(encoding="utf-8").splitlines()]
    notes = {"kind": "unseen", "text": "a word that the model never saw: quetzal", "words": ["quetzal"]}
    assert notes in lines[0]["notes"]


def test_notes_are_equal_by_what_they_say() -> None:
    assert Note("unseen", "x", words=("a",)) != Note("unseen", "x")
    assert Tables() == Tables(None, None)


def with_confidence(translator: Translator) -> Translator:
    """Return a translator of the same bundles that is sure of all that it translates."""
    sure = Confidence(
        centres=(0,) * len(FEATURES), weights=(0,) * len(FEATURES), bias=1.0, said=(1.0,), found=(1.0,), sentences=100,
        rank_correlation=1.0,
    )  # fmt: skip
    able = Translator(*translator.bundles, device="cpu")
    able.confidence = sure
    return able


def test_a_word_that_the_model_never_saw_lowers_the_quality_of_its_sentence_alone(translator: Translator) -> None:
    able = with_confidence(translator)
    texts = ["the dog sees a cat", "the dog sees the quetzal", "the dog sees. " * 4 + "the quetzal sees."]
    known, new, paragraph = able.translate(texts, guard=False)
    assert (known.quality, new.quality) == ("good", "doubtful")
    assert known.confidence == new.confidence == 1
    assert paragraph.quality == "good"  # one of five sentences is doubtful
    assert able.translate(texts[1], guard=False, glossary={"quetzal": "hund"}).quality == "good"


def test_the_words_of_terms_are_looked_for_once_in_a_line(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for them in each part of a line took a minute for thousands of parts and terms."""
    looked_at: list[str] = []

    def counted(term: str) -> Iterator[str]:
        looked_at.append(term)
        return words_of(term)

    monkeypatch.setattr("dragoman.translation.unseen_words.words_of", counted)
    terms = {f"quetzal{letter}": "hund" for letter in "abcdefgh"}
    text = " ".join(f"the {term} sees the axolotl." for term in terms)
    translated = with_confidence(translator).translate(text, guard=False, glossary=terms)
    assert (translated.n_parts, translated.terms) == (len(terms), tuple(terms))
    assert [note.words for note in translated.notes if note.kind == "unseen"] == [("axolotl",)]
    assert sorted(looked_at) == sorted([*terms] * 2)  # for the quality of the parts, and for the note
