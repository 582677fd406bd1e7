"""Read, check and clean parallel text: plain, ``.gz`` or ``.zst``.

A line ends at the byte LF and nowhere else; CR, VT, FF, FS-RS, NEL, U+2028 and U+2029 are ordinary characters.

    what                          training (``read_lines``)         translating (``read_lines_leniently``)
    ----------------------------  --------------------------------  ----------------------------------------
    BOM at the start of the file  removed, logged                   removed, warned
    UTF-16 or UTF-32 with a BOM   read as UTF-8, logged             read as UTF-8, logged
    bytes in it that are no text  refused, file:line                U+FFFD, warned
    one CR right before LF        removed, counted in the log       removed
    other CR                      kept                              kept
    no LF after the last line     the line counts                   the line counts
    empty file                    refused                           no lines
    NUL                           refused, file:line:byte           U+FFFD, warned
    bytes that are not UTF-8      refused, file:line:byte, and      U+FFFD, warned
                                  the command that converts them
    line above MAX_LINE_BYTES     refused, file:line                cut to that length, warned
    truncated .gz or .zst         refused                           refused

Lines and bytes are counted from 1; bytes are counted in the line as it stands in the file, with a BOM.
Memory is bounded by a few times ``MAX_LINE_BYTES`` for any file.
"""

from __future__ import annotations

import codecs
import hashlib
import logging
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import DataConfig
from dragoman.data.compression import as_utf8, broken_off, codec_of
from dragoman.data.compression import open_corpus as open_corpus
from dragoman.data.encodings import SAMPLE_BYTES, Encoding, recognise
from dragoman.errors import DataError, as_command
from dragoman.files import pinned
from dragoman.languages.codes import language_of
from dragoman.languages.scripts import is_blank

logger = logging.getLogger(__name__)

MAX_LINE_BYTES = 2**20
"""Longest accepted line in bytes, LF not counted; it would have some 250,000 subwords."""

BLOCK_BYTES = 2**17
"""Size of the blocks in which training text is read, in bytes."""

BOM = "\ufeff"
"""Byte order mark."""
BOM_BYTES = BOM.encode()

MEND = "mend this line, or remove it from both sides"
"""What to do about a line that is not text."""

