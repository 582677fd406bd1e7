"""A trained model on disk: all that translating, serving and exporting need, and no pickle.

bundle/
  config.yaml          the whole configuration of the run
  model.safetensors    weights under the names of the model's ``state_dict()``; of tied tensors only the first
  joint.spm            or src.spm and tgt.spm
  shortlist.ids        target subwords that source subwords may become, where they were learned
  manifest.json        format, languages, vocabulary sizes, which weights, sizes and SHA-256 of each file
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman import __version__
from dragoman.config import Config, ModelConfig
from dragoman.data import shortlist as shortlists
from dragoman.data.shortlist import Shortlist
from dragoman.data.store import Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError
from dragoman.files import MANIFEST, check_files, read_manifest, sealed_folder, standing
from dragoman.model.build import EncoderDecoder, build
from dragoman.model.weights import WithoutInitialisation, adopt, n_bytes, read_weights, save_weights, shapes, untied

logger = logging.getLogger(__name__)

FORMAT = 1

USUAL_SHARE = 0.95
"""Of the sources: what fewer lines show, a model learns too little of to be asked for it."""

TELLING_TOKENS = 8
"""Source subwords from which on the length of a translation tells anything."""


class Bundle(NamedTuple):
    """A trained model and what it was trained with."""

    config: Config
    model: EncoderDecoder
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    manifest: dict[str, Any]
    shortlist: Shortlist | None = None


def save_bundle(
    folder: Path, config: Config, model_config: ModelConfig, weights: Mapping[str, Tensor],
    src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, facts: Mapping[str, Any], shortlist: Shortlist | None = None,
) -> None:  # fmt: skip
    """Write a bundle in one step; ``facts`` (which weights, steps, scores) go into the manifest.

    Raises:
        DragomanError: The folder cannot be written.
    """
    with sealed_folder(folder, manifest_of(config, model_config) | dict(facts), n_bytes(weights)) as aside:
        (aside / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
        save_weights(aside / "model.safetensors", weights)
        if src_tokenizer is tgt_tokenizer:
            src_tokenizer.save(aside / "joint.spm")
        else:
            src_tokenizer.save(aside / "src.spm")
            tgt_tokenizer.save(aside / "tgt.spm")
        if shortlist is not None:
            shortlist.write(aside / shortlists.FILE, model_config.tgt_vocab_size)


def amend_bundle(path: Path, shortlist: Shortlist | None = None, **facts: Any) -> None:
    """Replace a run's bundle by one that also has a shortlist, or whose manifest also says ``facts``.

    Raises:
        BundleError: There is none, or it is damaged.
        DragomanError: The folder cannot be written.
    """
    bundle = load_bundle(path)
    said = {name: fact for name, fact in bundle.manifest.items() if name not in ("files", "sha256")} | facts
    save_bundle(
        find_bundle(path), bundle.config, bundle.model.config, untied(bundle.model), bundle.src_tokenizer,
        bundle.tgt_tokenizer, said, shortlist or bundle.shortlist,
    )  # fmt: skip


def manifest_of(config: Config, model_config: ModelConfig) -> dict[str, Any]:
    """What each manifest says, whichever weights it is of."""
    return {
        "format": FORMAT,
        "dragoman": __version__,
        "src_lang": config.data.src_lang,
        "tgt_lang": config.data.tgt_lang,
        **({"pairs": [list(pair) for pair in config.data.pairs]} if config.data.tgt_langs else {}),
        "src_vocab_size": model_config.src_vocab_size,
        "tgt_vocab_size": model_config.tgt_vocab_size,
    }


def load_bundle(path: Path | str, device: str | torch.device = "cpu") -> Bundle:
    """Read a run's bundle, or a bundle itself, and check it against its manifest.

    Of a run that has no bundle yet the newest whole weights are read, of a checkpoint or of the best validation. Its
    manifest says ``unfinished`` and the step, and a message says so. What is replaced while it is read is read again.

    Args:
        path: A run folder (with ``bundle/`` inside) or a bundle folder.

    Raises:
        BundleError: There is none, it is damaged, or it was written by a newer dragoman.
    """
    path = Path(path)
    while True:
        before = _standing_now(path)
        try:
            bundle = _read_unfinished(path, device) if is_unfinished(path) else _read_bundle(find_bundle(path), device)
        except BundleError:
            if _standing_now(path) == before:
                raise
        else:
            if _standing_now(path) == before:  # otherwise its files may be of two
                return bundle


def is_unfinished(path: Path) -> bool:
    """Whether ``path`` is a run that has begun to train and has no bundle yet."""
    return not (standing(path / "bundle") / MANIFEST).is_file() and (path / "checkpoints").is_dir()


def _standing_now(path: Path) -> set[tuple[Path, int, int]]:
    """The folders that could be read, each as it stands: another one at its place is another folder, or a later one."""
    found = set()
    weights = (folder for folder in path.glob("checkpoints/*") if folder.suffix != ".tmp")
    for folder in (standing(path), standing(path / "bundle"), *weights):
        with contextlib.suppress(OSError):
            stat = folder.stat()
            found.add((folder, stat.st_ino, stat.st_mtime_ns))
    return found


def _read_bundle(folder: Path, device: str | torch.device) -> Bundle:
    """Read a bundle and check it against its manifest."""
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
    joint = is_joint(folder)
    for name in ("config.yaml", "model.safetensors", *(("joint.spm",) if joint else ("src.spm", "tgt.spm"))):
        if name not in manifest["files"] or not (folder / name).is_file():  # a pipe would never end
            raise BundleError(f"{folder / name}: missing from this bundle; copy it again or use another one")
    try:
        config = Config.from_yaml(folder / "config.yaml")
        model_config = _sizes(config, manifest["src_vocab_size"], manifest["tgt_vocab_size"])
    except (ConfigError, KeyError) as error:
        raise BundleError(f"{folder}: its configuration cannot be used ({error})") from None
    for name in ("train_pairs", "usual_src_tokens", "usual_src_sentences"):
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
    tokenizers = load_tokenizers(folder)
    if tuple(each.vocab_size for each in tokenizers) != (model_config.src_vocab_size, model_config.tgt_vocab_size):
        raise BundleError(f"{folder}: the subword models are not the ones this model was trained with")
    shortlist = None
    if shortlists.FILE in manifest["files"]:
        sizes = model_config.src_vocab_size, model_config.tgt_vocab_size
        shortlist = Shortlist.read(folder / shortlists.FILE, *sizes)
    return Bundle(config, _model(model_config, folder / "model.safetensors", device), *tokenizers, manifest, shortlist)


def _sizes(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> ModelConfig:
    return ModelConfig(**config.model.model_dump(), src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)


def _model(model_config: ModelConfig, path: Path, device: str | torch.device) -> EncoderDecoder:
    """The model with the weights of a file, ready to be used."""
    weights = read_weights(path, shapes(model_config))  # before anything large is allocated
    with WithoutInitialisation():
        model = build(model_config)
    adopt(model, weights)
    return model.to(device).eval()


def is_joint(folder: Path) -> bool:
    """Whether the subwords in a folder are for both sides."""
    return (folder / "joint.spm").is_file()


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers in a bundle or in the store of a run; one and the same object twice where they are joint.

    Raises:
        BundleError: They are missing or damaged.
    """
    if is_joint(folder):
        joint = Tokenizer.load(folder / "joint.spm")
        return joint, joint
    return Tokenizer.load(folder / "src.spm"), Tokenizer.load(folder / "tgt.spm")


