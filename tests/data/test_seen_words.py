"""Words of the training text as hashes: which words there are, what is kept, and what is refused of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.bundle import load_bundle
from dragoman.data.seen_words import LEAST_FREE, SeenWords, learn, of_ids, words_of
from dragoman.data.store import Store
from dragoman.errors import BundleError


@pytest.mark.parametrize(
    ("text", "words"),
    [("Don't stop, B2B!", ["Don", "t", "stop", "B", "B"]), ("12 % ...", []), ("", []),
     ("Zu\u0308rich", ["Z\u00fcrich"]), ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
     ("我们 go", ["我", "们", "go"])],
)  # fmt: skip
def test_a_word_is_a_run_of_letters_or_a_character_of_a_script_without_spaces(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


def test_words_of_the_training_text_are_known_in_any_case_and_others_are_not(tiny_run: Path) -> None:
    bundle = load_bundle(tiny_run)
    store = Store.open(tiny_run / "store/train")
    seen = learn(store, bundle.src_tokenizer)
    sources = bundle.src_tokenizer.decode([store.pair(i)[0].tolist() for i in range(len(store))])
    assert all(not seen.unseen(line) and not seen.unseen(line.upper()) for line in sources)
    assert seen.unseen("The quetzal sees the QUETZAL, dogsdog") == ["quetzal", "dogsdog"]
    assert bundle.words is not None
    np.testing.assert_array_equal(bundle.words.hashes, seen.hashes)


def test_a_file_is_read_as_it_was_written_and_a_hash_never_changes(tmp_path: Path) -> None:
    seen = SeenWords(np.array([7, 9, 0xFFFF_FFFF], np.uint32))
    seen.write(tmp_path / "words")
    assert (tmp_path / "words").read_bytes().hex() == "0700000009000000ffffffff"
    np.testing.assert_array_equal(SeenWords.read(tmp_path / "words").hashes, seen.hashes)
    hund = SeenWords(np.array([0xC9CF0820], np.uint32))
    assert hund.unseen("Hund hund Katze") == ["Katze"]


def test_texts_looked_up_together_get_what_they_get_alone() -> None:
    seen = of_lines([*CHINESE, "the dog"])
    texts = ["the DOG sees", "", "大喜 dog", "the dog", "sees dogs, SEES", "猫狗 猫狗"]
    together = seen.unseen_of(texts)
    assert together == [seen.unseen(text) for text in texts]
    assert together[0] == ["sees"]
    assert together[3] == []


@pytest.mark.parametrize("content", [b"\1\0\0", b"\2\0\0\0\1\0\0\0", b"\1\0\0\0\1\0\0\0"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "words.hashes"
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"words\.hashes: not a list of the training text's words"):
        SeenWords.read(path)


def test_without_words_every_word_is_new_and_a_union_has_those_of_both() -> None:
    none = SeenWords(np.zeros(0, np.uint32))
    assert none.unseen("a b a") == ["a", "b"]
    both = SeenWords(np.array([3, 5], np.uint32)).union(SeenWords(np.array([4, 5], np.uint32)))
    assert both.hashes.tolist() == [3, 4, 5]


CHINESE = ["我們喜歡電視", "他看電視", "電視很大", "我看新聞", "他們不看新聞", "新聞很好", "他喜歡我"] * 4


class Plain:
    """A tokenizer whose numbers are texts."""

    def decode(self, rows: list[str]) -> list[str]:
        return list(rows)


def of_lines(lines: list[str]) -> SeenWords:
    """Return the words of lines that come in two chunks."""
    tokenizer: Any = Plain()
    chunks: Any = [lines[:5], lines[5:]]
    return of_ids(chunks, tokenizer)


@pytest.mark.parametrize(
    ("text", "words"),
    [("我看電視新聞", []), ("他們很好", []), ("大喜", ["大喜"]), ("大電視", []), ("好聞歡。", ["好聞歡"]),
     ("電鯨", ["電鯨"]), ("好大。大不好", ["好大", "大不好"]), ("狐狸", ["狐狸"]), ("狐", ["狐"]), ("", [])],
)  # fmt: skip
def test_known_characters_that_never_stood_together_are_a_new_word_unless_they_belong_elsewhere(
    text: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.data.seen_words.TIMES_CHANCE", 4)  # the text is short
    assert of_lines(CHINESE).unseen(text) == words


def test_a_character_that_is_a_word_of_its_own_is_no_part_of_a_new_word() -> None:
    lines = [f"{chr(ord('丁') + i)}的" for i in range(LEAST_FREE)]
    assert of_lines([*lines, "貓狗"]).unseen("的狗") == []
    assert of_lines([*lines[1:], "貓狗"]).unseen("的狗") == ["的狗"]


def test_lines_of_the_training_text_have_no_new_word() -> None:
    assert [of_lines(CHINESE).unseen(line) for line in CHINESE] == [[]] * len(CHINESE)


def test_a_file_without_pairs_says_nothing_of_them_and_neither_does_its_union() -> None:
    seen = of_lines(CHINESE)
    older = of_lines(list("".join(CHINESE)))  # characters alone, as in a bundle of an earlier version
    assert seen.unseen("大喜") == ["大喜"]
    assert older.unseen("大喜") == older.union(seen).unseen("大喜") == seen.union(older).unseen("大喜") == []
    assert seen.union(seen).unseen("大喜") == ["大喜"]
