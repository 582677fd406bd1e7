"""Tries the small files and the headers of a foreign model in a worker, before a reader parses them in this process.

What passes costs the reader no more than the budget; what is damaged is left to the reader, whose message says what is
wrong. Tensors are not read. Runs in workers, so nothing here may import torch.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dragoman.budget import Budget, run_within

HEADERS = Budget(memory=2 << 30, cpu_s=120, wall_s=900.0, advice="do not import it unless you trust its source")
"""Limits of parsing all small files and headers of one model."""

MOST_BYTES = 64 << 20
"""Size of the largest file that is tried; readers refuse larger ones that hold no weights."""

OPTIONS = "special:model.yml.npy"
"""Member of Marian's ``.npz`` with the options of the model."""


def try_headers(source: Path) -> None:
    """Parse the small files and headers of a folder, a ``.npz`` or a zip in a worker.

    Raises:
        DataError: They exceed ``HEADERS``, or crash the worker.
    """
    run_within(HEADERS, f"{source}", tried, path=str(source))


def tried(path: str) -> dict[str, Any]:
    """Parse what ``try_headers`` names, and return nothing."""
    source = Path(path)
    files = [source] if source.is_file() else [*source.glob("*"), *source.glob("*/*")]
    for file in sorted(file for file in files if file.is_file()):
        with _left_to_the_reader():
            if zipfile.is_zipfile(file):
                _try_zip(file)
            elif file.stat().st_size <= MOST_BYTES and (parse := _parser(file.name)) is not None:
                parse(file.read_bytes())
    return {}


@contextlib.contextmanager
def _left_to_the_reader() -> Iterator[None]:
    """Suppress any exception but MemoryError: its cause is named by the reader, which will meet it again."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:
        pass


def _parser(name: str) -> Callable[[bytes], object] | None:
    """Return what parses a file of this name; None for weights and unknown files."""
    suffix = Path(name).suffix
    if suffix == ".json":
        return json.loads
    if suffix in (".yml", ".yaml"):
        return _parse_yaml
    if suffix in (".spm", ".model"):
        return _parse_subwords
    return None


def _parse_yaml(content: bytes) -> object:
    from dragoman.config import parse_yaml  # imports pydantic, which most models do not need here

    return parse_yaml(content.decode(), "YAML")


def _parse_subwords(content: bytes) -> object:
    from dragoman.data.sentencepiece_check import parts  # imports NumPy, which documents do not need

    return parts(content)


def _try_zip(file: Path) -> None:
    """Parse the directory of a zip, its small members, and the headers of its arrays."""
    with zipfile.ZipFile(file) as package:
        for entry in package.infolist():
            with _left_to_the_reader(), package.open(entry) as member:
                if entry.filename.endswith(".npy"):
                    _try_array(member, entry)
                elif entry.file_size <= MOST_BYTES and (parse := _parser(entry.filename)) is not None:
                    parse(member.read())


def _try_array(stream: Any, entry: zipfile.ZipInfo) -> None:
    import numpy as np  # most models have none

    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    read(stream)
    if entry.filename == OPTIONS and entry.file_size <= MOST_BYTES:
        _parse_yaml(stream.read().rstrip(b"\0"))
