"""Lexical shortlists: what is learned, what a sentence gets, and what is refused of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dragoman.bundle import load_bundle
from dragoman.data.shortlist import EACH, MULTIPLE, N_SPECIALS, Shortlist, learn
from dragoman.data.store import Store
from dragoman.errors import BundleError

SMALL = Shortlist(
    np.array([0, 1, 2, 3, 7]), np.array([0, 0, 0, 0, 0, 2, 3]), np.array([4, 9, 5])
)  # six source subwords


def test_a_sentence_has_its_subwords_lists_and_what_is_usual() -> None:
    assert SMALL.of([4]).tolist() == [0, 1, 2, 3, 4, 7, 9]
    assert SMALL.of([5, 4, 5]).tolist() == [0, 1, 2, 3, 4, 5, 7, 9]
    assert SMALL.of([0]).tolist() == [0, 1, 2, 3, 7]
    assert [row.tolist() for row in SMALL.rows()] == [[], [], [], [], [4, 9], [5]]


def test_a_batch_has_the_union_and_each_sentence_its_own_part() -> None:
    ids, own = SMALL.of_batch([[4], [5]])
    assert ids[:8].tolist() == [0, 1, 2, 3, 4, 5, 7, 9]
    assert len(ids) == MULTIPLE
    assert ids[8:].tolist() == [0] * (MULTIPLE - 8)
    assert [ids[row].tolist() for row in own] == [SMALL.of([4]).tolist(), SMALL.of([5]).tolist()]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    SMALL.write(tmp_path / "x", 10)
    found = Shortlist.read(tmp_path / "x", 6, 10)
    for name in ("usual", "starts", "ids"):
        assert np.array_equal(getattr(found, name), getattr(SMALL, name))


@pytest.mark.parametrize(
    ("damage", "sizes"),
    [
        (lambda raw: raw[:-1], (6, 10)), (lambda raw: raw[:-2], (6, 10)), (lambda raw: raw + b"\0\0", (6, 10)),
        (lambda raw: b"", (6, 10)), (lambda raw: raw, (7, 10)), (lambda raw: raw, (6, 9)),
        (lambda raw: b"\3" + raw[1:], (6, 10)), (lambda raw: raw[:16] + b"\5" + raw[17:], (6, 10)),
    ],
    ids=["half a number", "cut", "longer", "empty", "other source", "other target", "few specials", "other specials"],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path: Path, damage: object, sizes: tuple[int, int]) -> None:
    SMALL.write(tmp_path / "x", 10)
    (tmp_path / "x").write_bytes(damage((tmp_path / "x").read_bytes()))  # type: ignore[operator]
    with pytest.raises(BundleError, match="copy it again"):
        Shortlist.read(tmp_path / "x", *sizes)


def test_translations_are_learned_from_the_text(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy language is translated word by word, so a word's own translation must be in its list, and few others."""
    monkeypatch.setattr("dragoman.data.shortlist.USUAL", 0)
    bundle = load_bundle(tiny_run)
    found = learn(Store.open(tiny_run / "store/train"), bundle.src_tokenizer, bundle.tgt_tokenizer)
    assert found.usual.tolist() == list(range(N_SPECIALS))
    for src, tgt in (("the dog", "der hund"), ("a big house", "ein gross haus"), ("today", "heute")):
        src_ids, tgt_ids = bundle.src_tokenizer.encode([src])[0], bundle.tgt_tokenizer.encode([tgt])[0]
        assert set(tgt_ids) <= set(found.of(src_ids).tolist())
        assert set(src_ids) <= set(found.of(src_ids).tolist())  # it may be copied
    assert max(map(len, found.rows())) <= EACH + 1
    assert np.mean([len(row) for row in found.rows()]) < 12


def test_of_a_large_text_a_part_is_learned_from(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, store = load_bundle(tiny_run), Store.open(tiny_run / "store/train")
    whole = learn(store, bundle.src_tokenizer, bundle.tgt_tokenizer)
    read = []
    monkeypatch.setattr("dragoman.data.shortlist.MAX_LINKS", 4000)
    monkeypatch.setattr(store, "pair", lambda i: (read.append(i), Store.pair(store, i))[1])
    part = learn(store, bundle.src_tokenizer, bundle.tgt_tokenizer)
    assert 10 < len(read) < len(store) / 2
    assert max(read) > 0.9 * len(store)  # spread over all of it
    assert set(part.ids.tolist()) <= {*whole.ids.tolist(), *whole.usual.tolist()}
