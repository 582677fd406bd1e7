"""Files of a translation: one document, or the documents of a folder with the files that are left out.

files = files_of(Path("manual"), Path("handbuch"))
files.pairs      # [(Path("manual/a.md"), Path("handbuch/a.md")), ...]
files.skipped    # Counter({".png": 12})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.data.text_names import is_plain_text
from dragoman.documents.formats import format_of, supported_suffixes
from dragoman.errors import DataError
from dragoman.files import below, lies_in, refuse_alike


@dataclass(frozen=True)
class Files:
    """Documents to translate, and what else is in their folder."""

    pairs: list[tuple[Path, Path]]  # each document with the path of its translation
    skipped: Mapping[str, int] = field(default_factory=dict)  # numbers of files that are no documents, by suffix
    links: tuple[Path, ...] = ()  # links out of the folder or to folders, which are not followed


def files_of(src: Path, out: Path) -> Files:
    """Return the documents of a folder, or one document, each with the path of its translation.

    Raises:
        DataError: There is no document, or ``out`` does not fit ``src``.
        ConfigError: The file system takes the names of two translations for one.
        DragomanError: A folder in ``src`` cannot be read.
    """
    if src.is_dir():
        return _files_in(src, out)
    if src.suffix.lower() != out.suffix.lower() and not (is_plain_text(src.name) and is_plain_text(out.name)):
        raise DataError(f"{out}: must end in {src.suffix}, as {src} does: a document keeps its format")
    return Files([(src, out)])


def _files_in(src: Path, out: Path) -> Files:
    top = src.resolve()
    documents: list[Path] = []
    skipped: Counter[str] = Counter()
    links: list[Path] = []
    for path in below(src):
        if path.is_symlink() and not (path.is_file() and path.resolve().is_relative_to(top)):
            links.append(path)
        elif path.is_file() and format_of(path.name) is not None:
            documents.append(path)
        else:
            skipped[path.suffix.lower()] += 1
    if not documents:
        raise DataError(f"{src}: has no document in it; supported are {', '.join(supported_suffixes())}")
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: a folder of documents becomes a folder, and this is a file")
    pairs = [(path, out / path.relative_to(src)) for path in documents]
    for place in (out, *(to for _, to in pairs)):  # one of them may lead there, by its name or by a link
        if lies_in(place, top):
            raise DataError(f"{place}: lies in the folder that is read: give another --out")
    refuse_alike(to for _, to in pairs)
    return Files(pairs, skipped, tuple(links))
