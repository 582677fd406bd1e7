"""A corpus as token ids on disk, read pair by pair: what is not in a batch takes no memory.

A store is a folder. All numbers are little-endian and nothing stands before or between them.

    src.ids  tgt.ids            the subwords of all pairs, one after the other, without bos and eos;
                                uint16 for vocabularies up to 65,536, else int32
    src.offsets  tgt.offsets    int64, one more than pairs: pair i is ids[offsets[i]:offsets[i + 1]]
    src.text  tgt.text          UTF-8, in the same way; only where training samples subwords
    src.ends  tgt.ends          int64, offsets into the text, in bytes
    store.json                  counts, types, fingerprints, the SHA-256 of each file; written last

The pairs of several corpora stand one corpus after the other; ``store.json`` says how many there are of each, how often
they are drawn, and with which ids their sources begin (tags, which are in ``src.ids`` and not in ``src.text``).

It is built in a folder beside its place and moved there when it is complete.
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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dragoman.config import DataConfig
from dragoman.data.corpus import Cleaner, Report
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, DataError
from dragoman.files import check_sealed, sealed_folder, sha256
from dragoman.languages.sentences import sentences

Progress = Callable[[int, int | None, str], None]
"""Called with how much is done, how much there is in all (None: not known) and what of; at most ten times a second."""

Ids = NDArray[np.integer[Any]]
Lengths = NDArray[np.int16] | NDArray[np.int32]

FORMAT = 1
ABOUT = "store.json"
CHUNK_PAIRS = 10_000
CHUNK_CHARACTERS = 2**23  # a chunk of long lines ends sooner, so that memory stays bounded
_TWO_OFFSETS = struct.Struct("<qq").unpack
CHUNK_OFFSETS = 2**16  # of which lengths are made at a time
MOST_16_BITS = 2**14 - 1  # the greatest length kept in 16 bits: two of them and an eos can be added up


@dataclass(frozen=True)
class Entry:
    """A corpus that goes into a store."""

    pairs: Iterable[tuple[str, str]]  # source and target lines, read once, such as ``read_pairs(src, tgt)``
    name: str = ""
    weight: float = 1.0
    begin: tuple[int, ...] = ()  # what each source begins with: ids of tags
    src_lang: str | None = None
    tgt_lang: str | None = None


@dataclass(frozen=True)
class Part:
    """A corpus in a store: ``pairs`` of its pairs, one after the other."""

    pairs: int
    name: str = ""
    weight: float = 1.0
    begin: tuple[int, ...] = ()  # the ids that each of its sources begins with
    tgt_lang: str | None = None

    def drawn_before(self, epoch: int) -> int:
        """How many pairs are drawn from it in all epochs before ``epoch``: a whole number near epochs x weight x pairs.

        Exactly the floor of that product, the weight taken as the decimal it is written as.
        """
        return int(epoch * Fraction(repr(self.weight)) * self.pairs)


def build_store(
    folder: Path | str,
    entries: Sequence[Entry],
    src_tokenizer: Tokenizer,
    tgt_tokenizer: Tokenizer,
    config: DataConfig,
    *,
    keep_text: bool = False,
    sources: Iterable[Path | str] = (),
    total: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Encode, clean and write a corpus; the folder appears when it is complete, and replaces an older store.

    Args:
        folder: Where the store will be.
        entries: The corpora, read one after the other.
        config: Its ``max_tokens``, ``max_ratio`` and ``drop_duplicates`` decide which pairs stay.
        keep_text: Keep the text too, so that subwords can be sampled in each epoch.
        sources: Files whose size and sha256 are noted in the store.
        total: Number of pairs, if known, for ``progress``.
        progress: Told the number of pairs read.

    Raises:
        DataError: No pair is left, or the folder holds something else than a store; and whatever reading the
            pairs finds wrong. Nothing is left behind.
        DragomanError: The disk is full or the folder cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / ABOUT).is_file():
        raise DataError(f"{folder} exists and is not a store; remove it, or choose another folder")
    about: dict[str, Any] = {}
    with sealed_folder(folder, about, name=ABOUT) as aside:
        report, facts = _write(
            aside, entries, (src_tokenizer, tgt_tokenizer), config, keep_text, sources, total, progress
        )
        about.update(facts)
    return report


def _write(
    folder: Path,
    entries: Sequence[Entry],
    tokenizers: tuple[Tokenizer, Tokenizer],
    config: DataConfig,
    keep_text: bool,
    sources: Iterable[Path | str],
    total: int | None,
    progress: Progress | None,
) -> tuple[Report, dict[str, Any]]:
    """Write the columns of a store into ``folder``; returns also what ``store.json`` says of them."""
    tell = throttled(progress)
    cleaner = Cleaner(config)
    n_sentences: Counter[int] = Counter()
    kept: list[int] = []
    with ExitStack() as files:
        ids, texts = [], []
        for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
            dtype = id_dtype(tokenizer.vocab_size)
            ids.append(files.enter_context(_Column(folder / f"{side}.ids", folder / f"{side}.offsets", dtype)))
            if keep_text:
                texts.append(
                    files.enter_context(_Column(folder / f"{side}.text", folder / f"{side}.ends", np.dtype("u1")))
                )
        for entry in entries:
            kept.append(-cleaner.report.kept)
            for chunk in _chunks(entry.pairs):
                sides = list(zip(*chunk, strict=True))
                encoded = [tokenizer.encode(lines) for tokenizer, lines in zip(tokenizers, sides, strict=True)]
                lengths = [np.fromiter(map(len, rows), np.int64, len(rows)) for rows in encoded]
                keep = np.flatnonzero(cleaner.keep(chunk, *lengths)).tolist()
                for column, rows, begin in zip(ids, encoded, (entry.begin, ()), strict=True):
                    column.append_ids([[*begin, *rows[i]] if begin else rows[i] for i in keep])
                for column, lines in zip(texts, sides, strict=False):
                    column.append_texts([lines[i] for i in keep])
                lang = entry.src_lang or config.src_lang
                n_sentences.update(len(sentences(sides[0][i], lang)) for i in keep)
                tell(cleaner.report.read, total, "pairs encoded")
            kept[-1] += cleaner.report.kept
    report = cleaner.report
    if not report.kept:
        raise DataError(f"no pair left after filtering: {report}. Check the files, data.max_tokens and data.max_ratio")
    about = {
        "format": FORMAT,
        "pairs": report.kept,
        "corpora": [
            asdict(Part(n, entry.name, entry.weight, entry.begin, entry.tgt_lang))
            for n, entry in zip(kept, entries, strict=True)
        ],
        "src": {"tokens": ids[0].size, "dtype": ids[0].dtype.str, "vocab_size": tokenizers[0].vocab_size},
        "tgt": {"tokens": ids[1].size, "dtype": ids[1].dtype.str, "vocab_size": tokenizers[1].vocab_size},
        "src_sentences": sorted(n_sentences.items()),
        "text_bytes": [column.size for column in texts] or None,
        "report": asdict(report),
        "tokenizers": [tokenizer.fingerprint for tokenizer in tokenizers],
        "sources": {str(Path(path).resolve()): fingerprint(path) for path in sources},
    }
    return report, about


def id_dtype(vocab_size: int) -> np.dtype[Any]:
    """The type that ids of such a vocabulary are stored in."""
    return np.dtype("<u2" if vocab_size <= 2**16 else "<i4")


class _Column:
    """Two growing files: values of all rows one after the other, and where each row ends."""

    def __init__(self, values: Path, ends: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.size = 0  # values so far
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
                with contextlib.suppress(OSError):  # of a full disk, which the write or flush told of already
                    file.close()

    def append_ids(self, rows: Sequence[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        values = np.fromiter(chain.from_iterable(rows), self.dtype, int(lengths.sum()))
        self._append(values.tobytes(), lengths)

    def append_texts(self, rows: Sequence[str]) -> None:
        encoded = [row.encode() for row in rows]
        self._append(b"".join(encoded), np.fromiter(map(len, encoded), np.int64, len(encoded)))

    def _append(self, values: bytes, lengths: NDArray[np.int64]) -> None:
        ends = self.size + np.cumsum(lengths)
        self.size += int(lengths.sum())
        self._files[0].write(values)
        self._files[1].write(ends.astype("<i8").tobytes())


class Store:
    """A corpus on disk; nothing is read before it is asked for."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.report = Report(**about["report"])
        self.tokenizers: tuple[str, str] = tuple(about["tokenizers"])  # their fingerprints, source first
        self.vocab_sizes: tuple[int, int] = (about["src"]["vocab_size"], about["tgt"]["vocab_size"])
        self.n_tokens: tuple[int, int] = (about["src"]["tokens"], about["tgt"]["tokens"])  # eos not counted
        self.sources: dict[str, dict[str, Any]] = about["sources"]  # path: fingerprint
        self.src_sentences: dict[int, int] = dict(about.get("src_sentences", []))  # so many: of how many sources
        self._n = int(about["pairs"])
        of_old = [{"pairs": self._n}]  # of a store that knew one corpus
        self.parts = tuple(
            Part(**{**part, "begin": tuple(part.get("begin", ()))}) for part in about.get("corpora", of_old)
        )
        """The corpora in it, in the order of their pairs."""
        if sum(part.pairs for part in self.parts) != self._n:
            raise ValueError(f"its corpora do not have {self._n:,} pairs together")
        self._ids = [
            _Rows(
                folder, f"{side}.ids", f"{side}.offsets", self._n, about[side]["tokens"], np.dtype(about[side]["dtype"])
            )
            for side in ("src", "tgt")
        ]
        self._texts = None
        if about["text_bytes"]:
            sizes = zip(("src", "tgt"), about["text_bytes"], strict=True)
            self._texts = [
                _Rows(folder, f"{side}.text", f"{side}.ends", self._n, size, np.dtype("u1")) for side, size in sizes
            ]

    @classmethod
    def open(cls, folder: Path | str) -> Store:
        """Open a store; nothing but its description is read.

        Raises:
            DataError: It is missing, incomplete, damaged or of another version of dragoman.
        """
        folder = Path(folder)
        try:
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise DataError(f"{folder}: a store of format {about['format']}, not {FORMAT}; remove it to rebuild it")
            return cls(folder, about)
        except FileNotFoundError as error:
            raise DataError(f"{error.filename}: missing, so this store is incomplete; build it again") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: the store cannot be used ({error}); remove it to rebuild it") from None

    def __len__(self) -> int:
        return self._n

    @property
    def is_weighted(self) -> bool:
        """Whether pairs of some corpus are drawn otherwise than once an epoch."""
        return any(part.weight != 1 for part in self.parts)

    @property
    def n_drawn(self) -> float:
        """How many pairs an epoch has: each corpus counts with its weight."""
        return sum(part.weight * part.pairs for part in self.parts)

    def src_lengths(self) -> Lengths:
        """Subwords of each source, eos not counted, ``(pairs,)``; int16 where all are below 2^14, else int32."""
        return self._ids[0].lengths()

    def tgt_lengths(self) -> Lengths:
        """Subwords of each target, eos not counted, ``(pairs,)``; int16 where all are below 2^14, else int32."""
        return self._ids[1].lengths()

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """The ids of one pair, without bos and eos; not to be written to.

        Raises:
            DataError: The store was cut or damaged after it was opened.
        """
        src, tgt = self._ids
        return np.frombuffer(src.row(index), src.dtype), np.frombuffer(tgt.row(index), tgt.dtype)

    @property
    def has_text(self) -> bool:
        """Whether the store was built with ``keep_text``."""
        return self._texts is not None

    def texts(self, indices: Iterable[int]) -> tuple[list[str], list[str]]:
        """The source and the target lines of these pairs.

        Raises:
            DataError: The store was built without ``keep_text``.
        """
        if self._texts is None:
            raise DataError(f"{self.folder} holds no text, only ids; build it again with keep_text=True")
        rows = [int(i) for i in indices]
        src, tgt = ([text.row(i).decode() for i in rows] for text in self._texts)
        return src, tgt


