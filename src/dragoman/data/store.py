"""A corpus as token ids on disk, read pair by pair: only the pairs of a batch take memory.

    build_store(folder, [Entry(read_pairs(src, tgt))], (src_tokenizer, tgt_tokenizer), config)
    src_ids, tgt_ids = Store.open(folder).pair(0)

A store is a folder. Its files hold little-endian numbers without a header or gaps.

    src.ids  tgt.ids            ids of all pairs, one pair after the other, without bos and eos;
                                uint16 for vocabularies up to 65,536, else int32
    src.offsets  tgt.offsets    int64, one more than pairs: pair i is ids[offsets[i]:offsets[i + 1]]
    src.text  tgt.text          UTF-8 in the same layout; only if training needs the text
    src.ends  tgt.ends          int64, offsets into the text in bytes
    store.json                  counts, types, fingerprints, the SHA-256 of each file; written last

The pairs of several corpora follow each other, corpus by corpus. ``store.json`` holds for each corpus the number of its
pairs, how often they are drawn, and the ids that its sources begin with (tags: in ``src.ids``, not in ``src.text``).

A store is built in a temporary folder next to its place and moved there when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.config import DataConfig
from dragoman.data.corpus import Cleaner, Report
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, DataError
from dragoman.files import as_path, check_sealed, sealed_folder, sha256, unreadable
from dragoman.languages.sentences import sentences

Progress = Callable[[int, int | None, str], None]
"""Called with the amount done, the total (None: unknown) and what is counted; at most ten times a second."""

Ids = NDArray[np.integer[Any]]
Lengths = NDArray[np.int16] | NDArray[np.int32]

FORMAT = 1
ABOUT = "store.json"
SIDES = ("src", "tgt")
CHUNK_PAIRS = 10_000
CHUNK_CHARACTERS = 2**23  # a chunk of long lines ends sooner, which bounds memory
_TWO_OFFSETS = struct.Struct("<qq").unpack
CHUNK_OFFSETS = 2**16  # offsets turned into lengths at a time
MOST_16_BITS = 2**14 - 1  # largest length stored in 16 bits: the sum of two such lengths and an eos fits too

COPY_IT = "copy it from a backup, or train a new run"
"""Advice in a message about a damaged store: a training never makes it again."""


@dataclass(frozen=True)
class Entry:
    """A corpus to put into a store."""

    pairs: Iterable[tuple[str, str]]  # source and target lines, such as ``read_pairs(src, tgt)``; read once
    name: str = ""
    weight: float = 1.0
    begin: tuple[int, ...] = ()  # ids of the tags that each source begins with
    src_lang: str | None = None
    tgt_lang: str | None = None


@dataclass(frozen=True)
class Part:
    """A corpus in a store: a run of ``pairs`` of its pairs."""

    pairs: int
    name: str = ""
    weight: float = 1.0
    begin: tuple[int, ...] = ()  # ids of the tags that each source begins with
    tgt_lang: str | None = None

    def drawn_before(self, epoch: int) -> int:
        """Return the number of pairs drawn from this corpus in all epochs before ``epoch``.

        This is epoch x weight x pairs, rounded down, with the weight taken as the decimal fraction it is written as.
        """
        return int(epoch * Fraction(repr(self.weight)) * self.pairs)


class Origin(NamedTuple):
    """Name and files of the text of a store."""

    name: str = "the text"  # for messages
    sources: Sequence[Path | str] = ()  # files whose size and SHA-256 are noted in the store


THE_TEXT = Origin()


def build_store(
    folder: Path | str,
    entries: Sequence[Entry],
    tokenizers: tuple[Tokenizer, Tokenizer],
    config: DataConfig,
    origin: Origin = THE_TEXT,
    *,
    keep_text: bool = False,
    total: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Encode, clean and write a corpus; the folder appears when it is complete, and replaces an older store.

    Args:
        folder: Path of the store.
        entries: The corpora, read one after the other.
        tokenizers: For source and target.
        config: Its ``max_tokens``, ``max_ratio`` and ``drop_duplicates`` decide which pairs stay.
        origin: Name of the text, and its files.
        keep_text: Store the text too, so that subwords can be sampled in each epoch.
        total: Number of pairs, if known, for ``progress``.
        progress: Called with the number of pairs read.

    Raises:
        DataError: No pair is left, the folder holds something else than a store, or reading a corpus fails. Nothing
            is left behind.
        DragomanError: The disk is full or the folder cannot be written.
    """
    folder = as_path(folder)
    if folder.exists() and not (folder / ABOUT).is_file():
        raise DataError(f"{folder} exists and is not a store; remove it, or choose another folder")
    report_progress = throttled(progress)
    about: dict[str, Any] = {}
    with sealed_folder(folder, about, name=ABOUT) as unfinished:
        with _Writer(unfinished, tokenizers, config, keep_text) as writer:
            for entry in entries:
                for n_read in writer.add(entry):
                    report_progress(n_read, total, "pairs encoded")
        if not writer.report.kept:
            raise DataError(
                f"no pair of {origin.name} is left after filtering: {writer.report}. Check the files, "
                "data.max_tokens and data.max_ratio"
            )
        about.update(writer.about())
        about["sources"] = {str(Path(path).absolute()): fingerprint(path) for path in origin.sources}
    return writer.report


