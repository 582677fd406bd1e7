"""Reading text strictly and leniently; cleaning."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.config import DataConfig
from dragoman.data import corpus
from dragoman.data.corpus import (
    BOM_BYTES,
    Cleaner,
    Line,
    Report,
    open_corpus,
    read_lines,
    read_lines_leniently,
    read_pairs,
)
from dragoman.data.tables import read_table
from dragoman.data.tmx import read_tmx
from dragoman.errors import DataError
from dragoman.files import pinned
from limits import LONG_S

NOT_LINE_ENDS = "a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i\u2029j"


def write(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".zst":
        content = zstandard.compress(content)
    path.write_bytes(content)
    return path


def lenient(content: bytes) -> list[Line]:
    return list(read_lines_leniently(io.BytesIO(content), "in"))


def plainly(path: Path) -> Iterator[str]:
    """What ``read_lines`` yields, one line at a time."""
    number = 0
    with open_corpus(path) as stream:
        while raw := corpus.read_line(stream, str(path)):
            number += 1
            text = corpus.decode_line(corpus.without_ending(raw), path, number)
            if number == 1 and text.startswith("\ufeff"):
                if raw == BOM_BYTES:
                    number = 0
                    break
                text = text[1:]
            yield text
    if number == 0:
        raise DataError(f"{path}: the file is empty; give a text file with one sentence in each line")


PIECES = [
    b"a",
    b"bc ",
    b"\n",
    b"\n\n",
    b"\r",
    b"\r\n",
    BOM_BYTES,
    "\u00fc\u2028\x85".encode(),
    b"d" * 9,
    b"e" * 21 + b"\n",
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, b"\0", b"\xff", b"\xc3"]), max_size=12) | st.lists(st.sampled_from(PIECES)),
    st.integers(1, 40),
)
def test_reading_in_blocks_equals_reading_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], block: int
) -> None:
    path = write(tmp_path_factory.mktemp("corpus") / "x", b"".join(pieces))
    found: list[list[str]] = [[], []]
    said = ["", ""]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK_BYTES", block)
        patch.setattr(corpus, "MAX_LINE_BYTES", 20)
        for i, read in enumerate((read_lines, plainly)):
            try:
                for line in read(path):
                    found[i].append(line)
            except DataError as error:
                said[i] = str(error)
    assert found[0] == found[1]
    assert said[0] == said[1]


def test_only_lf_ends_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "x", f"{NOT_LINE_ENDS}\nsecond\n".encode())
    assert list(read_lines(path)) == [NOT_LINE_ENDS, "second"]
    assert lenient(path.read_bytes()) == [Line(NOT_LINE_ENDS, None), Line("second", None)]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),  # no LF at the end: the last line counts
        (b"\n", [""]),
        (b"\n\na\n", ["", "", "a"]),
        (b"a\r\nb\r\n", ["a", "b"]),  # CRLF
        (b"a\r\r\n\rb\r", ["a\r", "\rb\r"]),  # one CR, and only right before LF
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # BOM, at the start of the file only
        (b"\xef\xbb\xbf\n", [""]),
        (b" a\t\n", [" a\t"]),
    ],
)
def test_line_endings_and_marks_follow_the_table(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert list(read_lines(write(tmp_path / "x", content))) == lines
    assert [line.text for line in lenient(content)] == lines


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60).map(lambda b: b.replace(b"\x01", b"\n").replace(b"\x02", b"\r\n")))
def test_lenient_reading_gives_as_many_lines_as_there_are_lf(content: bytes) -> None:
    wanted = content.count(b"\n") + (not content.endswith(b"\n") and content not in (b"", BOM_BYTES))
    lines = lenient(content)
    assert len(lines) == wanted
    assert not any("\n" in line.text or "\0" in line.text for line in lines)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"])), min_size=1, max_size=8))
@example(["a\x0c", "\x0b\x0c", "\r\r", "\ufeff", "\u2028"])
def test_any_text_without_lf_and_nul_is_read_back_but_for_the_mark_and_cr(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = write(tmp_path_factory.mktemp("t") / "x.zst", "".join(f"{line}\n" for line in lines).encode())
    wanted = [line.removesuffix("\r") for line in lines]
    assert list(read_lines(path)) == [wanted[0].removeprefix("\ufeff"), *wanted[1:]]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_the_three_kinds_of_file_read_alike(tmp_path: Path, suffix: str) -> None:
    lines = [f"line {i} {'ä' * (i % 97)}" for i in range(5000)]
    path = write(tmp_path / f"x{suffix}", "".join(f"{line}\n" for line in lines).encode())
    assert list(read_lines(path)) == lines
    with open_corpus(path) as stream:
        assert [line.text for line in read_lines_leniently(stream, "x")] == lines


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_frames_one_after_the_other_are_one_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    content = b""
    for part in (b"a\nb", b"", b"c\n", b"d" * 300_000):
        content += write(path, part).read_bytes()
    path.write_bytes(content)
    assert list(read_lines(path)) == ["a", "bc", "d" * 300_000]


def test_a_skippable_zstd_frame_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(b"a\n"))
    assert list(read_lines(path)) == ["a"]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_cut_anywhere_is_an_error_and_never_a_shorter_corpus(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    path = write(tmp_path / f"x{suffix}", b"".join(b"%d\n" % n for n in rng.integers(0, 10**6, 20_000)))
    whole = path.read_bytes()
    for cut in {0, 1, 2, 5, 9, 12, 18, *np.linspace(20, len(whole) - 1, 50).astype(int).tolist(), len(whole) - 1}:
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"truncated or damaged|is empty"):
            list(read_lines(path))
    path.write_bytes(whole + whole[: len(whole) // 2])  # a second frame is cut
    with pytest.raises(DataError, match="truncated or damaged"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_only_claims_to_be_compressed_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"plain text\n" * 10)
    with pytest.raises(DataError, match="damaged"):
        list(read_lines(path))
    write(path, b"a\n")
    path.write_bytes(path.read_bytes() + b"junk at the end")
    with pytest.raises(DataError, match="damaged"):
        list(read_lines(path))


def test_bad_bytes_are_refused_with_file_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"good\n\xc3\xa4b\xffc\n")
    with pytest.raises(DataError, match=r"x:2:4: byte 0xff is not UTF-8"):
        list(read_lines(path))
    path = write(tmp_path / "x", BOM_BYTES + b"\xff\n")  # bytes as they stand in the file
    with pytest.raises(DataError, match=r"x:1:4: "):
        list(read_lines(path))


@pytest.mark.parametrize("bad", [b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe4\xb8"])
def test_overlong_surrogate_and_broken_sequences_are_not_utf8(tmp_path: Path, bad: bytes) -> None:
    with pytest.raises(DataError, match=":1:2: byte"):
        list(read_lines(write(tmp_path / "x", b"a" + bad + b"\n")))


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_bad_unit_of_utf_16_is_one_bad_character_of_its_line(tmp_path: Path, codec: str, suffix: str) -> None:
    """Such text was refused in translation too, without a line."""
    mark, bad = "\ufeff".encode(codec), "\ud83d".encode(codec, "surrogatepass")
    start, end = "gut\nb\u00e4".encode(codec), "c\nlast".encode(codec)
    path = write(tmp_path / f"x{suffix}", mark + start + bad + end)
    with open_corpus(path) as stream:
        lines = list(read_lines_leniently(stream, "in"))
    assert [line.text for line in lines] == ["gut", "b\u00e4\ufffdc", "last"]
    name = codec[:6].upper()
    assert [line.warning for line in lines] == [None, f"in:2: not {name}, U+FFFD put in 1 place", None]
    with pytest.raises(DataError, match=rf"x{suffix}:2: not {name}, with whose byte order mark the file begins; mend"):
        list(read_lines(path))
    assert corpus.encoding_of(path) is None  # its other lines are text, and no iconv is offered for them
    path = write(path, mark + start + b"x")  # half a character at the end
    with open_corpus(path) as stream:
        assert [line.text for line in read_lines_leniently(stream, "in")] == ["gut", "b\u00e4\ufffd"]


def test_nul_is_refused_in_training_with_file_line_and_byte(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x:2:3: NUL"):
        list(read_lines(write(tmp_path / "x", b"a\n\xc3\xa4\0\n")))


@pytest.mark.parametrize("content", [b"", BOM_BYTES])
def test_an_empty_file_is_refused_in_training_and_gives_no_lines_in_translation(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match="is empty"):
        list(read_lines(write(tmp_path / "x", content)))
    assert lenient(content) == []


def test_missing_file_folder_and_unreadable_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing: no such file"):
        list(read_lines(tmp_path / "nothing"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_lines(tmp_path))
    with pytest.raises(DataError, match="cannot be read"):
        list(read_lines(write(tmp_path / "x", b"a\n") / "y"))


def test_zst_without_zstandard_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.zst", b"a\n")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DataError, match="pip install zstandard"):
        list(read_lines(path))


def test_pairs_come_in_order(tmp_path: Path) -> None:
    src, tgt = write(tmp_path / "s", b"a\nb\n"), write(tmp_path / "t.gz", b"x\ny")
    assert list(read_pairs(src, tgt)) == [("a", "x"), ("b", "y")]


@pytest.mark.parametrize(("n_src", "n_tgt"), [(2, 3), (3, 2), (1, 7), (7, 1)])
def test_unequal_sides_are_refused_with_both_counts(tmp_path: Path, n_src: int, n_tgt: int) -> None:
    src, tgt = write(tmp_path / "s", b"a\n" * n_src), write(tmp_path / "t", b"b\n" * n_tgt)
    with pytest.raises(DataError, match=f"s has {n_src} lines but .*t has {n_tgt}:"):
        list(read_pairs(src, tgt))


ROWS, UNITS = partial(read_table, columns=None), partial(read_tmx, languages=("en", "de"))


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [
        (read_lines, "x.en", "\ufeffa\n", "x.en: byte order mark at the start removed"),
        (read_lines, "x.en", "a\r\nb\r\n", "x.en: CR before LF removed from 2 lines"),
        (
            read_lines, "x.en", "a\rb\rc",
            "x.en: one line with 2 CR inside; if its lines end at CR alone, convert it with tr '\\r' '\\n' < x.en > ",
        ),
        (ROWS, "x.tsv", "a\tb\nc\nd\te\n", "x.tsv:2: 1 cell, but the first row has 2: left out"),
        (ROWS, "x.tsv", '"a"\t"b"\n"c, d"\t"e"\n', "x.tsv:1: cells in quotation marks, in 2 rows"),
        (
            UNITS, "x.tmx",
            "<tmx version='1.4'><header srclang='en'/><body><tu><tuv xml:lang='en'><seg>a<ph/></seg></tuv>"
            "<tuv xml:lang='de'><seg>b</seg></tuv></tu></body></tmx>",
            "x.tmx: 1 inline tags left out of the text",
        ),
    ],
)  # fmt: skip
def test_messages_name_a_file_as_it_was_given(
    read: Callable[..., Iterator[Any]], name: str, content: str, message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(Path(name), content.encode())
    with caplog.at_level("INFO"):
        list(read(pinned(name)))
    assert [text for text in caplog.messages if text.startswith(message)]
    assert not [text for text in caplog.messages if str(tmp_path) in text]


def test_lenient_reading_repairs_and_names_the_line() -> None:
    lines = lenient(b"fine\nb\xff\xfed\n\xef\xbf\xbd\na\0b\0\n")
    assert [line.text for line in lines] == ["fine", "b\ufffd\ufffdd", "\ufffd", "a\ufffdb\ufffd"]
    assert [line.warning is None for line in lines] == [
        True,
        False,
        True,
        False,
    ]  # a U+FFFD that was there is no mistake
    assert lines[1].warning == "in:2:2: not UTF-8, U+FFFD put in 2 places"
    assert lines[3].warning == "in:4:2: NUL, U+FFFD put in 2 places"
    assert lenient(b"\xef\xbb\xbfa\n") == [
        Line("a", "in:1: byte order mark at the start removed", ("byte_order_mark",))
    ]


def test_lenient_reading_gives_a_line_as_soon_as_its_lf_arrived() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as pipe:
        guard = threading.Timer(20, pipe.close)  # a reader that waits for more fails instead of hanging
        guard.start()
        lines = read_lines_leniently(stream, "stdin")
        for text in ("one", "two"):
            pipe.write(f"{text}\n".encode())
            assert next(lines) == Line(text, None)
        assert guard.is_alive()
        guard.cancel()
        pipe.close()
        assert list(lines) == []


def test_a_line_above_the_cap_is_refused_in_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_LINE_BYTES", 10)
    for ending in (b"", b"\n", b"\r\n"):
        assert list(read_lines(write(tmp_path / "x", b"a" * 10 + ending))) == ["a" * 10]
        with pytest.raises(DataError, match=r"x:1: the line is longer than 10 bytes"):
            list(read_lines(write(tmp_path / "x", b"a" * 11 + ending)))


def test_a_line_above_the_cap_is_cut_with_a_warning_in_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_LINE_BYTES", 10)
    for n in (10, 11, 12, 13, 100):
        lines = lenient(b"x" * n + b"\nnext\n")
        assert [line.text for line in lines] == ["x" * min(n, 10), "next"]
        assert (lines[0].warning is None) == (n <= 10)
    (line,) = lenient("xxxxxxxx日本".encode())  # the cap goes through a character
    assert line == Line("x" * 8, "in:1: only the first 8 bytes of the line are used", ("cut",))


BOMB = """
import resource, sys
from dragoman.data.corpus import read_lines, read_lines_leniently, open_corpus
from dragoman.errors import DataError
import zstandard, gzip
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    list(read_lines(sys.argv[1]))
except DataError as error:
    assert "longer than 1,048,576 bytes" in str(error), error
