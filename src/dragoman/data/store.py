"""A corpus as token ids on disk, memory-mapped: training needs no more memory for a hundred million pairs than for ten.

A store is a folder. All numbers are little-endian and nothing stands before or between them.

    src.ids  tgt.ids            the subwords of all pairs, one after the other, without bos and eos;
                                uint16 for vocabularies up to 65,536, else int32
    src.offsets  tgt.offsets    int64, one more than pairs: pair i is ids[offsets[i]:offsets[i + 1]]
    src.text  tgt.text          UTF-8, in the same way; only where training samples subwords anew
    src.ends  tgt.ends          int64, offsets into the text, in bytes
    store.json                  counts, types, fingerprints, the SHA-256 of each file; written last

It is built in a folder beside its place and moved there when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
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

Progress = Callable[[int, int | None, str], None]
"""Called with how much is done, how much there is in all (None: not known) and what of; at most ten times a second."""

Ids = NDArray[np.integer[Any]]

FORMAT = 1
ABOUT = "store.json"
CHUNK_PAIRS = 10_000
CHUNK_CHARACTERS = 2**23  # a chunk of long lines ends sooner, so that memory stays bounded


def build_store(
    folder: Path | str,
    pairs: Iterable[tuple[str, str]],
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
        pairs: Source and target lines, read once, such as ``read_pairs(src, tgt)``.
        config: Its ``max_tokens``, ``max_ratio`` and ``drop_duplicates`` decide which pairs stay.
        keep_text: Keep the text too, so that subwords can be sampled anew in each epoch.
        sources: Files whose size and sha256 are noted in the store.
        total: Number of pairs, if known, for ``progress``.
        progress: Told the number of pairs read.

    Raises:
        DataError: No pair is left, or the folder holds something else than a store; and whatever reading ``pairs``
            finds wrong. Nothing is left behind.
        DragomanError: The disk is full or the folder cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not (folder / ABOUT).is_file():
        raise DataError(f"{folder} exists and is not a store; remove it, or choose another place")
    about: dict[str, Any] = {}
    with sealed_folder(folder, about, name=ABOUT) as aside:
        report, facts = _write(
            aside, pairs, (src_tokenizer, tgt_tokenizer), config, keep_text, sources, total, progress
        )
        about.update(facts)
    return report


def _write(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
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
    with ExitStack() as files:
        ids, texts = [], []
        for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
            dtype = id_dtype(tokenizer.vocab_size)
            ids.append(files.enter_context(_Column(folder / f"{side}.ids", folder / f"{side}.offsets", dtype)))
            if keep_text:
                texts.append(
                    files.enter_context(_Column(folder / f"{side}.text", folder / f"{side}.ends", np.dtype("u1")))
                )
        for chunk in _chunks(pairs):
            sides = list(zip(*chunk, strict=True))
            encoded = [tokenizer.encode(lines) for tokenizer, lines in zip(tokenizers, sides, strict=True)]
            lengths = [np.fromiter(map(len, rows), np.int64, len(rows)) for rows in encoded]
            keep = np.flatnonzero(cleaner.keep(chunk, *lengths)).tolist()
            for column, rows in zip(ids, encoded, strict=True):
                column.append_ids([rows[i] for i in keep])
            for column, lines in zip(texts, sides, strict=False):
                column.append_texts([lines[i] for i in keep])
            tell(cleaner.report.read, total, "pairs encoded")
    report = cleaner.report
    if not report.kept:
        raise DataError(f"no pair is left to work with: {report}. Check the files, data.max_tokens and data.max_ratio")
    about = {
        "format": FORMAT,
        "pairs": report.kept,
        "src": {"tokens": ids[0].size, "dtype": ids[0].dtype.str, "vocab_size": tokenizers[0].vocab_size},
        "tgt": {"tokens": ids[1].size, "dtype": ids[1].dtype.str, "vocab_size": tokenizers[1].vocab_size},
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
        self._n = int(about["pairs"])
        self._ids, self._offsets = zip(
            *(
                self._map(side, about[side]["tokens"], np.dtype(about[side]["dtype"]), "ids", "offsets")
                for side in ("src", "tgt")
            ),
            strict=True,
        )
        self._texts = None
        if about["text_bytes"]:
            sizes = zip(("src", "tgt"), about["text_bytes"], strict=True)
            self._texts = [self._map(side, size, np.dtype("u1"), "text", "ends") for side, size in sizes]

    @classmethod
    def open(cls, folder: Path | str) -> Store:
        """Map a store into memory.

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
            raise DataError(f"{error.filename}: missing, so this is no complete store; build it again") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: the store cannot be used ({error}); remove it to rebuild it") from None

    def _map(self, side: str, size: int, dtype: np.dtype[Any], values: str, ends: str) -> tuple[Ids, Ids]:
        """Map the values of one column and their offsets, and check that they fit each other."""
        result = []
        for name, n, kind in ((values, size, dtype), (ends, self._n + 1, np.dtype("<i8"))):
            path = self.folder / f"{side}.{name}"
            if path.stat().st_size != n * kind.itemsize:
                raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes instead of {n * kind.itemsize:,}")
            result.append(np.asarray(np.memmap(path, kind, "r")) if n else np.empty(0, kind))
        if result[1][0] != 0 or result[1][-1] != size:
            raise ValueError(f"{side}.{ends} does not fit {side}.{values}")
        return result[0], result[1]

    def __len__(self) -> int:
        return self._n

    def src_lengths(self) -> NDArray[np.int32]:
        """Subwords of each source, eos not counted, ``(pairs,)``."""
        return np.diff(self._offsets[0]).astype(np.int32)

    def tgt_lengths(self) -> NDArray[np.int32]:
        """Subwords of each target, eos not counted, ``(pairs,)``."""
        return np.diff(self._offsets[1]).astype(np.int32)

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """The ids of one pair, without bos and eos; views into the file, not to be written to."""
        (src, tgt), (src_ends, tgt_ends) = self._ids, self._offsets
        return src[src_ends[index] : src_ends[index + 1]], tgt[tgt_ends[index] : tgt_ends[index + 1]]

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
        src, tgt = ([bytes(text[ends[i] : ends[i + 1]]).decode() for i in rows] for text, ends in self._texts)
        return src, tgt


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