ESCAPE = b"\x1b$"
"""Bytes by which ISO-2022-JP and its relatives leave ASCII."""


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield the lines of a text file, without their LF.

    Raises:
        DataError: The file is missing, a folder, unreadable, empty, truncated, or breaks a rule of the table above.
    """
    path = pinned(path)
    number = n_cr = n_escaped = 0
    text = ""
    with open_corpus(path) as stream:
        while block := _read_block(stream, f"{path}"):
            # Nearly all blocks need no repair and are split several times as fast.
            if number and (lines := _plain_lines(block)) is not None:
                number += len(lines)
                yield from lines
                continue
            for raw in _raw_lines(block):
                number += 1
                n_cr += raw.endswith(b"\r\n")
                if not n_escaped and ESCAPE in raw:  # ASCII alone, but the characters of another encoding
                    n_escaped = number
                    refuse_escapes(path, number)
                text = decode_line(without_ending(raw), path, number, codec_of(stream))
                if number == 1 and text.startswith(BOM):
                    logger.info("%s: byte order mark at the start removed", f"{path}")
                    text = text[1:]
                    if len(raw) == len(BOM_BYTES):  # nothing but the mark: the file is empty
                        number = 0
                        break
                yield text
    if number == 0:
        if Path(path).is_fifo():
            raise DataError(f"{path}: nothing is left in this pipe, which is read once; write the text to a file")
        raise DataError(f"{path}: the file is empty; give a text file with one sentence in each line")
    if number == 1 and (n := text.count("\r")) > 1:
        logger.warning(
            "%s: one line with %s CR inside; if its lines end at CR alone, convert it with tr '\\r' '\\n' < %s > NEW",
            f"{path}", f"{n:,}", as_command(path),
        )  # fmt: skip
    if n_cr:
        logger.info("%s: CR before LF removed from %s lines", f"{path}", f"{n_cr:,}")


def _plain_lines(block: bytes) -> list[str] | None:
    """Return the lines of a block without CR LF, NUL, escapes and bad bytes; None if it may have any of these."""
    if len(block) > MAX_LINE_BYTES or b"\r\n" in block or b"\0" in block or ESCAPE in block:
        return None
    try:
        return block.removesuffix(b"\n").decode().split("\n")
    except UnicodeDecodeError:
        return None


def _raw_lines(block: bytes) -> list[bytes]:
    """Return the lines of a block as bytes, with their LF."""
    lines = block.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def read_pairs(src: Path | str, tgt: Path | str) -> Iterator[tuple[str, str]]:
    """Yield the lines of two files as pairs: line i of one with line i of the other.

    Raises:
        DataError: As ``read_lines``; or, raised after the last pair, the numbers of lines differ.
    """
    src_lines, tgt_lines = read_lines(src), read_lines(tgt)
    n_src = n_tgt = 0
    for src_line in src_lines:
        n_src += 1
        tgt_line = next(tgt_lines, None)
        if tgt_line is None:
            break
        n_tgt += 1
        yield src_line, tgt_line
    n_src += sum(1 for _ in src_lines)
    n_tgt += sum(1 for _ in tgt_lines)
    if n_src != n_tgt:
        raise DataError(
            f"{src} has {n_src:,} lines but {tgt} has {n_tgt:,}: line i of one must translate line i of the other; "
            "find where they diverge (a line missing, or split in two), or give two files that are aligned"
        )


def decode_line(body: bytes, path: Path, number: int, codec: str | None = None) -> str:
    """Decode one line of training text, without its LF; ``codec`` is that of the file, if it was converted."""
    if len(body) > MAX_LINE_BYTES:
        raise DataError(
            f"{path}:{number}: the line is longer than {MAX_LINE_BYTES:,} bytes; is this a text file with one "
            "sentence in each line, each ended by LF?"
        )
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        if codec is not None:
            raise DataError(
                f"{path}:{number}: not {codec.upper()}, with whose byte order mark the file begins; {MEND}"
            ) from None
        raise DataError(
            f"{path}:{number}:{error.start + 1}: byte 0x{body[error.start]:02x} is not UTF-8 ({error.reason}); "
            f"{advice(path, number)}"
        ) from None
    if "\0" in text:
        if codec is not None:
            raise DataError(f"{path}:{number}: NUL; {MEND}")
        raise DataError(f"{path}:{number}:{body.index(0) + 1}: NUL byte; {advice(path, number)}")
    return text


def refuse_escapes(path: Path, number: int) -> None:
    """Check that a file with ``ESCAPE`` in a line is not in an encoding whose bytes all are ASCII.

    Raises:
        DataError: It is, and would be read as other text.
    """
    encoding = encoding_of(path, number)
    if encoding is not None:
        raise DataError(f"{path}:{number}: not UTF-8, although its bytes are ASCII; {advice(path, number)}")


def advice(path: Path, number: int) -> str:
    """Return how to make a file UTF-8 that is not: the command for the encoding that is recognised, or what to mend.

    Args:
        number: A line that is not UTF-8, from 1.
    """
    encoding = encoding_of(path, number)
    if encoding is None:
        return f"no encoding fits the file as a whole: {MEND}"
    return conversion(encoding, path)


def conversion(encoding: Encoding, path: Path) -> str:
    """Return the sentence that names the encoding of a file, and the command that makes it UTF-8."""
    seems = "is" if encoding.certain else "may be"
    look = "" if encoding.certain else ", and look at the result"
    return f"the file {seems} in {encoding.name}; convert it with {encoding.command(path)}{look}"


def encoding_of(path: Path, number: int = 1) -> Encoding | None:
    """Return the encoding of a file by lines that are not ASCII: the first ones, and those from ``number`` on.

    None of a pipe, which is read once, and of a file whose mark names it.
    """
    if not path.is_file():
        return None
    with open_corpus(path) as stream:
        if codec_of(stream) is not None:
            return None
        start = stream.read(SAMPLE_BYTES)
    if b"\0" in start:
        return recognise(start, language_of(path))
    lines: list[bytes] = []
    free = SAMPLE_BYTES // 2  # bytes of the sample that are left
    with open_corpus(path) as stream:
        at = 0
        while (line := read_line(stream, f"{path}")) and (free > 0 or at < number):
            at += 1
            if at == number:
                free = SAMPLE_BYTES // 2
            if free > 0 and (not line.isascii() or b"\x1b" in line):
                lines.append(line)
                free -= len(line)
    return recognise(b"".join(lines), language_of(path))


Problem = Literal["cut", "not_utf8", "nul", "byte_order_mark"]


class Line(NamedTuple):
    """A line to translate, and the repairs made to it."""

    text: str
    warning: str | None  # text that names the line; None if nothing was repaired
    problems: tuple[Problem, ...] = ()  # kinds of the repairs


def read_lines_leniently(stream: BinaryIO, name: str) -> Iterator[Line]:
    """Yield every line of ``stream`` as soon as its LF has arrived, repaired if necessary; no line is dropped.

    Args:
        stream: Open for reading bytes, such as ``sys.stdin.buffer`` or ``open_corpus(path)``.
        name: Name of the stream in warnings and errors.

    Raises:
        DataError: The stream breaks off: a truncated ``.gz`` or ``.zst``, or a failing disk.
    """
    number = 0
    stream = as_utf8(stream, name)
    while raw := read_line(stream, name):
        number += 1
        if number == 1 and raw == BOM_BYTES:
            return  # a file with nothing but the mark has no lines
        body = without_ending(raw)
        n_cut = len(body) - MAX_LINE_BYTES
        if n_cut > 0:
            while not raw.endswith(b"\n") and (raw := read_line(stream, name)):
                n_cut += len(without_ending(raw))
        yield _repair(body, max(n_cut, 0), name, number, codec_of(stream))


def lines_of(path: Path | str) -> Iterator[str]:
    """Yield the lines of a text file as translation reads them, repaired if necessary.

    Raises:
        DataError: The file cannot be opened, or breaks off.
    """
    with open_corpus(path) as stream:
        for line in read_lines_leniently(stream, f"{path}"):
            yield line.text


def count_lines(*paths: Path | str) -> int:
    """Return the number of lines of several files together, as ``lines_of`` reads them.

    Raises:
        DataError: As ``lines_of``.
    """
    return sum(1 for path in paths for _ in lines_of(path))


def _repair(body: bytes, n_cut: int, name: str, number: int, codec: str | None) -> Line:
    """Decode one line whatever it holds, and return it with the repairs made.

    Args:
        n_cut: Number of bytes beyond ``MAX_LINE_BYTES``, which are dropped.
        number: Line number from 1, for warnings.
        codec: That of the text, if it was converted: then no place in the line is that of a byte of the text.
    """
    problems: dict[Problem, str] = {}
    if n_cut:
        body = _whole_characters(body[:MAX_LINE_BYTES])
        problems["cut"] = f"{name}:{number}: only the first {len(body):,} bytes of the line are used"
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        text = body.decode("utf-8", "replace")
        n_bad = text.count("\ufffd") - body.count("\ufffd".encode())
        where, what = (f":{error.start + 1}", "UTF-8") if codec is None else ("", codec.upper())
        problems["not_utf8"] = f"{name}:{number}{where}: not {what}, {_replaced(n_bad)}"
    if "\0" in text:
        where = f":{body.index(0) + 1}" if codec is None else ""
        problems["nul"] = f"{name}:{number}{where}: NUL, {_replaced(body.count(0))}"
        text = text.replace("\0", "\ufffd")
    if number == 1 and text.startswith(BOM):
        problems["byte_order_mark"] = f"{name}:1: byte order mark at the start removed"
        text = text[1:]
    return Line(text, "; ".join(problems.values()) or None, tuple(problems))


def _replaced(n: int) -> str:
    """Return the words of a warning about ``n`` replaced characters."""
    return f"U+FFFD put in {n:,} place{'s' * (n > 1)}"


def _whole_characters(body: bytes) -> bytes:
    """Return the bytes without an incomplete UTF-8 character at their end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(body[-4:])
    n_waiting = len(decoder.getstate()[0])
    return body[: len(body) - n_waiting]


