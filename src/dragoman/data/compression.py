"""Read and write files of text, plain, ``.gz`` or ``.zst``; say so where one is an archive instead."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from dragoman.errors import DataError, not_installed

_ARCHIVES = [  # place, bytes there, what it is
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x1f\x8b\x08", "compressed with gzip"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (0, b"BZh", "compressed with bzip2"),
    (0, b"\xfd7zXZ\0", "compressed with xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a rar archive"),
]


def open_corpus(path: Path | str) -> BinaryIO:
    """Open a plain, ``.gz`` or ``.zst`` file for reading the bytes of its text.

    Raises:
        DataError: The file is missing, a folder, unreadable or an archive, or ``.zst`` needs the extra.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the path of a text file in it")
    try:
        stream = _open(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a text file (plain, .gz or .zst)") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    try:
        _refuse_archive(path, stream)
    except BaseException:
        stream.close()
        raise
    return stream


def compressor(path: Path | str) -> Callable[[bytes], bytes]:
    """What makes of a part of a text the bytes that stand in a file of that name.

    Of ``.gz`` a member, of ``.zst`` a frame: one after the other they are a whole file, so it can be written in parts.
    The same text gives the same bytes. Any other name takes the text as it is.

    Raises:
        DataError: ``.zst`` needs the extra.
    """
    suffix = Path(path).suffix
    if suffix == ".gz":
        return lambda text: gzip.compress(text, mtime=0)
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: {not_installed('writing .zst', 'zstandard')}") from None
        return zstandard.ZstdCompressor(level=9, write_checksum=True).compress
    return bytes


def refuse_a_pipe(path: Path | str) -> None:
    """Refuse what gives its bytes only once, for who reads it more often.

    Raises:
        DataError: It is there and no file.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():  # open_corpus refuses a folder
        raise DataError(f"{path}: a pipe, but it is read more than once; write it to a file (.gz or .zst are accepted)")


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(_ZstdFile(path), 2**17))
    return path.open("rb")


def _refuse_archive(path: Path, stream: BinaryIO) -> None:
    """Look at the first bytes without taking them: an archive is no text, and nothing is ever unpacked."""
    try:
        start = stream.peek(512)  # type: ignore[attr-defined]
    except (EOFError, OSError, zlib.error) as error:
        raise broken_off(str(path), error) from None
    if not start and path.suffix in (".gz", ".zst") and not path.stat().st_size:  # which the libraries take for no text
        raise broken_off(str(path), EOFError("it is empty, and even compressed empty text has some bytes"))
    for place, magic, what in _ARCHIVES:
        if start[place : place + len(magic)] == magic:
            inside = "its content is " if path.suffix in (".gz", ".zst") else ""
            raise DataError(
                f"{path}: {inside}{what}, not text; unpack it, or give compressed text the extension .gz or .zst"
            )


def broken_off(name: str, error: Exception) -> DataError:
    """What to raise where reading fails in the middle."""
    return DataError(f"{name}: reading failed ({error}); the file is truncated or damaged, get it again")


class _ZstdFile(io.RawIOBase):
    """A ``.zst`` file that says so when it is cut, which ``zstandard.open`` does not.

    Fed in small steps, because a few bytes of a decompression bomb become 128 KiB.
    """

    STEP = 1024  # at most 32 MiB come out of so few bytes

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: {not_installed('reading .zst', 'zstandard')}") from None
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._file = path.open("rb")
        self._frame = self._new_frame()
        self._inside = False  # a frame has begun and not ended
        self._compressed = b""
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text:
            step = self._compressed or self._file.read(self.STEP)
            if not step:
                if self._inside:
                    raise EOFError("the last zstd frame does not end")
                return 0
            try:
                self._text = memoryview(self._frame.decompress(step))
            except self._error as error:
                raise OSError(str(error)) from None
            self._inside = not self._frame.eof
            self._compressed = b""
            if self._frame.eof:  # another frame may follow
                self._compressed = self._frame.unused_data
                self._frame = self._new_frame()
        n = min(len(buffer), len(self._text))
        buffer[:n] = self._text[:n]
        self._text = self._text[n:]
        return n

    def close(self) -> None:
        self._file.close()
        super().close()