def usual_facts(store: Store) -> dict[str, Any]:
    """What a bundle's manifest says of the lines that its model was trained on; of longer ones it leaves out a part.

    ``train_pairs``: how many pairs. ``usual_src_tokens``: subwords that 999 of 1,000 sources do not exceed.
    ``usual_src_sentences``: sentences that 95 of 100 do not exceed; not there for a store of an earlier dragoman, which
    did not count them.
    ``least_length_ratio``: target subwords for each source subword that 975 of 1,000 pairs have, of those that are long
    enough to tell.
    """
    lengths = store.src_lengths()
    facts: dict[str, Any] = {
        "train_pairs": len(store), "usual_src_tokens": int(np.quantile(lengths, 0.999, method="higher")),
    }  # fmt: skip
    long = lengths >= TELLING_TOKENS
    if long.any():
        ratios = store.tgt_lengths()[long] / lengths[long].astype(np.float32)
        facts["least_length_ratio"] = round(float(np.quantile(ratios, 0.025)), 4)
    counts = sorted(store.src_sentences.items())
    if counts:
        reached = np.cumsum([lines for _, lines in counts]) >= USUAL_SHARE * sum(lines for _, lines in counts)
        facts["usual_src_sentences"] = max(1, counts[int(reached.argmax())][0])
    return facts


def _read_unfinished(run: Path, device: str | torch.device) -> Bundle:
    """The newest whole weights of a run that has no bundle yet, as a bundle."""
    found = [(manifest["step"], folder, manifest) for folder, manifest in _whole(run / "checkpoints")]
    if not found:
        raise BundleError(
            f"{run}: nothing can be used yet; the first weights are there after the first validation or checkpoint, or "
            "when training is stopped (Ctrl-C)"
        )
    step, folder, manifest = max(found, key=lambda one: (one[0], one[1].name))  # step_... comes after best
    name = "ema.safetensors" if "ema.safetensors" in manifest["files"] else "model.safetensors"
    weights = manifest["files"][name]
    check_files(folder, "checkpoint", {"files": {name: weights}})
    config, tokenizers = Config.from_yaml(run / "config.yaml"), load_tokenizers(run / "store")
    facts = {
        "weights": f"step {step:,}, training not finished", "step": step, "unfinished": True,
        **usual_facts(Store.open(run / "store/train")),
        "files": {"model.safetensors": weights}, "sha256": manifest.get("sha256"),
    }  # fmt: skip
    model_config = _sizes(config, *(each.vocab_size for each in tokenizers))
    model = _model(model_config, folder / name, device)
    logger.info("%s: training is not finished; using the weights of step %s", run, f"{step:,}")
    return Bundle(config, model, *tokenizers, manifest_of(config, model_config) | facts)


def _whole(checkpoints: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folders of weights whose manifest is there and right; an older one stands beside its place, or a new one."""
    for folder in checkpoints.iterdir():
        with contextlib.suppress(BundleError):
            manifest = read_manifest(folder, "checkpoint")
            if "model.safetensors" in manifest["files"] and isinstance(manifest.get("step"), int):
                yield folder, manifest


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
    if not path.exists():
        raise BundleError(f"{path}: no such run; train one with `dragoman train`, or `dragoman demo`")
    raise BundleError(f"{path}: neither a run nor a bundle; name the folder of a run, such as runs/first")