def _read_block(stream: BinaryIO, name: str) -> bytes:
    """Read about ``BLOCK_BYTES`` of whole lines; a line that is too long is read just far enough to be refused."""
    try:
        block = stream.read(BLOCK_BYTES)
    except (EOFError, OSError, zlib.error) as error:
        raise broken_off(name, error) from None
    return block if block.endswith(b"\n") or not block else block + read_line(stream, name)


def read_line(stream: BinaryIO, name: str) -> bytes:
    """Read up to the next LF and with it, but little more than ``MAX_LINE_BYTES``; ``b""`` at the end."""
    try:
        return stream.readline(MAX_LINE_BYTES + 2)  # two more for CR LF
    except (EOFError, OSError, zlib.error) as error:
        raise broken_off(name, error) from None


def without_ending(raw: bytes) -> bytes:
    """Return a line without its LF and a CR right before it."""
    if raw.endswith(b"\r\n"):
        return raw[:-2]
    return raw.removesuffix(b"\n")


@dataclass(frozen=True)
class Report:
    """Counts of the pairs that cleaning read, kept and dropped; a dropped pair counts under the first reason only."""

    read: int = 0
    kept: int = 0
    empty: int = 0  # one side is blank
    too_long: int = 0  # one side has more than max_tokens subwords
    ratio: int = 0  # one side has more than max_ratio times the subwords of the other
    duplicates: int = 0  # the same pair, with the same tags, was kept before
    line_break: int = 0  # one side has a line break, from a quoted cell: it is not one line

    def __add__(self, other: Report) -> Report:
        return Report(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        reasons = {
            "with an empty side": self.empty,
            "too long": self.too_long,
            "with too large a length ratio": self.ratio,
            "duplicates": self.duplicates,
            "with a line break": self.line_break,
        }
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items() if n)
        return f"{self.read:,} pairs read, {self.kept:,} kept" + (f"; dropped: {dropped}" if dropped else "")


