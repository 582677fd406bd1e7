"""Words of the training text as hashes: which words there are, what is kept, and what is refused of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.bundle import load_bundle
from dragoman.data.seen_words import SeenWords, learn, words_of
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