class _Writer:
    """Cleans, encodes and writes corpora into the files of a store; a context manager."""

    def __init__(
        self, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer], config: DataConfig, keep_text: bool
    ) -> None:
        self._tokenizers, self._config = tokenizers, config
        self._cleaner = Cleaner(config)
        self._n_sentences: Counter[int] = Counter()
        self._parts: list[Part] = []
        dtypes = [id_dtype(tokenizer.vocab_size) for tokenizer in tokenizers]
        self._ids = [
            _Column(folder / f"{side}.ids", folder / f"{side}.offsets", dtype)
            for side, dtype in zip(SIDES, dtypes, strict=True)
        ]
        self._texts = [
            _Column(folder / f"{side}.text", folder / f"{side}.ends", np.dtype("u1")) for side in SIDES if keep_text
        ]
        self._files = ExitStack()

    def __enter__(self) -> Self:
        for column in (*self._ids, *self._texts):
            self._files.enter_context(column)
        return self

    def __exit__(self, *failure: object) -> None:
        self._files.__exit__(*failure)  # type: ignore[arg-type]

    @property
    def report(self) -> Report:
        """Counts of the pairs read, kept and dropped so far."""
        return self._cleaner.report

    def add(self, entry: Entry) -> Iterator[int]:
        """Write one corpus; yield the number of pairs read from all corpora after each chunk."""
        n_before = self.report.kept
        # With other tags a pair is another example, and text that no epoch draws takes no pair from the other corpora.
        group = f"{entry.begin} {entry.weight > 0}"
        for chunk in _chunks(entry.pairs):
            sides = list(zip(*chunk, strict=True))
            encoded = [tokenizer.encode(lines) for tokenizer, lines in zip(self._tokenizers, sides, strict=True)]
            lengths = [np.fromiter(map(len, rows), np.int64, len(rows)) for rows in encoded]
            keep = np.flatnonzero(self._cleaner.keep(chunk, *lengths, group=group)).tolist()
            for column, rows, begin in zip(self._ids, encoded, (entry.begin, ()), strict=True):
                column.append_ids([[*begin, *rows[i]] if begin else rows[i] for i in keep])
            for column, lines in zip(self._texts, sides, strict=False):
                column.append_texts([lines[i] for i in keep])
            if entry.weight > 0:
                lang = entry.src_lang or self._config.src_lang
                self._n_sentences.update(len(sentences(sides[0][i], lang)) for i in keep)
            yield self.report.read
        n_kept = self.report.kept - n_before
        self._parts.append(Part(n_kept, entry.name, entry.weight, entry.begin, entry.tgt_lang))

    def about(self) -> dict[str, Any]:
        """Return the content of ``store.json``."""
        report = self.report
        columns = {
            side: {"tokens": ids.size, "dtype": ids.dtype.str, "vocab_size": tokenizer.vocab_size}
            for side, ids, tokenizer in zip(SIDES, self._ids, self._tokenizers, strict=True)
        }
        return {
            "format": FORMAT,
            "pairs": report.kept,
            "corpora": [asdict(part) for part in self._parts],
            **columns,
            "src_sentences": sorted(self._n_sentences.items()),
            "text_bytes": [column.size for column in self._texts] or None,
            "report": asdict(report),
            "tokenizers": [tokenizer.fingerprint for tokenizer in self._tokenizers],
        }


