"""Archives are no text; text that only looks a little like one is."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from dragoman.config import DataConfig
from dragoman.data.compression import open_corpus, refuse_a_pipe
from dragoman.errors import DataError
from dragoman.training.preparation import check_readable


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a", "text\n")
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.en", zipped(), "x.en: a zip archive, not text"),
        ("x.en", tarred(), "x.en: a tar archive, not text"),
        ("x.en", gzip.compress(b"a\n"), "x.en: compressed with gzip, not text"),
        ("x.en", zstandard.compress(b"a\n"), "x.en: compressed with zstd, not text"),
        ("x.en", bz2.compress(b"a\n"), "x.en: compressed with bzip2, not text"),
        ("x.en", lzma.compress(b"a\n"), "x.en: compressed with xz, not text"),
        ("x.tar.gz", gzip.compress(tarred()), "x.tar.gz: its content is a tar archive, not text"),
        ("x.gz", gzip.compress(gzip.compress(b"a\n")), "x.gz: its content is compressed with gzip"),
        ("x.zst", zstandard.compress(zipped()), "x.zst: its content is a zip archive"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # of some contents the time is a part
)
def test_archives_are_named_and_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        open_corpus(tmp_path / name)
    assert says in str(caught.value)
    assert "unpack it, or give compressed text the extension .gz or .zst" in str(caught.value)


@pytest.mark.parametrize("content", [b"PK is short for pack\n", b"BZ\n", b"ustar\n" * 100, b"7z\n", b""])
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
