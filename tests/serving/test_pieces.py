"""Pieces of documents lie on disk: many documents that wait for their turn need hardly any memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dragoman.serving.pieces import IN_MEMORY, WINDOW, Pieces, room_of_pieces
from dragoman.serving.refusals import UnstorableError
from dragoman.serving.storage import reserve
from dragoman.translation.assemble import Translation
from dragoman.translation.notes import Note


def worked_through(pieces: Pieces) -> list[list[str]]:
    """Translate all pieces into capitals; return the windows."""
    windows = []
    while window := pieces.window():
        windows.append(window)
        pieces.add([Translation(piece.upper(), -1.0, alignment=((0, 0),)) for piece in window])
    return windows


def some_texts(n: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [f"{i} " + "".join(chance.choices('ab ,中\udc80é😀\u2028"\\', k=chance.randrange(1, 40))) for i in range(n)]


@pytest.mark.parametrize("n", [0, 1, WINDOW, 20 * WINDOW + 1, 4001])
def test_every_text_comes_back_with_its_translation(n: int, tmp_path: Path) -> None:
    texts = some_texts(n, seed=n)
    pieces = Pieces.of(texts, tmp_path / "pieces", 500, "en")
    windows = worked_through(pieces)
    assert [piece for window in windows for piece in window] == texts
    assert all(len(window) <= WINDOW and sum(map(len, window)) <= 500 for window in windows)
    assert list(pieces.translated("de")) == [[text, text.upper(), [[0, 0]]] for text in texts]
    assert list(pieces.untranslated("de")) == []
    assert (tmp_path / "pieces").exists() == (sum(map(len, texts)) > IN_MEMORY)


def test_a_long_text_is_cut_and_joined_again(tmp_path: Path) -> None:
    long = "".join(f"this is sentence number {i} of a line. " for i in range(4000))
    pieces = Pieces.of(["short", long, "a" * 999], tmp_path / "pieces", 300, "en")
    windows = worked_through(pieces)
    assert all(len(piece) <= 300 for window in windows for piece in window)
    (first, *_), (text, translation, alignment), (last, joined, _) = pieces.translated("de")
    assert (first, text, last, joined) == ("short", long, "a" * 999, " ".join(["A" * 300] * 3 + ["A" * 99]))
    assert (translation, alignment) == (long.upper().strip(), None)


def test_texts_without_a_translation_are_named_with_the_reason(tmp_path: Path) -> None:
    pieces = Pieces.of(["a", "b", "c"], tmp_path / "pieces", 300, "en")
    pieces.window()
    lost = Translation("", 0.0, notes=(Note("memory", "it does not fit"),))
    pieces.add([Translation("A", -1.0), lost, Translation(" ", -1.0)])
    assert list(pieces.translated("de")) == [["a", "A", None]]
    assert list(pieces.untranslated("de")) == [["b", "out of memory"], ["c", "the model gave an empty translation"]]


def test_the_reserved_room_is_used(tmp_path: Path) -> None:
    texts = [f"line {n} of a document" for n in range(10_000)]
    n_bytes = room_of_pieces(sum(map(len, texts)))
    reserve(tmp_path / "pieces", n_bytes)
    pieces = Pieces.of(texts, tmp_path / "pieces", 50_000, "en")
    assert len(worked_through(pieces)) == -(-10_000 // WINDOW)
    assert (tmp_path / "pieces").stat().st_size == n_bytes  # nothing was added to it
    assert room_of_pieces(IN_MEMORY) == 0


def test_a_file_that_cannot_be_read_is_no_error_that_names_it(tmp_path: Path) -> None:
    texts = [f"line {n} of a document" for n in range(4000)]
    pieces = Pieces.of(texts, tmp_path / "pieces", 50_000, "en")
    (tmp_path / "pieces").unlink()
    (tmp_path / "pieces").mkdir()
    with pytest.raises(UnstorableError, match="the server cannot store this now"):
        pieces.window()


@pytest.mark.parametrize("most", [20, 40, 150])
def test_a_sentence_that_is_too_long_is_cut_between_words_and_in_nothing_that_must_arrive(
    most: int, tmp_path: Path
) -> None:
    """It was cut anywhere: the parts of a number, an address or a placeholder were joined again with a space."""
    codes = [*(str(1_000_000 + 7919 * i) for i in range(60)), "https://a.de/b.html", "{a name}", "don't"]
    text = f"The numbers are {', '.join(codes)} today."
    pieces = Pieces.of([text], tmp_path / "pieces", most, "en")
    windows = worked_through(pieces)
    assert all(len(piece) <= most for window in windows for piece in window)
    assert sum(map(len, windows)) > 1
    (source, translation, _), *more = pieces.translated("de")
    assert (source, more) == (text, [])
    assert str(translation).split() == text.upper().split()


def test_a_text_without_spaces_is_cut_all_the_same(tmp_path: Path) -> None:
    for lang, text in (("zh", "我们去公园" * 30), ("en", "a" * 100)):
        windows = worked_through(Pieces.of([text], tmp_path / lang, 40, lang))
        assert [len(piece) for window in windows for piece in window][:-1] == [40] * ((len(text) - 1) // 40)
