"""Read and write text files, plain, ``.gz`` or ``.zst``; archives are refused, UTF-16 with its mark becomes UTF-8.

with open_corpus("train.en.gz") as stream:
    for line in stream: ...
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from dragoman.data.encodings import MARKS, marked
from dragoman.data.text_names import COMPRESSED
from dragoman.errors import ConfigError, DataError, not_installed
from dragoman.files import pinned

logger = logging.getLogger(__name__)

_ARCHIVES = [  # offset, bytes at this offset, name of the format
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x1f\x8b\x08", "compressed with gzip"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (0, b"BZh", "compressed with bzip2"),
    (0, b"\xfd7zXZ\0", "compressed with xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a rar archive"),
    (0, b"\x1f\x9d", "compressed with compress"),
    (0, b"\x04\x22\x4d\x18", "compressed with lz4"),
    (0, b"LZIP\x01", "compressed with lzip"),
]
_CPIO = {b"070707": 76, b"070701": 110, b"070702": 110}
"""First bytes of a cpio archive whose header is text, and the size of that header, which is digits alone."""
_CPIO_BINARY = b"\xc7\x71"
"""Those of one whose header is not, 26 bytes with some NUL; alone they are a character of several encodings."""
_DIGITS = frozenset(b"0123456789abcdefABCDEF")
_NEVER_WRITTEN = (
    ".7z", ".bz2", ".gzip", ".lz", ".lz4", ".lzma", ".tbz2", ".tgz", ".txz", ".xz", ".z", ".zip", ".zstd",
)  # fmt: skip
"""Suffixes that promise a compression that is not written here. ``.br``, ``.rar`` and ``.tar`` are languages too."""


def open_corpus(path: Path | str) -> BinaryIO:
    """Open a plain, ``.gz`` or ``.zst`` file to read the uncompressed bytes; see ``as_utf8``.

    Raises:
        DataError: The file is missing, a folder, unreadable or an archive; or zstandard is missing for ``.zst``.
    """
    path = pinned(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the path of a text file in it")
    try:
        stream = _open(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a text file (plain, .gz or .zst)") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    try:
        return text_of(stream, path)
    except BaseException:
        stream.close()
        raise


def text_of(stream: BinaryIO, path: Path) -> BinaryIO:
    """Return the text of a stream that has not been read, in UTF-8 as ``as_utf8`` gives it; ``path`` is its name.

    Raises:
        DataError: It is an archive, or it breaks off.
    """
    try:
        stream = _with_whole_mark(stream)
    except (EOFError, OSError, zlib.error) as error:
        raise broken_off(f"{path}", error) from None
    _refuse_archive(path, stream)
    return as_utf8(stream, f"{path}")


def _with_whole_mark(stream: BinaryIO) -> BinaryIO:
    """Return a stream that shows the whole mark or first bytes of an archive, which a pipe may give in pieces.

    No more is waited for than these bytes: none holds an LF, so that a line that is typed comes at once.
    """
    begins = (*(mark for mark, _ in MARKS), *(magic for place, magic, _ in _ARCHIVES if place == 0))
    start = stream.peek(1)  # type: ignore[attr-defined]
    if not any(begin.startswith(start) and begin != start for begin in begins if start):
        return stream
    start = stream.read(len(start))
    while any(begin.startswith(start) and begin != start for begin in begins) and (byte := stream.read(1)):
        start += byte
    return cast(BinaryIO, io.BufferedReader(_Continued(start, stream), 2**17))


def as_utf8(stream: BinaryIO, name: str) -> BinaryIO:
    """Return a stream whose text is UTF-8: UTF-16 and UTF-32 that begin with their byte order mark are converted.

    Any other text stays as it is, and so does a stream that cannot peek.
    """
    peek = getattr(stream, "peek", None)
    codec = marked(peek(4)) if peek is not None else None
    if codec is None:
        return stream
    logger.info("%s: %s, as its byte order mark says, is read as UTF-8", name, codec.upper())
    return converted(stream, codec)


class Converted(io.BufferedReader):
    """A stream of UTF-8 of a text in another encoding.

    Args:
        codec: That of the text.
        errors: What bytes that are not text become: the byte 0xFF, which is not UTF-8 either, so that readers of lines
            find it in its place; or U+FFFD.
    """

    def __init__(
        self, stream: BinaryIO, codec: str, errors: Literal["one_bad_byte", "replace"] = "one_bad_byte"
    ) -> None:
        super().__init__(_AsUtf8(stream, codec, errors), 2**17)
        self.codec = codec


def converted(stream: BinaryIO, codec: str, errors: Literal["one_bad_byte", "replace"] = "one_bad_byte") -> BinaryIO:
    """Return ``Converted`` of a stream, for readers of any stream of bytes."""
    return cast(BinaryIO, Converted(stream, codec, errors))


def codec_of(stream: BinaryIO) -> str | None:
    """Return the codec of UTF-16 or UTF-32 that a stream was converted from; None if it was not."""
    return stream.codec if isinstance(stream, Converted) else None


def _one_bad_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error("one_bad_byte", _one_bad_byte)


def compressor(path: Path | str) -> Callable[[bytes], bytes]:
    """Return the function that compresses a part of a text for a file with this name.

    A part becomes a member of ``.gz`` or a frame of ``.zst``. Such parts can be concatenated, so a file can be written
    in parts. The same text gives the same bytes. Any other suffix leaves the text as it is.

    Raises:
        ConfigError: The suffix is that of another compression.
        DataError: zstandard is missing for ``.zst``.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".gz":
        return lambda text: gzip.compress(text, mtime=0)
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: {not_installed('writing .zst', 'zstandard')}") from None
        return zstandard.ZstdCompressor(level=9, write_checksum=True).compress
    if suffix in _NEVER_WRITTEN:
        raise ConfigError(f"{path}: text is written plain, as .gz or as .zst, not as {suffix}; choose another name")
    return bytes