else:
    raise SystemExit("no error")
with open_corpus(sys.argv[1]) as stream:
    assert [len(line.text) for line in read_lines_leniently(stream, "x")] == [1_048_576]
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_quarter_of_a_gibibyte_in_one_line_keeps_memory_small(tmp_path: Path, suffix: str) -> None:
    path, block = tmp_path / f"x{suffix}", b"x" * 2**20
    if suffix == ".gz":
        one = gzip.compress(block * 16)
        path.write_bytes(one * 16)
    else:
        with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
            for _ in range(256):
                writer.write(block)
    run = subprocess.run([sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, timeout=LONG_S)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 150  # MiB


def clean(pairs: list[tuple[str, str]], chunk: int = 1000, **settings: object) -> tuple[list[tuple[str, str]], Report]:
    config = DataConfig.model_validate({"train": {"src": "s", "tgt": "t"}, **settings})
    cleaner = Cleaner(config)
    kept = []
    for start in range(0, len(pairs), chunk):
        part = pairs[start : start + chunk]
        lengths = [np.array([len(side.split()) for side in sides]) for sides in zip(*part, strict=True)]
        kept += [part[i] for i in np.flatnonzero(cleaner.keep(part, *lengths))]
    return kept, cleaner.report


def test_each_dropped_pair_is_counted_under_its_first_reason() -> None:
    pairs = [
        ("a", "b"),
        ("", "b c d e f g"),
        (" \t", "b"),
        ("a", "\u3000"),
        ("a b c d e", "x"),
        ("a", "x y z"),
        ("a", "b"),
    ]
    kept, report = clean(pairs, max_tokens=4, max_ratio=2, drop_duplicates=True)
    assert kept == [("a", "b")]
    assert report == Report(read=7, kept=1, empty=3, too_long=1, ratio=1, duplicates=1)
    assert str(report) == (
        "7 pairs read, 1 kept; dropped: 3 with an empty side, 1 too long, 1 with too large a length ratio, 1 duplicates"
    )


def test_limits_are_inclusive() -> None:
    kept, report = clean([("a b c d", "x y")], max_tokens=4, max_ratio=2)
    assert len(kept) == 1
    assert str(report) == "1 pairs read, 1 kept"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1), st.integers(1, 7))