class Cleaner:
    """Decides which pairs to keep, chunk by chunk, and counts the dropped ones by reason.

    It reads ``max_tokens``, ``max_ratio`` and ``drop_duplicates`` of the configuration.
    """

    def __init__(self, config: DataConfig) -> None:
        self.report = Report()
        self._max_tokens, self._max_ratio = config.max_tokens, config.max_ratio
        self._seen = Digests() if config.drop_duplicates else None

    def keep(
        self, pairs: Sequence[tuple[str, str]], src_lengths: NDArray[np.int64], tgt_lengths: NDArray[np.int64],
        *, group: str = "",
    ) -> NDArray[np.bool_]:  # fmt: skip
        """Decide which pairs of a chunk to keep, and add the counts to ``report``.

        Args:
            pairs: ``n`` pairs of text.
            src_lengths: Number of subwords of each source, eos not counted, ``(n,)``.
            tgt_lengths: The same for each target.
            group: What the same pair must have in common to be a duplicate, in one line, such as the tags before it.

        Returns:
            True for each pair to keep, ``(n,)``.
        """
        shorter, longer = np.minimum(src_lengths, tgt_lengths), np.maximum(src_lengths, tgt_lengths)
        keep = np.ones(len(pairs), dtype=bool)

        def drop(unwanted: NDArray[np.bool_]) -> int:
            """Drop pairs; return how many of them were not dropped before."""
            nonlocal keep
            n = int((keep & unwanted).sum())
            keep = keep & ~unwanted
            return n

        blank = np.fromiter((is_blank(src) or is_blank(tgt) for src, tgt in pairs), bool, len(pairs))
        empty = drop(blank | (shorter == 0))
        line_break = drop(np.fromiter(("\n" in src or "\n" in tgt for src, tgt in pairs), bool, len(pairs)))
        too_long = drop(longer > self._max_tokens)
        ratio = 0 if self._max_ratio is None else drop(longer > self._max_ratio * np.maximum(shorter, 1))
        duplicates = 0
        if self._seen is not None:
            remaining = np.flatnonzero(keep)
            repeated = np.zeros(len(pairs), dtype=bool)
            repeated[remaining] = self._seen.add(f"{group}\n{pairs[i][0]}\n{pairs[i][1]}" for i in remaining.tolist())
            duplicates = drop(repeated)
        self.report += Report(len(pairs), int(keep.sum()), empty, too_long, ratio, duplicates, line_break)
        return keep


class Digests:
    """A set of texts that stores a 64-bit hash of each, in sorted runs, each less than half as long as the run before.

    Among 10^8 different texts the probability of any collision is 1 in 3,700.
    """

    def __init__(self) -> None:
        self.runs: list[NDArray[np.uint64]] = []

    def known(self, texts: Iterable[str]) -> NDArray[np.bool_]:
        """Return for each text whether it was added before."""
        return self._known(_digests(texts))

    def add(self, texts: Iterable[str]) -> NDArray[np.bool_]:
        """Add all texts; return for each whether it was added before or is repeated in ``texts``."""
        digests = _digests(texts)
        repeated = np.ones(len(digests), dtype=bool)
        new, first = np.unique(digests, return_index=True)
        known = self._known(new)
        repeated[first[~known]] = False
        if not known.all():
            self.runs.append(new[~known])
        while len(self.runs) > 1 and len(self.runs[-2]) <= 2 * len(self.runs[-1]):
            run = np.concatenate((self.runs.pop(), self.runs.pop()))
            run.sort()
            self.runs.append(run)
        return repeated

    def _known(self, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each hash whether a run holds it."""
        known = np.zeros(len(digests), dtype=bool)
        for run in self.runs:
            place = np.minimum(np.searchsorted(run, digests), len(run) - 1)
            known |= run[place] == digests
        return known


def _digests(texts: Iterable[str]) -> NDArray[np.uint64]:
    """Return the 64-bit BLAKE2b hash of each text."""
    joined = b"".join(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(joined, dtype="<u8")
