"""Archives are no text; text that only looks a little like one is."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import select
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard

from dragoman.config import DataConfig
from dragoman.data.compression import compressor, open_corpus, refuse_a_pipe, text_of
from dragoman.data.corpus import read_lines_leniently
from dragoman.errors import DataError
from dragoman.training.preparation import check_readable
from limits import wait_until


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", "text\n")
    return out.getvalue()


def tarred(mark: bool = True) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    if mark:
        return out.getvalue()
    header = bytearray(out.getvalue())
    header[257:265] = bytes(8)  # as the first tar wrote it; the sum of a header counts its own eight bytes as spaces
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:512]))
    return bytes(header)


def copied_out(form: str) -> bytes:
    """A cpio archive of a file ``a``."""
    if form == "odc":  # device, number, mode, user, group, links, device, time; sizes of name and content
        header = b"070707" + b"%06o" * 7 % (1, 2, 0o100644, 0, 0, 1, 0) + b"%011o%06o%011o" % (0, 2, 2)
    else:
        header = b"070701" + b"%08x" * 13 % (2, 0o100644, 0, 0, 1, 0, 2, 0, 1, 0, 0, 2, 0)
    return header + b"a\0a\n"


def through_a_pipe(*pieces: bytes) -> BinaryIO:
    """A stream that gets its bytes in pieces, each after the one before was read."""
    reading, writing = os.pipe()

    def write() -> None:
        # the reader may close its end before all is written
        with contextlib.suppress(OSError, ValueError), os.fdopen(writing, "wb", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
                wait_until(lambda: not select.select([reading], [], [], 0)[0])

    threading.Thread(target=write, daemon=True).start()
    return os.fdopen(reading, "rb")


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ((b"\xff", b"\xfeh\0i\0\n\0"), ["hi"]),
        ((b"\xff\xfe", b"\0\0h\0\0\0\n\0\0\0"), ["h"]),  # UTF-32
        ((b"\xff\xfe", b"\0\x01\n\0"), ["\u0100"]),  # UTF-16, which begins like it
        ((b"\0", b"\0\xfe", b"\xff\0\0\0h"), ["h"]),
        ((b"B", b"\n", b"x\n"), ["B", "x"]),
        ((b"\xff",), ["\ufffd"]),
        ((), []),
    ],
)
def test_a_mark_that_comes_in_pieces_is_known(pieces: tuple[bytes, ...], lines: list[str]) -> None:
    with through_a_pipe(*pieces) as pipe, text_of(pipe, Path("stdin")) as stream:
        assert [line.text for line in read_lines_leniently(stream, "stdin")] == lines


@pytest.mark.parametrize(
    "content", [gzip.compress(b"a dog\n"), bz2.compress(b"a dog\n"), zipped()], ids=["gzip", "bzip2", "zip"]
)
@pytest.mark.parametrize("first", [1, 2, 20])
def test_an_archive_in_a_pipe_is_refused(content: bytes, first: int) -> None:
    with (
        through_a_pipe(content[:first], content[first:]) as pipe,
        pytest.raises(DataError, match="not text; unpack it"),
    ):
        text_of(pipe, Path("stdin"))


@pytest.mark.parametrize(
    ("name", "unpacked"),
    [("x.GZ", gzip.decompress), ("x.de.Gz", gzip.decompress), ("x.ZST", zstandard.decompress), ("x.br", bytes)],
)
def test_a_name_in_capitals_is_compressed_and_read_as_it_says(
    tmp_path: Path, name: str, unpacked: Callable[[bytes], bytes]
) -> None:
    text = b"ein Hund\n"
    (tmp_path / name).write_bytes(compressor(name)(text))
    assert unpacked((tmp_path / name).read_bytes()) == text
    with open_corpus(tmp_path / name) as stream:
        assert stream.read() == text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.en", zipped(), "x.en: a zip archive, not text"),
        ("x.en", tarred(), "x.en: a tar archive, not text"),
        ("x.en", tarred(mark=False), "x.en: a tar archive, not text"),
        ("x.en", copied_out("odc"), "x.en: a cpio archive, not text"),
        ("x.en", copied_out("newc"), "x.en: a cpio archive, not text"),
        ("x.en", b"\xc7\x71" + bytes(24), "x.en: a cpio archive, not text"),
        ("x.en", b"\x1f\x9d\x90a\x14\0", "x.en: compressed with compress, not text"),
        ("x.en", b"\x04\x22\x4d\x18\x64\x40\xa7", "x.en: compressed with lz4, not text"),
        ("x.en", b"LZIP\x01\x0c", "x.en: compressed with lzip, not text"),
        ("x.en", gzip.compress(b"a\n"), "x.en: compressed with gzip, not text"),
        ("x.en", zstandard.compress(b"a\n"), "x.en: compressed with zstd, not text"),
        ("x.en", bz2.compress(b"a\n"), "x.en: compressed with bzip2, not text"),
        ("x.en", lzma.compress(b"a\n"), "x.en: compressed with xz, not text"),
        ("x.tar.gz", gzip.compress(tarred()), "x.tar.gz: its content is a tar archive, not text"),
        ("x.gz", gzip.compress(gzip.compress(b"a\n")), "x.gz: its content is compressed with gzip"),
        ("x.zst", zstandard.compress(zipped()), "x.zst: its content is a zip archive"),
    ],
)
def test_archives_are_named_and_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        open_corpus(tmp_path / name)
    assert says in str(caught.value)
    assert "unpack it, or give compressed text the extension .gz or .zst" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"PK is short for pack\n",
        b"BZ\n",
        b"ustar\n" * 100,
        b"7z\n",
        b"",
        b"070707\n" * 100,
        b"070701 is a number\n" * 9,
        b"LZIP\n",
        "り小\n".encode("big5hkscs"),
        b"070707" + b"words" * 20,
        b"a\0b\n" * 200,
    ],
)
def test_looking_takes_nothing_away_from_text(tmp_path: Path, content: bytes) -> None:
    for name, pack in (("x", bytes), ("x.gz", gzip.compress), ("x.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(pack(content))
        with open_corpus(tmp_path / name) as stream:
            assert stream.read() == content


def test_who_reads_text_twice_takes_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "x").write_bytes(b"a\n")
    text, pipe = tmp_path / "x", tmp_path / "pipe"
    data = DataConfig.model_validate({"train": {"src": text, "tgt": text}, "valid": {"src": text, "tgt": pipe}})
    with pytest.raises(DataError, match="pipe: a pipe, but it is read more than once; write it to a file"):
        check_readable(data)
    refuse_a_pipe(tmp_path / "x")
    refuse_a_pipe(tmp_path / "nowhere")  # open_corpus says what is the matter
