"""A foreign model as a run of ours: read by its format, checked against the model it is to be, written as a bundle.

What it is, its files say: ``FORMATS``. Each format is read by the module of that name; what they share is here.

    dragoman.import_model("opus-mt-en-de", "runs/opus")

The run holds ``bundle/`` alone. It can be translated with, scored, explained, fine-tuned, evaluated, exported, served.
"""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor

from dragoman.bundle import save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.data.corpus import read_lines
from dragoman.data.sentencepiece_check import IDENTITY, Parts, normalizer_name
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError
from dragoman.files import MANIFEST, check_sealed, explained, one_at_a_time
from dragoman.model.embedding import sinusoids
from dragoman.model.weights import shapes

logger = logging.getLogger(__name__)

FORMATS = {
    "argos": "a package of Argos Translate (.argosmodel)",
    "ctranslate2": "a folder of CTranslate2 (model.bin)",
    "huggingface": "a folder of Hugging Face (config.json)",
    "marian": "a model of Marian (.npz) or its folder",
}
"""The modules that read, and what each reads."""
MAX_FILE_BYTES = 64 * 2**20  # of a file that is not weights


class Imported(NamedTuple):
    """What a format has read: all that a bundle is made of."""

    config: Config
    model: ModelConfig
    weights: dict[str, Tensor]  # as ``model.weights.untied``
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    facts: dict[str, Any]  # what the manifest says of where it is from


class Reader(Protocol):
    """A module that reads models of one foreign format."""

    def read(
        self, source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]
    ) -> Imported:
        """Read a model; nothing is written.

        Args:
            source: The folder or file.
            name: What the user calls it.
            texts: If given, subwords that none of them has are left out.
            languages: Codes of source and target; None: what the model says.

        Raises:
            BundleError: A file is missing or damaged, or the model is of a kind that cannot be held exactly.
        """
        ...


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
        from dragoman.toolkits.huggingface.read import download

        folder, name = download(name, revision)
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
    """Who reads this folder or file.

    Raises:
        BundleError: It is no model that is known here.
    """
    try:
        if source.is_dir():
            there = {path.name for path in source.iterdir()}
            kind = (
                "argos" if {"metadata.json", "model"} <= there
                else "ctranslate2" if "model.bin" in there
                else "huggingface" if "config.json" in there
                else "marian" if any(name.endswith(".npz") for name in there)
                else ""
            )  # fmt: skip
        else:
            kind = _kind_of_zip(source) if source.is_file() and zipfile.is_zipfile(source) else ""
    except OSError as error:
        raise BundleError(f"{source}: cannot be read ({error.strerror})") from None
    if not kind:
        raise BundleError(f"{source}: holds no model that can be imported: give {'; or '.join(FORMATS.values())}")
    return cast(Reader, import_module(f"dragoman.toolkits.{kind}.read"))


def _kind_of_zip(source: Path) -> str:
    try:
        with zipfile.ZipFile(source) as package:
            names = package.namelist()
    except zipfile.BadZipFile as error:
        raise BundleError(f"{source}: a damaged zip file ({error}); copy it again") from None
    if "special:model.yml.npy" in names:  # an .npz is a zip of arrays
        return "marian"
    return "argos" if any(name.endswith("/metadata.json") for name in names) else ""


def read_bytes(path: Path, wanted: str) -> bytes:
    """A file that is not weights.

    Args:
        wanted: Said if it is missing.

    Raises:
        BundleError: It cannot be read, or is larger than such a file is.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BundleError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes, which it should not be")
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); {wanted}") from None


def read_object(path: Path, wanted: str) -> dict[str, Any]:
    """A file of JSON that holds an object.

    Raises:
        BundleError: As ``read_bytes``, or it is something else.
    """
    try:
        found = json.loads(read_bytes(path, wanted))
    except (ValueError, RecursionError):
        raise BundleError(f"{path}: not JSON; copy it again") from None
    if not isinstance(found, dict):
        raise BundleError(f"{path}: should hold a JSON object")
    return found


def facts_of(name: str, form: str, digest: str, models: Sequence[Parts], **more: Any) -> dict[str, Any]:
    """What the manifest says of where a model is from.

    Args:
        digest: SHA-256 of its weights, in hex.
        models: Its subwords.
    """
    facts = {"from": name, "format": form, "weights_sha256": digest, **more}
    if normalizers := sorted({normalizer_name(one.normalizer) for one in models} - {IDENTITY}):
        facts["normalises_text"] = normalizers
    return {"weights": f"imported from {name}", "imported": facts}


def order_of_sinusoids(table: Tensor) -> Tensor | None:
    """Which channel of ours each channel of a table of positions is, if it holds the paper's sinusoids.

    Args:
        table: ``(n, d_model)``: sines and cosines in turn, as ours, or first all sines; perhaps in 16 bits.

    Returns:
        ``(d_model,)``, or None: it holds something else.
    """
    if table.size(1) % 2:
        return None
    ours, channels = sinusoids(0, len(table), table.size(1)).float(), torch.arange(table.size(1))
    for order in (channels, torch.cat((channels[0::2], channels[1::2]))):
        if torch.allclose(table, ours[:, order], atol=1e-3):
            return order
    return None
