"""Read a package of Argos Translate: a zip, or the folder that it is installed as; see ``write.py``.

It is a model of CTranslate2 with one SentencePiece model. A zip may come from anyone. So names that lead out of its
folder are refused, and only the files of ``FILES`` are unpacked, each up to a largest size.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dragoman.errors import BundleError, DragomanError, parsing
from dragoman.files import explained, temporary_folder
from dragoman.toolkits.ctranslate2 import read as from_ctranslate2
from dragoman.toolkits.reading import MAX_FILE_BYTES, Imported, read_object, shown

WANTED = "a package of Argos Translate has it"
MODEL_FILES = ("config.json", "model.bin", *(f"{kind}_vocabulary.{form}" for kind in ("shared", "source", "target")
               for form in ("json", "txt")))  # fmt: skip
FILES = ("metadata.json", "sentencepiece.model", "bpe.model", *(f"model/{name}" for name in MODEL_FILES))
MAX_MODEL_BYTES = 16 * 2**30
CHUNK = 2**20
CODES = {"zt": "zh-Hant", "pb": "pt-BR"}
"""Codes of Argos alone, with the usual ones."""


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> Imported:  # fmt: skip
    """Read a package; see ``toolkit.Reader``."""
    if source.is_dir():
        return _read(source, name, texts, languages)
    with temporary_folder() as aside:
        folder = aside / source.stem  # the name in messages
        try:
            with parsing(source, "a package of Argos Translate", BundleError):
                _unpack(source, folder)
            return _read(folder, name, texts, languages)
        except DragomanError as error:  # names the package, and not the folder that is about to vanish
            raise type(error)(str(error).replace(str(folder), f"{source}")) from None


def _read(
    folder: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
) -> Imported:  # fmt: skip
    about = read_object(folder / "metadata.json", WANTED)
    if about.get("target_prefix"):
        raise BundleError(f"{name}: its texts begin with {shown(about['target_prefix'])}, which cannot be held here")
    subwords = folder / "sentencepiece.model"
    if not subwords.is_file():
        kind = "subword-nmt's byte pairs (bpe.model)" if (folder / "bpe.model").is_file() else "no sentencepiece.model"
        raise BundleError(f"{name}: has {kind}; only packages with SentencePiece can be imported")
    src, tgt = (str(about.get(name) or "") for name in ("from_code", "to_code"))
    codes = (languages[0] or CODES.get(src, src) or None, languages[1] or CODES.get(tgt, tgt) or None)
    return from_ctranslate2.read(folder / "model", name, texts, codes, from_ctranslate2.Package([subwords], about))


def _unpack(source: Path, folder: Path) -> None:
    """Unpack the files of ``FILES``.

    Raises:
        BundleError: The package is made to do harm, or holds a file twice.
        DragomanError: The temporary folder cannot be written.
        Exception: The package is damaged; any error that unpacking can raise.
    """
    with explained(Path(tempfile.gettempdir())):
        (folder / "model").mkdir(parents=True)
    with zipfile.ZipFile(source) as package:
        entries = [entry for entry in package.infolist() if not entry.is_dir()]
        tops, unpacked = set(), set()
        for entry in entries:
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in entry.filename or ":" in entry.filename:
                raise BundleError(f"{source}: names a file outside ({entry.filename[:60]!r}): do not install it")
            tops.add(path.parts[:1])
        if len(tops) != 1 or () in tops:
            raise BundleError(f"{source}: should hold one folder, and holds {len(tops)}; it is no package of Argos")
        for entry in entries:
            inside = "/".join(PurePosixPath(entry.filename).parts[1:])
            if inside not in FILES:
                continue
            most = MAX_MODEL_BYTES if inside == "model/model.bin" else MAX_FILE_BYTES
            if entry.file_size > most:
                raise BundleError(f"{source}: {inside} must have at most {most:,} bytes, got {entry.file_size:,}")
            if inside in unpacked:
                raise BundleError(f"{source}: holds {inside} twice; it is damaged")
            unpacked.add(inside)
            with explained(Path(tempfile.gettempdir()), entry.file_size), (folder / inside).open("xb") as file:
                for chunk in _chunks(package, entry, source):
                    file.write(chunk)


def _chunks(package: zipfile.ZipFile, entry: zipfile.ZipInfo, source: Path) -> Iterator[bytes]:
    """Yield the content of an entry; an error of unpacking is not taken for one of writing."""
    with parsing(source, "a package of Argos Translate", BundleError), package.open(entry) as packed:
        n_bytes = 0
        while chunk := packed.read(CHUNK):
            n_bytes += len(chunk)
            yield chunk
        if n_bytes != entry.file_size:
            raise BundleError(f"{source}: {entry.filename[:60]!r} has another size than it should; copy it again")
