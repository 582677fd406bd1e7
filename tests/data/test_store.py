"""The store: what goes in comes out, complete or not at all."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config import DataConfig, TokenizerConfig
from dragoman.data import store as module
from dragoman.data.corpus import Report
from dragoman.data.store import FORMAT, Entry, Origin, Store, build_store, check_store, fingerprint, throttled
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import DataError, DragomanError
from dragoman.languages.scripts import is_blank

SRC = Tokenizer.learn(["a quick brown fox jumps over the lazy dog"] * 5, TokenizerConfig(vocab_size=300))
TGT = Tokenizer.learn(["ein flinker brauner Fuchs springt über den faulen Hund"] * 5, TokenizerConfig(vocab_size=310))
PAIRS = [(f"fox {i} the dog", f"Fuchs {i} und Hund {i * i}") for i in range(57)]


def config(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": {"src": "s", "tgt": "t"}, **settings})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_ids_and_texts_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_PAIRS", 10)  # several chunks
    report = build_store(tmp_path / "s", [Entry(iter(PAIRS))], (SRC, TGT), config(), keep_text=True)
    assert report == Report(read=57, kept=57)
    store = Store.open(tmp_path / "s")
    assert len(store) == 57
    assert store.report == report
    for i, (src, tgt) in enumerate(PAIRS):
        src_ids, tgt_ids = store.pair(i)
        assert [src_ids.tolist(), tgt_ids.tolist()] == [SRC.encode([src])[0], TGT.encode([tgt])[0]]
        assert (store.src_lengths()[i], store.tgt_lengths()[i]) == (len(src_ids), len(tgt_ids))
    with pytest.raises(IndexError):
        store.pair(57)
    with pytest.raises(IndexError):
        store.pair(-1)
    assert store.n_tokens == (store.src_lengths().sum(), store.tgt_lengths().sum())
    assert store.texts([3, 0, 56]) == tuple(map(list, zip(*(PAIRS[i] for i in (3, 0, 56)), strict=True)))
    assert store.vocab_sizes == (SRC.vocab_size, TGT.vocab_size)
    assert store.tokenizers == (SRC.fingerprint, TGT.fingerprint)
    assert names(tmp_path) == ["s"]


LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(LINE, LINE), max_size=12))
def test_any_pairs_come_back_but_the_blank_ones(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    pairs.append(("one", "is kept"))
    folder = tmp_path_factory.mktemp("t") / "s"
    report = build_store(folder, [Entry(pairs)], (SRC, TGT), config(), keep_text=True)
    kept = [pair for pair in pairs if not any(map(is_blank, pair))]
    store = Store.open(folder)
    assert list(zip(*store.texts(range(len(store))), strict=True)) == kept
    assert report == Report(read=len(pairs), kept=len(kept), empty=len(pairs) - len(kept))


def test_cleaning_is_counted_and_what_is_dropped_is_not_stored(tmp_path: Path) -> None:
    pairs = [*PAIRS[:3], ("", "x"), PAIRS[0], ("dog " * 99, "Hund"), ("dog " * 20, "Hund")]
    report = build_store(
        tmp_path / "s",
        [Entry(pairs)],
        (SRC, TGT),
        config(max_tokens=90, max_ratio=9, drop_duplicates=True),
        keep_text=True,
    )
    assert report == Report(read=7, kept=3, empty=1, too_long=1, ratio=1, duplicates=1)
    assert Store.open(tmp_path / "s").texts(range(3))[0] == [src for src, _ in PAIRS[:3]]


def test_without_text_none_is_stored_and_asking_says_so(tmp_path: Path) -> None:
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    assert names(tmp_path / "s") == ["src.ids", "src.offsets", "store.json", "tgt.ids", "tgt.offsets"]
    store = Store.open(tmp_path / "s")
    assert not store.has_text
    with pytest.raises(DataError, match="keep_text=True"):
        store.texts([0])


@pytest.mark.parametrize(("vocab_size", "dtype"), [(8000, np.uint16), (2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_are_stored_in_two_bytes_where_they_fit(vocab_size: int, dtype: type) -> None:
    assert module.id_dtype(vocab_size) == dtype
    assert np.array(vocab_size - 1).astype(module.id_dtype(vocab_size)) == vocab_size - 1


def test_sources_are_fingerprinted(tmp_path: Path) -> None:
    file = tmp_path / "train.en"
    file.write_bytes(b"hello\n")
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config(), Origin(sources=[file]))
    assert Store.open(tmp_path / "s").sources == {str(file): fingerprint(file)}
    assert fingerprint(file) == {"bytes": 6, "sha256": hashlib.sha256(b"hello\n").hexdigest()}
    with pytest.raises(DataError, match="cannot be read"):
        fingerprint(tmp_path / "nothing")


def test_an_older_store_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    for n in (5, 9):
        build_store(folder, [Entry(PAIRS[:n])], (SRC, TGT), config())
        assert len(Store.open(folder)) == n
    assert names(tmp_path) == ["s"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(DataError, match="is not a store"):
        build_store(tmp_path / "mine", [Entry(PAIRS)], (SRC, TGT), config())
    assert names(tmp_path / "mine") == ["thesis.tex"]


def test_a_failure_on_the_way_leaves_nothing_and_keeps_the_older_store(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[str, str]]:
        yield from PAIRS
        raise DataError("line 58 is bad")

    with pytest.raises(DataError, match="line 58"):
        build_store(tmp_path / "s", [Entry(broken())], (SRC, TGT), config())
    assert names(tmp_path) == []
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    with pytest.raises(DataError, match="line 58"):
        build_store(tmp_path / "s", [Entry(broken())], (SRC, TGT), config())
    assert len(Store.open(tmp_path / "s")) == 57
    assert names(tmp_path) == ["s"]


def test_a_corpus_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    for pairs in ([], [("", "x")] * 3):
        with pytest.raises(DataError, match=rf"no pair of the text is left.*{len(pairs)} pairs read"):
            build_store(tmp_path / "s", [Entry(pairs)], (SRC, TGT), config())
    assert names(tmp_path) == []


def test_a_full_disk_and_a_bad_place_are_data_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DragomanError, match="cannot be written"):
        build_store(tmp_path / "file" / "s", [Entry(PAIRS)], (SRC, TGT), config())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DragomanError, match=r"s: cannot be written .No space left on device.; .* bytes are free"):
        build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    assert names(tmp_path) == ["file"]


def test_a_file_system_may_return_fewer_bytes_than_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, n_bytes, place: pread(descriptor, min(n_bytes, 3), place))
    store = Store.open(tmp_path / "s")
    assert [ids.tolist() for ids in store.pair(56)] == [SRC.encode([PAIRS[56][0]])[0], TGT.encode([PAIRS[56][1]])[0]]
    assert store.texts([3, 0]) == ([PAIRS[3][0], PAIRS[0][0]], [PAIRS[3][1], PAIRS[0][1]])


def test_a_store_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    build_store(folder, [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)
    assert len(names(folder)) == 9
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for content in (whole[:-2], whole[: len(whole) // 2], b""):
            path.write_bytes(content)
            with pytest.raises(DataError, match="cannot be used"):
                Store.open(folder)
        path.unlink()
        with pytest.raises(DataError, match=f"{path.name}: missing"):
            Store.open(folder)
        path.write_bytes(whole)
    Store.open(folder)


def test_every_flipped_bit_is_noticed_when_the_sums_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    build_store(folder, [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)
    assert check_store(folder)
    chance = random.Random(0)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for _ in range(30):
            place, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
            with pytest.raises(DataError, match=f"s/{path.name}: (the manifest is )?damaged"):
                check_store(folder)
        path.unlink()
        with pytest.raises(DataError, match=path.name):
            check_store(folder)
        path.write_bytes(whole)
    assert check_store(folder)


def test_a_store_without_sums_says_so(tmp_path: Path) -> None:
    """As dragoman 0.1 wrote them."""
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    path = tmp_path / "s/store.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    del about["files"], about["sha256"]
    path.write_text(json.dumps(about), encoding="utf-8")
    assert len(Store.open(tmp_path / "s")) == len(PAIRS)
    assert not check_store(tmp_path / "s")


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".s.0123abcd.tmp").mkdir()
    (tmp_path / ".s.0123abcd.tmp/src.ids").write_bytes(bytes(99))
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    assert names(tmp_path) == ["s"]


@pytest.mark.parametrize(
    "change",
    [{"format": FORMAT + 1}, {"pairs": 56}, {"pairs": "x"}, {"src": {}}, {"report": {"bad": 1}}, {"text_bytes": [1]}],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)
    path = tmp_path / "s" / "store.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match="copy it from a backup, or train a new run"):
        Store.open(tmp_path / "s")


def test_opening_ten_million_pairs_reads_none_of_them(tmp_path: Path) -> None:
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    n = 10_000_000
    about = json.loads((tmp_path / "s" / "store.json").read_text())
    for side in ("src", "tgt"):
        about[side]["tokens"] = 0
        (tmp_path / "s" / f"{side}.ids").write_bytes(b"")
        with (tmp_path / "s" / f"{side}.offsets").open("wb") as file:
            file.truncate(8 * (n + 1))  # sparse: all zeros
    (tmp_path / "s" / "store.json").write_text(json.dumps({**about, "pairs": n, "corpora": [{"pairs": n}]}))
    tracemalloc.start()
    try:
        assert len(Store.open(tmp_path / "s")) == n
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # nothing is read but what it says of itself
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("chunk", [1, 7, 57, 1000])
def test_lengths_and_rows_are_those_of_the_whole_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(module, "CHUNK_OFFSETS", chunk)
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config())
    store = Store.open(tmp_path / "s")
    for side, lengths in enumerate((store.src_lengths(), store.tgt_lengths())):
        name = ("src", "tgt")[side]
        ids = np.fromfile(tmp_path / f"s/{name}.ids", "<u2")
        offsets = np.fromfile(tmp_path / f"s/{name}.offsets", "<i8")
        assert lengths.dtype == np.int16
        assert np.array_equal(lengths, np.diff(offsets))
        for i in range(57):
            assert np.array_equal(store.pair(i)[side], ids[offsets[i] : offsets[i + 1]])


@pytest.mark.parametrize(("longest", "dtype"), [(2**14 - 1, np.int16), (2**14, np.int32), (40_000, np.int32)])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_long_lines_get_wider_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int, dtype: type, place: int
) -> None:
    monkeypatch.setattr(module, "CHUNK_OFFSETS", 4)
    pairs = [("a dog", "1" * (longest - 1) if i == place else "Hund") for i in range(10)]  # and a space
    build_store(tmp_path / "s", [Entry(pairs)], (SRC, TGT), config(max_tokens=50_000))
    lengths = Store.open(tmp_path / "s").tgt_lengths()
    assert lengths.dtype == dtype
    assert lengths.tolist() == [len(ids) for ids in TGT.encode([tgt for _, tgt in pairs])]
    assert lengths.max() == longest


def test_a_store_that_changes_after_it_was_opened_is_an_error_and_no_crash(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    build_store(folder, [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)
    store = Store.open(folder)
    offsets = (folder / "src.offsets").read_bytes()
    for damage in (2**60, -1):
        (folder / "src.offsets").write_bytes(offsets[:80] + damage.to_bytes(8, "little", signed=True) + offsets[88:])
        for row in (9, 10):
            with pytest.raises(DataError, match=r"src\.offsets: damaged \(row (9|10) from"):
                store.pair(row)
        store.pair(11)
    (folder / "src.offsets").write_bytes(offsets[:80])
    with pytest.raises(DataError, match=r"src\.offsets: was truncated"):
        store.src_lengths()
    os.truncate(folder / "tgt.text", 100)
    with pytest.raises(DataError, match=r"tgt\.text: was truncated"):
        store.texts([56])


def test_a_store_that_is_forgotten_closes_its_files(tmp_path: Path) -> None:
    build_store(tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config(), keep_text=True)

    def n_open() -> int:
        return sum(
            str(tmp_path) in str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
        )

    store = Store.open(tmp_path / "s")
    assert n_open() == 8
    del store
    gc.collect()
    assert n_open() == 0


def test_progress_is_told_the_end_and_not_too_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_PAIRS", 1)
    calls: list[tuple[int, int | None, str]] = []
    build_store(
        tmp_path / "s", [Entry(PAIRS)], (SRC, TGT), config(), total=57, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (57, 57, "pairs encoded")
    assert len(calls) < 20
    throttled(None)(1, None, "nothing")