class _Rows:
    """One column of a store: any row of it, read when it is asked for.

    Read and not memory-mapped: every page of a map that was touched, and those around it, would count as memory of this
    process, and a file that is cut under a map kills the process.
    """

    def __init__(self, folder: Path, values: str, ends: str, n: int, size: int, dtype: np.dtype[Any]) -> None:
        """Open ``n`` rows of ``size`` values in all.

        Raises:
            OSError, ValueError: The files do not fit these numbers, or each other.
        """
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
        """The bytes of one row.

        Raises:
            DataError: The files were cut or damaged after they were opened.
        """
        if not 0 <= index < self._n:
            raise IndexError(f"row {index} of {self._n}")
        start, end = _TWO_OFFSETS(self._read(self._ends, 16, 8 * index))
        if not 0 <= start <= end <= self._size:
            raise DataError(
                f"{self._ends}: damaged (row {index} from {start} to {end}); remove the store to rebuild it"
            )
        width = self.dtype.itemsize
        return self._read(self._values, (end - start) * width, start * width)

    def lengths(self) -> Lengths:
        """Values of each row, ``(n,)``; int16 where all are below 2^14, else int32."""
        result: Lengths = np.empty(self._n, np.int16)
        for first in range(0, self._n, CHUNK_OFFSETS):
            lengths = np.diff(self._offsets(first, min(CHUNK_OFFSETS, self._n - first) + 1))
            if result.dtype == np.int16 and lengths.max() > MOST_16_BITS:
                result = result.astype(np.int32)
            result[first : first + len(lengths)] = lengths
        return result

    def _offsets(self, first: int, count: int) -> NDArray[np.int64]:
        return np.frombuffer(self._read(self._ends, 8 * count, 8 * first), "<i8")

    def _read(self, path: Path, n_bytes: int, place: int) -> bytes:
        try:
            data = os.pread(self._descriptors[path], n_bytes, place)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None
        if len(data) != n_bytes:
            raise DataError(f"{path}: was truncated while in use; remove the store to rebuild it")
        return data


def check_store(folder: Path | str) -> bool:
    """Read every file of a store and compare it with the SHA-256 noted when it was built: about two seconds for a GB.

    Returns:
        Whether there was something to compare with: stores of dragoman 0.1 note no sums.

    Raises:
        DataError: A file is missing or not what it was.
    """
    folder = Path(folder)
    try:
        if not {"files", "sha256"} & json.loads((folder / ABOUT).read_text(encoding="utf-8")).keys():
            return False
    except (OSError, ValueError, AttributeError):
        pass  # check_sealed says what is wrong
    try:
        check_sealed(folder, "store", ABOUT)
    except BundleError as error:
        raise DataError(str(error)) from None
    return True


def fingerprint(path: Path | str) -> dict[str, Any]:
    """Size and sha256 of a file, to notice when a corpus changes under a run.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return {"bytes": Path(path).stat().st_size, "sha256": sha256(Path(path))}
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def throttled(progress: Progress | None) -> Progress:
    """Let a call through at most ten times a second, and the one that says that all is done."""
    last = 0.0

    def tell(done: int, total: int | None, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if progress is not None and (now - last >= 0.1 or done == total):
            last = now
            progress(done, total, what)

    return tell


def _chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Cut a stream of pairs into lists that fit in memory."""
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
