"""A trained model on disk: all that translating, serving and exporting need, and no pickle.

bundle/
  config.yaml          the whole configuration of the run
  model.safetensors    weights under the names of the model's ``state_dict()``; of tied tensors only the first
  joint.spm            or src.spm and tgt.spm
  manifest.json        format, languages, vocabulary sizes, which weights, sizes and SHA-256 of each file
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman import __version__
from dragoman.config import Config, ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError
from dragoman.files import MANIFEST, check_files, read_manifest, sealed_folder, standing
from dragoman.model.build import EncoderDecoder, build
from dragoman.model.weights import Undrawn, adopt, n_bytes, read_weights, save_weights, shapes

FORMAT = 1


class Bundle(NamedTuple):
    """A trained model and what it was trained with."""

    config: Config
    model: EncoderDecoder
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    manifest: dict[str, Any]


def save_bundle(
    folder: Path, config: Config, model_config: ModelConfig, weights: Mapping[str, Tensor],
    src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, facts: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write a bundle in one step; ``facts`` (which weights, steps, scores) go into the manifest.

    Raises:
        DragomanError: The folder cannot be written.
    """
    manifest = {
        "format": FORMAT,
        "dragoman": __version__,
        "src_lang": config.data.src_lang,
        "tgt_lang": config.data.tgt_lang,
        "src_vocab_size": model_config.src_vocab_size,
        "tgt_vocab_size": model_config.tgt_vocab_size,
        **facts,
    }
    with sealed_folder(folder, manifest, n_bytes(weights)) as aside:
        (aside / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
        save_weights(aside / "model.safetensors", weights)
        if src_tokenizer is tgt_tokenizer:
            src_tokenizer.save(aside / "joint.spm")
        else:
            src_tokenizer.save(aside / "src.spm")
            tgt_tokenizer.save(aside / "tgt.spm")


def load_bundle(path: Path | str, device: str | torch.device = "cpu") -> Bundle:
    """Read a run's bundle, or a bundle itself, and check it against its manifest.

    Args:
        path: A run folder (with ``bundle/`` inside) or a bundle folder.

    Raises:
        BundleError: There is none, it is damaged, or it was written by a newer dragoman.
    """
    folder = find_bundle(Path(path))
    manifest = read_manifest(folder, "bundle")
    with ThreadPoolExecutor(1) as beside:
        checked = beside.submit(check_files, folder, "bundle", manifest)
        try:
            bundle = _read(folder, manifest, device)
        finally:
            checked.result()  # a damaged file is named before anything that came of it
    return bundle


def _read(folder: Path, manifest: dict[str, Any], device: str | torch.device) -> Bundle:
    """Read the files of a bundle, which may not be those of its manifest."""
    if "format" not in manifest:
        raise BundleError(
            f"{folder}: a checkpoint, not a bundle (a run writes its bundle when it ends): give the run folder"
        )
    if manifest["format"] != FORMAT or isinstance(manifest["format"], bool):
        raise BundleError(f"{folder}: bundle format {manifest['format']!r}, this dragoman reads {FORMAT}: upgrade it")
    joint = (folder / "joint.spm").is_file()
    for name in ("config.yaml", "model.safetensors", *(("joint.spm",) if joint else ("src.spm", "tgt.spm"))):
        if name not in manifest["files"] or not (folder / name).is_file():  # a pipe would never end
            raise BundleError(f"{folder / name}: missing from this bundle; copy it again or use another one")
    try:
        config = Config.from_yaml(folder / "config.yaml")
        model_config = ModelConfig(
            **config.model.model_dump(),
            src_vocab_size=manifest["src_vocab_size"],
            tgt_vocab_size=manifest["tgt_vocab_size"],
        )
    except (ConfigError, KeyError) as error:
        raise BundleError(f"{folder}: its configuration cannot be used ({error})") from None
    for name in ("usual_src_tokens", "usual_src_sentences"):
        usual = manifest.get(name, 1)
        if type(usual) is not int or usual < 1:
            raise BundleError(
                f"{folder}: {name} = {usual!r} in its manifest must be a whole number of 1 or more; copy it "
                "again or take another one"
            )
    ratio = manifest.get("least_length_ratio", 0.0)
    if type(ratio) not in (int, float) or not 0 <= ratio < math.inf:
        raise BundleError(
            f"{folder}: least_length_ratio = {ratio!r} in its manifest must be a number of 0 or more; copy it again or "
            "take another one"
        )
    src_tokenizer = Tokenizer.load(folder / ("joint.spm" if joint else "src.spm"))
    tgt_tokenizer = src_tokenizer if joint else Tokenizer.load(folder / "tgt.spm")
    if (src_tokenizer.vocab_size, tgt_tokenizer.vocab_size) != (
        model_config.src_vocab_size,
        model_config.tgt_vocab_size,
    ):
        raise BundleError(f"{folder}: the subword models are not the ones this model was trained with")
    weights = read_weights(folder / "model.safetensors", shapes(model_config))  # before anything large is allocated
    with Undrawn():
        model = build(model_config)
    adopt(model, weights)
    return Bundle(config, model.to(device).eval(), src_tokenizer, tgt_tokenizer, manifest)


def find_bundle(path: Path) -> Path:
    """The bundle folder of a run, or ``path`` itself if it is one.

    Raises:
        BundleError: There is neither.
    """
    bundle, path = standing(path / "bundle"), standing(path)
    if (bundle / MANIFEST).is_file():
        return bundle
    if (path / MANIFEST).is_file() and (path / "model.safetensors").is_file():
        return path
    if (path / "checkpoints").is_dir():
        raise BundleError(f"{path}: this run has no bundle yet; finish it with `dragoman train --out {path} --resume`")
    if not path.exists():
        raise BundleError(f"{path}: no such run; train one with `dragoman train`, or `dragoman demo`")
    raise BundleError(f"{path}: neither a run nor a bundle")
