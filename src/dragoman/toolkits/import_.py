"""A foreign model as a run of ours: read by its format, checked against the model it is to be, written as a bundle.

The files say which toolkit wrote it (``Toolkit.recognises``), and the reader of that toolkit reads it.

    dragoman.import_model("opus-mt-en-de", "runs/opus")

The run holds ``bundle/`` alone. It can be translated with, scored, explained, fine-tuned, evaluated, exported, served.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.bundle import save_bundle
from dragoman.data.corpus import read_lines
from dragoman.errors import BundleError, ConfigError
from dragoman.files import MANIFEST, check_sealed, explained, one_at_a_time
from dragoman.model.weights import shapes
from dragoman.toolkits import TOOLKITS
from dragoman.toolkits.reading import Imported, read_object
from dragoman.toolkits.toolkit import Reader

logger = logging.getLogger(__name__)


def import_model(
    source: Path | str, out: Path | str, *, keep_pieces_of: Sequence[Path | str] = (),
    src_lang: str | None = None, tgt_lang: str | None = None, revision: str | None = None,
) -> Path:  # fmt: skip
    """Make a run of a foreign model: a folder or file, or a name that huggingface_hub can download.

    Args:
        source: A folder of Hugging Face's Marian or Pegasus (``config.json``) or of CTranslate2 (``model.bin``), a
            package of Argos Translate, a ``.npz`` of Marian or its folder; or a name such as
            ``Helsinki-NLP/opus-mt-en-de``. What it is, its files say.
        out: The run to write; it must not be there yet.
        keep_pieces_of: Texts of either language. If given, subwords that none of them has are left out, which makes
            the model smaller and faster; these texts are cut as before.
        src_lang, tgt_lang: Language codes; None: what the model says.
        revision: Of a model that is downloaded: a branch, tag or commit; None: the newest.

    Returns:
        ``out``.

    Raises:
        BundleError: The model is damaged, incomplete, or of a kind that cannot be held exactly.
        ConfigError: ``out`` is there already, or the name cannot be downloaded.
        DataError: A text cannot be read.
    """
    run = Path(out)
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise ConfigError(f"{run}: already exists; choose another --out, or remove it")
    folder, name = Path(source), str(source)
    if not folder.exists():
        download = next(toolkit.download for toolkit in TOOLKITS if toolkit.download is not None)
        folder, name = download()(name, revision)
    elif revision is not None:
        raise ConfigError(
            f"revision = {revision!r} is for a model that is downloaded, and {source} is a file or folder: leave it out"
        )
    _check_sums(folder)
    texts = [line for path in keep_pieces_of for line in read_lines(path)]
    found = reader(folder).read(folder, name, texts if keep_pieces_of else None, (src_lang, tgt_lang))
    _check(found, folder)
    if normalizers := found.facts["imported"].get("normalises_text"):
        said = ", ".join(normalizers)
        logger.info(
            "%s: its subwords normalise text (%s): odd characters and double spaces do not come back", name, said
        )
    if targets := sorted(found.src_tokenizer.targets):
        found.facts["imported"]["targets"] = targets
        logger.info("%s: its target languages: %s; choose one with to", source, ", ".join(targets))
    with explained(run):
        run.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(run):
            save_bundle(
                run / "bundle", found.config, found.model, found.weights, found.src_tokenizer, found.tgt_tokenizer,
                found.facts,
            )  # fmt: skip
    return run


def _check_sums(folder: Path) -> None:
    """Refuse an export of ours that was damaged or changed since, by the sums of the manifest in its folder.

    Raises:
        BundleError: A file is not the one that the manifest lists, or the manifest itself is damaged.
    """
    path = folder / MANIFEST
    if path.is_file() and {"export", "files", "sha256"} & read_object(path, "an export of dragoman has it").keys():
        try:
            check_sealed(folder, "export")
        except BundleError as error:
            raise BundleError(f"{error}; if it was changed on purpose, remove {path.name} beside it") from None


def _check(found: Imported, folder: Path) -> None:
    """Refuse tensors that are not those of the model, before anything is written."""
    wanted = shapes(found.model)
    if found.weights.keys() != wanted.keys():
        missing, extra = (
            sorted(a - b)[:3] for a, b in ((wanted.keys(), found.weights.keys()), (found.weights.keys(), wanted.keys()))
        )
        raise BundleError(
            f"{folder}: its weights are not those of its configuration (missing {missing}, unexpected {extra})"
        )
    for name, like in wanted.items():
        tensor = found.weights[name]
        if tensor.shape != like.shape:
            raise BundleError(
                f"{folder}: {name} is {tuple(tensor.shape)}, but its configuration says {tuple(like.shape)}"
            )
        if not bool(tensor.isfinite().all()):
            raise BundleError(f"{folder}: {name} holds values that are not finite: the model is damaged")
    assert all(tensor.dtype == torch.float32 for tensor in found.weights.values())


def reader(source: Path) -> Reader:
    """Return the reader of a folder or file.

    Raises:
        BundleError: No toolkit recognises it.
    """
    try:
        if source.is_dir():
            names = [path.name for path in source.iterdir()]
        else:
            names = _names_in_zip(source) if source.is_file() and zipfile.is_zipfile(source) else []
    except OSError as error:
        raise BundleError(f"{source}: cannot be read ({error.strerror})") from None
    for toolkit in TOOLKITS:
        if toolkit.reader is not None and toolkit.recognises(source, names):
            return toolkit.reader()
    readable = "; or ".join(toolkit.reads for toolkit in TOOLKITS if toolkit.reads)
    raise BundleError(f"{source}: holds no model that can be imported: give {readable}")


def _names_in_zip(source: Path) -> list[str]:
    try:
        with zipfile.ZipFile(source) as package:
            return package.namelist()
    except zipfile.BadZipFile as error:
        raise BundleError(f"{source}: a damaged zip file ({error}); copy it again") from None
