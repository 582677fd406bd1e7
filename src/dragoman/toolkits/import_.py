"""Import a foreign model: read it, check its tensors, write it as a run.

    dragoman.import_model("opus-mt-en-de", "runs/opus")

The files show which toolkit wrote the model (``Toolkit.recognises``); the reader of that toolkit reads it. The run
holds ``bundle/`` alone, which every command accepts that takes a trained run.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from dragoman.arguments import checked
from dragoman.bundle import save_bundle
from dragoman.config import Config
from dragoman.data.corpus import read_lines
from dragoman.data.sentencepiece_check import is_unigram
from dragoman.errors import BundleError, ConfigError, UnreadableError, parsing
from dragoman.files import MANIFEST, check_files, explained, final_name, pinned, read_manifest, unreadable
from dragoman.locks import one_at_a_time
from dragoman.model.weights import shapes
from dragoman.toolkits import TOOLKITS
from dragoman.toolkits.headers import try_headers
from dragoman.toolkits.reading import Imported, read_object
from dragoman.toolkits.toolkit import Reader

logger = logging.getLogger(__name__)

BUNDLE = "bundle"
"""Name of the one folder in an imported run."""


@checked
def import_model(
    source: Path | str, out: Path | str, *, keep_pieces_of: Sequence[Path | str] = (),
    src_lang: str | None = None, tgt_lang: str | None = None, revision: str | None = None,
) -> Path:  # fmt: skip
    """Import a foreign model as a run: a folder, a file, or a name that huggingface_hub can download.

    Args:
        source: A folder of Hugging Face's Marian or Pegasus (``config.json``) or of CTranslate2 (``model.bin``), a
            package of Argos Translate, a ``.npz`` of Marian or its folder; or a name such as
            ``Helsinki-NLP/opus-mt-en-de``.
        out: The run to write; it must not exist yet.
        keep_pieces_of: Texts of either language. If given, subwords that none of them uses are removed, which makes
            the model smaller and faster; these texts are split into the same subwords as before.
        src_lang, tgt_lang: Language codes; None: those that the model names.
        revision: Branch, tag or commit of a model to download; None: the newest.

    Returns:
        ``out``.

    Raises:
        BundleError: The model is damaged, incomplete, or of a kind that cannot be held exactly.
        ConfigError: ``out`` already exists, or the name cannot be downloaded.
        DataError: A text cannot be read; or the files of the model exceed what parsing them may take.
    """
    run = pinned(out)
    _refuse_existing(run)
    folder, name = pinned(source), str(source)
    keep_pieces_of = [pinned(path) for path in keep_pieces_of]
    if not folder.exists():
        download = next(toolkit.download for toolkit in TOOLKITS if toolkit.download is not None)
        folder, name = download()(name, revision)
    elif revision is not None:
        raise ConfigError(
            f"revision = {revision!r} is for a model that is downloaded, and {source} is a file or folder: leave it out"
        )
    try_headers(folder)
    _check_sums(folder)
    texts = [line for path in keep_pieces_of for line in read_lines(path)]
    model = reader(folder).read(folder, name, texts if keep_pieces_of else None, (src_lang, tgt_lang))
    _check(model, folder)
    config = _with_subwords(model)
    if normalizers := model.facts["imported"].get("normalises_text"):
        names = ", ".join(normalizers)
        logger.info(
            "%s: its tokenizer normalises text (%s): unusual characters and double spaces are not restored", name, names
        )
    if targets := sorted(model.src_tokenizer.targets):
        model.facts["imported"]["targets"] = targets
        logger.info("%s: its target languages: %s; choose one with to", source, ", ".join(targets))
    with explained(run):
        run.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(run):
            _refuse_existing(run)  # another process may have made it meanwhile
            save_bundle(
                run / BUNDLE, config, model.model, model.weights, model.src_tokenizer, model.tgt_tokenizer,
                model.facts,
            )  # fmt: skip
    return Path(out)


def _with_subwords(model: Imported) -> Config:
    """Return the configuration with the kind and number of the subwords that were imported."""
    data, src, tgt = model.config.data, model.src_tokenizer, model.tgt_tokenizer
    tokenizer = data.tokenizer.model_copy(
        update={
            "kind": "unigram" if is_unigram(src.proto) else "bpe", "byte_fallback": bool(src.byte_ids),
            "vocab_size": max(src.vocab_size, tgt.vocab_size),
        }
    )  # fmt: skip
    return model.config.model_copy(update={"data": data.model_copy(update={"tokenizer": tokenizer})})


def _refuse_existing(run: Path) -> None:
    """Refuse a run that holds anything but what a killed import left."""
    if run.exists() and not (run.is_dir() and all(final_name(path) == BUNDLE != path.name for path in run.iterdir())):
        raise ConfigError(f"{run}: already exists; choose another --out, or remove it")


def _check_sums(source: Path) -> None:
    """Check an export of ours against the sums of the manifest in its folder; of a file, only that file.

    Raises:
        BundleError: A file was changed since, or the manifest is damaged.
    """
    folder = source if source.is_dir() else source.parent
    path = folder / MANIFEST
    if not path.is_file():
        return
    try:
        listed = read_object(path, "an export of dragoman has it")
    except (BundleError, UnreadableError):
        if source.is_dir():
            raise
        return  # a file of another program in the same folder
    if {"export", "files", "sha256"} & listed.keys() if source.is_dir() else source.name in _names_in(listed):
        try:
            manifest = read_manifest(folder, "export")
            sums = manifest["files"] if source.is_dir() else {source.name: manifest["files"][source.name]}
            check_files(folder, "export", {"files": sums})
        except BundleError as error:
            raise BundleError(f"{error}; if it was changed on purpose, remove {path.name} beside it") from None


def _names_in(manifest: Mapping[str, Any]) -> Collection[str]:
    """Return the names of the files of which a manifest has sums."""
    files = manifest.get("files")
    return files.keys() if isinstance(files, dict) else ()


def _check(imported: Imported, folder: Path) -> None:
    """Refuse a tensor that is missing, unexpected, of another shape or not finite, before anything is written."""
    expected = shapes(imported.model)
    if imported.weights.keys() != expected.keys():
        missing, extra = (
            sorted(a - b)[:3]
            for a, b in ((expected.keys(), imported.weights.keys()), (imported.weights.keys(), expected.keys()))
        )
        raise BundleError(
            f"{folder}: its weights are not those of its configuration (missing {missing}, unexpected {extra})"
        )
    for name, like in expected.items():
        tensor = imported.weights[name]
        if tensor.shape != like.shape:
            raise BundleError(
                f"{folder}: {name} is {tuple(tensor.shape)}, but its configuration says {tuple(like.shape)}"
            )
        if not bool(tensor.isfinite().all()):
            raise BundleError(f"{folder}: {name} holds values that are not finite: the model is damaged")
    assert all(tensor.dtype == torch.float32 for tensor in imported.weights.values())


def reader(source: Path) -> Reader:
    """Return the reader of the toolkit that recognises a folder or file.

    Raises:
        BundleError: There is none.
    """
    try:
        if source.is_dir():
            names = [path.name for path in source.iterdir()]
        else:
            names = _names_in_zip(source) if source.is_file() and zipfile.is_zipfile(source) else []
    except OSError as error:
        raise unreadable(source, error) from error
    for toolkit in TOOLKITS:
        if toolkit.reader is not None and toolkit.recognises(source, names):
            return toolkit.reader()
    readable = "; or ".join(toolkit.reads for toolkit in TOOLKITS if toolkit.reads)
    raise BundleError(f"{source}: holds no model that can be imported: give {readable}")


def _names_in_zip(source: Path) -> list[str]:
    with parsing(source, "a zip file", BundleError), zipfile.ZipFile(source) as package:
        return package.namelist()