def test_of_duplicates_the_first_stays(pairs: list[tuple[str, str]], chunk: int) -> None:
    kept, report = clean(pairs, chunk, drop_duplicates=True)
    assert kept == list(dict.fromkeys(pairs))
    assert report.duplicates == len(pairs) - len(kept)


def test_a_hundred_thousand_digests_take_eight_bytes_each() -> None:
    seen = corpus.Digests()
    texts = [f"line {i}" for i in range(100_000)]
    for start in range(0, len(texts), 1000):
        assert not seen.add(texts[start : start + 1000]).any()
    assert seen.add(texts).all()
    assert not len(seen.add([]))
    assert sum(run.nbytes for run in seen.runs) == 8 * 100_000
    assert len(seen.runs) < 12


def test_a_file_whose_lines_end_at_cr_alone_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "mac.en"
    path.write_bytes(b"a dog\ra cat\ra bird\r")
    assert list(read_lines(path)) == ["a dog\ra cat\ra bird\r"]
    assert f"{path}: one line with 3 CR inside; if its lines end at CR alone, convert it with tr" in caplog.text
    caplog.clear()
    path.write_bytes(b"a dog\r\na cat\r\n")
    assert list(read_lines(path)) == ["a dog", "a cat"]
    assert "inside" not in caplog.text