def id_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the type that the ids of a vocabulary of this size are stored in."""
    return np.dtype("<u2" if vocab_size <= 2**16 else "<i4")


class _Column:
    """Two growing files: the values of all rows, one row after the other, and the end of each row."""

    def __init__(self, values: Path, ends: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.size = 0  # number of values so far
        self._paths = values, ends
        self._files: list[BinaryIO] = []

    def __enter__(self) -> _Column:
        for path in self._paths:
            self._files.append(path.open("wb"))
        self._files[1].write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            if failure[0] is None:
                for file in self._files:
                    file.flush()
        finally:
            for file in self._files:
                with contextlib.suppress(OSError):  # a full disk was reported by write or flush already
                    file.close()

    def append_ids(self, rows: Sequence[Sequence[int]]) -> None:
        """Add rows of ids."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        values = np.fromiter(chain.from_iterable(rows), self.dtype, int(lengths.sum()))
        self._append(values.tobytes(), lengths)

    def append_texts(self, rows: Sequence[str]) -> None:
        """Add rows of text."""
        encoded = [row.encode() for row in rows]
        self._append(b"".join(encoded), np.fromiter(map(len, encoded), np.int64, len(encoded)))

    def _append(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        """Add rows as bytes, with the number of values of each row."""
        ends = self.size + np.cumsum(lengths)
        self.size += int(lengths.sum())
        self._files[0].write(values)
        self._files[1].write(ends.astype("<i8").tobytes())


class Store:
    """A corpus on disk; every row is read when it is asked for."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.report = Report(**about["report"])
        self.tokenizers: tuple[str, str] = tuple(about["tokenizers"])  # fingerprints, source first
        self.vocab_sizes: tuple[int, int] = (about["src"]["vocab_size"], about["tgt"]["vocab_size"])
        self.n_tokens: tuple[int, int] = (about["src"]["tokens"], about["tgt"]["tokens"])  # eos not counted
        self.sources: dict[str, dict[str, Any]] = about["sources"]  # path: fingerprint
        # Number of sentences in a source: number of such sources, without those of corpora with weight 0.
        self.src_sentences: dict[int, int] = dict(about.get("src_sentences", []))
        self._n = int(about["pairs"])
        old_parts = [{"pairs": self._n}]  # stores of older versions hold one corpus
        self.parts = tuple(
            Part(**{**part, "begin": tuple(part.get("begin", ()))}) for part in about.get("corpora", old_parts)
        )
        """Corpora of the store, in the order of their pairs."""
        if sum(part.pairs for part in self.parts) != self._n:
            raise ValueError(f"its corpora do not have {self._n:,} pairs together")
        self._ids = [
            _Rows(
                folder,
                (f"{side}.ids", f"{side}.offsets"),
                self._n,
                about[side]["tokens"],
                np.dtype(about[side]["dtype"]),
            )
            for side in SIDES
        ]
        self._texts = None
        if about["text_bytes"]:
            sizes = zip(SIDES, about["text_bytes"], strict=True)
            self._texts = [
                _Rows(folder, (f"{side}.text", f"{side}.ends"), self._n, size, np.dtype("u1")) for side, size in sizes
            ]

    @classmethod
    def open(cls, folder: Path | str) -> Store:
        """Open a store; only ``store.json`` is read.

        Raises:
            DataError: The store is missing, incomplete, damaged or of another format.
            UnreadableError: It cannot be read now.
        """
        folder = as_path(folder)
        try:
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise DataError(f"{folder}: a store of format {about['format']}, not {FORMAT}; {COPY_IT}")
            return cls(folder, about)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DataError(
                f"{folder / Path(error.filename).name}: missing, so this store is incomplete; {COPY_IT}"
            ) from None
        except OSError as error:
            raise unreadable(folder, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: the store cannot be used ({error}); {COPY_IT}") from None

    def __len__(self) -> int:
        return self._n

    @property
    def is_weighted(self) -> bool:
        """True if some corpus has a weight other than 1: its pairs do not come exactly once an epoch."""
        return any(part.weight != 1 for part in self.parts)

    @property
    def n_drawn(self) -> float:
        """Average number of pairs in an epoch: the sum of weight x pairs over the corpora."""
        return sum(part.weight * part.pairs for part in self.parts)

    def drawn(self) -> NDArray[np.bool_]:
        """Return True for each pair that an epoch may draw, ``(pairs,)``: False where the weight is 0."""
        return np.repeat([part.weight > 0 for part in self.parts], [part.pairs for part in self.parts])

    def src_lengths(self) -> Lengths:
        """Return the number of subwords of each source without eos, ``(pairs,)``: int16 if all are below 2^14."""
        return self._ids[0].lengths()

    def tgt_lengths(self) -> Lengths:
        """Return the number of subwords of each target without eos, ``(pairs,)``: int16 if all are below 2^14."""
        return self._ids[1].lengths()

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """Return the ids of one pair, without bos and eos, as read-only arrays.

        Raises:
            DataError: The store was cut or damaged after it was opened.
        """
        src, tgt = self._ids
        return np.frombuffer(src.row(index), src.dtype), np.frombuffer(tgt.row(index), tgt.dtype)

    @property
    def has_text(self) -> bool:
        """True if the store holds text (``keep_text``)."""
        return self._texts is not None

    def texts(self, indices: Iterable[int]) -> tuple[list[str], list[str]]:
        """Return the source lines and the target lines of these pairs.

        Raises:
            DataError: The store was built without ``keep_text``.
        """
        if self._texts is None:
            raise DataError(f"{self.folder} holds no text, only ids; build it again with keep_text=True")
        rows = [int(i) for i in indices]
        src, tgt = ([text.row(i).decode() for i in rows] for text in self._texts)
        return src, tgt


class _Rows:
    """One column of a store; each row is read from the file when it is asked for.

    The files are not memory-mapped: touched pages of a map would count as memory of this process, and a file that is
    truncated under a map kills the process.
    """

    def __init__(self, folder: Path, files: tuple[str, str], n: int, size: int, dtype: np.dtype[Any]) -> None:
        """Open the files of ``n`` rows: that of their ``size`` values together, and that of the ends of rows."""
        values, ends = files
        self.dtype = dtype
        self._n, self._size = n, size
        self._values, self._ends = folder / values, folder / ends
        for path, n_bytes in ((self._values, size * dtype.itemsize), (self._ends, 8 * (n + 1))):
            if path.stat().st_size != n_bytes:
                raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {n_bytes:,}")
        self._descriptors = {path: os.open(path, os.O_RDONLY) for path in (self._values, self._ends)}
        for descriptor in self._descriptors.values():
            weakref.finalize(self, os.close, descriptor)
        if self._offsets(0, 1)[0] != 0 or self._offsets(n, 1)[0] != size:
            raise ValueError(f"{ends} does not fit {values}")

    def row(self, index: int) -> bytes:
        """Return the bytes of one row."""
        if not 0 <= index < self._n:
            raise IndexError(f"row {index} of {self._n}")
        start, end = _TWO_OFFSETS(self._read(self._ends, 16, 8 * index))
        if not 0 <= start <= end <= self._size:
            raise DataError(f"{self._ends}: damaged (row {index} from {start} to {end}); {COPY_IT}")
        width = self.dtype.itemsize
        return self._read(self._values, (end - start) * width, start * width)

    def lengths(self) -> Lengths:
        """Return the number of values of each row, ``(n,)``: int16 if all are below 2^14, else int32."""
        result: Lengths = np.empty(self._n, np.int16)
        for first in range(0, self._n, CHUNK_OFFSETS):
            lengths = np.diff(self._offsets(first, min(CHUNK_OFFSETS, self._n - first) + 1))
            if result.dtype == np.int16 and lengths.max() > MOST_16_BITS:
                result = result.astype(np.int32)
            result[first : first + len(lengths)] = lengths
        return result

    def _offsets(self, first: int, count: int) -> NDArray[np.int64]:
        """Return ``count`` offsets from number ``first`` on."""
        return np.frombuffer(self._read(self._ends, 8 * count, 8 * first), "<i8")

    def _read(self, path: Path, n_bytes: int, place: int) -> bytes:
        """Read bytes of a file at a place."""
        try:
            data = os.pread(self._descriptors[path], n_bytes, place)
            # Some file systems return fewer bytes than they have.
            while len(data) < n_bytes and (
                more := os.pread(self._descriptors[path], n_bytes - len(data), place + len(data))
            ):
                data += more
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None
        if len(data) != n_bytes:
            raise DataError(f"{path}: was truncated while in use; {COPY_IT}")
        return data


def check_store(folder: Path | str) -> bool:
    """Compare every file of a store with the SHA-256 noted when it was built; takes about two seconds for a GB.

    Returns:
        False if the store has no checksums, as those of dragoman 0.1.

    Raises:
        DataError: A file is missing or has changed.
    """
    folder = as_path(folder)
    try:
        if not {"files", "sha256"} & json.loads((folder / ABOUT).read_text(encoding="utf-8")).keys():
            return False
    except (OSError, ValueError, AttributeError):
        pass  # check_sealed reports what is wrong
    try:
        check_sealed(folder, "store", ABOUT)
    except BundleError as error:
        raise DataError(str(error)) from None
    return True


def fingerprint(path: Path | str) -> dict[str, Any]:
    """Return size and SHA-256 of a file, to notice when the corpus of a run changes.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return {"bytes": Path(path).stat().st_size, "sha256": sha256(Path(path))}
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def throttled(progress: Progress | None) -> Progress:
    """Return a callback that passes calls on to ``progress`` at most ten times a second, and always the last one."""
    last = 0.0

    def report(done: int, total: int | None, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if progress is not None and (now - last >= 0.1 or done == total):
            last = now
            progress(done, total, what)

    return report


def _chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Cut a stream of pairs into lists of at most ``CHUNK_PAIRS`` pairs and about ``CHUNK_CHARACTERS`` characters."""
    chunk: list[tuple[str, str]] = []
    n_characters = 0
    for pair in pairs:
        chunk.append(pair)
        n_characters += len(pair[0]) + len(pair[1])
        if len(chunk) >= CHUNK_PAIRS or n_characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, n_characters = [], 0
    if chunk:
        yield chunk