def refuse_compressed(*outs: Path | None) -> None:
    """Check that no output that is always plain text has a name of compressed text.

    Lists and alignments are written line by line, and are readable also after a kill.

    Raises:
        ConfigError: One has.
    """
    for out in outs:
        if out is not None and out.suffix.lower() in (*COMPRESSED, *_NEVER_WRITTEN):
            raise ConfigError(f"{out}: is written as plain text; choose a name without {out.suffix}")


def refuse_a_pipe(path: Path | str) -> None:
    """Check that a path is not a pipe, which can be read only once.

    Raises:
        DataError: The path exists and is neither a file nor a folder.
    """
    path = pinned(path)
    if path.exists() and not path.is_file() and not path.is_dir():  # a folder is refused by open_corpus
        raise DataError(f"{path}: a pipe, but it is read more than once; write it to a file (.gz or .zst are accepted)")


def _open(path: Path) -> BinaryIO:
    """Open a file by its suffix, without checks."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(_ZstdFile(path), 2**17))
    return path.open("rb")


def _refuse_archive(path: Path, stream: BinaryIO) -> None:
    """Check by the first bytes of a stream that it is not an archive; the bytes stay to be read."""
    try:
        start = stream.peek(512)  # type: ignore[attr-defined]
    except (EOFError, OSError, zlib.error) as error:
        raise broken_off(f"{path}", error) from None
    # The libraries read an empty file as empty text, but even compressed empty text has some bytes.
    is_compressed = path.suffix.lower() in COMPRESSED
    if not start and is_compressed and not path.stat().st_size:
        raise broken_off(f"{path}", EOFError("it is empty, and even compressed empty text has some bytes"))
    what = _archive(start)
    if what is not None:
        inside = "its content is " if is_compressed else ""
        raise DataError(
            f"{path}: {inside}{what}, not text; unpack it, or give compressed text the extension .gz or .zst"
        )


def _archive(start: bytes) -> str | None:
    """Return the format of an archive that begins with these bytes; None if they do not begin one."""
    for place, magic, what in _ARCHIVES:
        if start[place : place + len(magic)] == magic:
            return what
    size = _CPIO.get(start[:6], 0)
    if size and len(start) >= size and _DIGITS.issuperset(start[:size]):
        return "a cpio archive"
    if start.startswith(_CPIO_BINARY) and b"\0" in start[:26]:
        return "a cpio archive"
    if b"\0" in start and len(start) >= 512:
        import tarfile  # not for text in UTF-8, which has no such byte

        # the oldest form has no mark, but each header has a sum
        with contextlib.suppress(tarfile.HeaderError):
            tarfile.TarInfo.frombuf(start[:512], "utf-8", "surrogateescape")
            return "a tar archive"
    return None


def broken_off(name: str, error: Exception) -> DataError:
    """Return the error to raise if reading fails in the middle of a file."""
    return DataError(f"{name}: reading failed ({error}); the file is truncated or damaged, get it again")


class _Continued(io.RawIOBase):
    """A stream whose first bytes have been read already."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start[: len(buffer)] or self._stream.read1(len(buffer))  # type: ignore[attr-defined]
        self._start = self._start[len(data) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _AsUtf8(io.RawIOBase):
    """Text of another encoding as the bytes of UTF-8, converted block by block as it arrives."""

    def __init__(self, stream: BinaryIO, codec: str, errors: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(codec)(errors)
        self._text = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._text and not self._ended:
            block = self._stream.read1(2**16)  # type: ignore[attr-defined]
            self._ended = not block
            text = self._decoder.decode(block, final=self._ended)
            self._text = memoryview(text.encode("utf-8", "surrogateescape"))
        n = min(len(buffer), len(self._text))
        buffer[:n] = self._text[:n]
        self._text = self._text[n:]
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()


class _ZstdFile(io.RawIOBase):
    """A ``.zst`` file that raises an error if it is truncated, which ``zstandard.open`` does not.

    It is decompressed in small steps, because a few bytes of a decompression bomb become 128 KiB.
    """

    STEP = 1024  # compressed bytes in a step; they become at most 32 MiB

    def __init__(self, path: Path) -> None:
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: {not_installed('reading .zst', 'zstandard')}") from None
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._file = path.open("rb")
        self._frame = self._new_frame()
        self._inside = False  # True while a frame has begun and not ended
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
