"""A trained model on disk: all that translating, serving and exporting need; nothing is pickled.

bundle/
  config.yaml          the whole configuration of the run
  model.safetensors    weights under the names of the model's ``state_dict()``; of tied tensors only the first
  joint.spm            or src.spm and tgt.spm
  shortlist.ids        lexical shortlist: likely target subwords of each source subword (optional)
  words.hashes         words of the training sources: tells words that the model never saw (optional)
  manifest.json        format, languages, vocabulary sizes, which weights, sizes and SHA-256 of each file
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from dragoman import __version__
from dragoman.config import Config, ModelConfig
from dragoman.data import seen_words
from dragoman.data import shortlist as shortlists
from dragoman.data.seen_words import SeenWords
from dragoman.data.shortlist import Shortlist
from dragoman.data.store import Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError, UnreadableError
from dragoman.files import MANIFEST, check_files, own_place, read_manifest, sealed_folder, standing, unreadable
from dragoman.options import refusals
from dragoman.ready import NAMES, run_folder

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dragoman.model.build import EncoderDecoder

logger = logging.getLogger(__name__)

FORMAT = 1

USUAL_SHARE = 0.95
"""Fraction of the training sources that have at most ``usual_src_sentences`` sentences."""

READY = ", ".join(NAMES)
"""Names of the ready bundles, for messages."""

TELLING_TOKENS = 8
"""Shortest source, in subwords, that counts for ``least_length_ratio``."""


@dataclass(frozen=True, kw_only=True)
class Fast:
    """Settings of ``--fast`` that a distillation chose on validation text; None: the run's own."""

    beam_size: int | None = None
    shortlist: bool = True


Count = Annotated[int | None, Field(strict=True, ge=1)]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of a manifest about a model and its training text; an unknown fact has its default."""

    weights: str = ""  # in words, such as "average of 5 checkpoints"
    step: Annotated[int | None, Field(strict=True)] = None  # number of updates
    unfinished: bool = False  # training is still running, or was interrupted
    validation: dict[str, float] = field(default_factory=dict)  # loss, bleu, chrf, f1
    signatures: dict[str, str] = field(default_factory=dict)  # of sacreBLEU
    train_pairs: Count = None
    usual_src_tokens: Count = None  # 999 of 1,000 training sources have no more; translations of longer ones lose parts
    least_length_ratio: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 0.0  # see facts_of_text
    usual_src_sentences: Count = None  # 95 of 100 training sources have no more
    masks: str | None = None  # form of the masks that the model has learned, such as [{}]
    confidence: dict[str, Any] | None = None  # numbers of translation.confidence.Confidence
    fast: Fast = Fast()
    stored: Literal["float32", "int8"] = "float32"  # int8: matrices are integers with a scale for each row
    parent: dict[str, Any] = field(default_factory=dict)  # the run that it was fine-tuned from
    sha256: str | None = None  # of the manifest
    dragoman: str = ""  # version that wrote the bundle

    @classmethod
    def of(cls, manifest: Mapping[str, Any], where: object = "the bundle") -> Self:
        """Read a manifest, whose ``from`` is the ``parent``.

        Raises:
            BundleError: A fact has an impossible value; the message begins with ``where``, the folder.
        """
        named = {**manifest, "parent": manifest.get("from", {})}
        known = {fact.name: named[fact.name] for fact in fields(cls) if fact.name in named}
        nulls = [f"{name} must be a value, got null" for name, fact in known.items() if fact is None]
        try:
            if not nulls:
                return cls(**known)
            wrong = "; ".join(nulls)
        except ValidationError as error:
            wrong = refusals(error.errors(include_url=False), ".".join)
        raise BundleError(f"{where}: {wrong} in its manifest; copy it again or take another one")

    def as_manifest(self) -> dict[str, Any]:
        """Return the known facts under their names in a manifest."""
        known, unknown = asdict(self), asdict(type(self)())
        return {"from" if name == "parent" else name: fact for name, fact in known.items() if fact != unknown[name]}


class StoredModel:
    """A model whose weights are read when they are first needed; without them torch, which is slow, is not imported.

    The file stays open until then: so the weights are those that the bundle had when it was opened, even if another
    one has taken its place. If the file itself was changed, it is refused.
    """

    def __init__(
        self, config: ModelConfig, path: Path, device: str | torch.device, *, is_rounded: bool = False
    ) -> None:
        """Open the file of the weights.

        Args:
            is_rounded: True if its matrices are stored as 8-bit integers.

        Raises:
            UnreadableError: The file cannot be opened.
        """
        self.config, self._device, self._path, self._is_rounded = config, device, path, is_rounded
        self._model: EncoderDecoder | None = None
        self._calls: list[Callable[[EncoderDecoder], object]] = []
        self._lock = threading.Lock()
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(path, error) from error
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._state = self._state_now()

    def _state_now(self) -> tuple[int, int]:
        """Return size and time of the open file, which differ once it is changed."""
        stat = os.fstat(self._descriptor)
        return stat.st_size, stat.st_mtime_ns

    @property
    def is_read(self) -> bool:
        """True once the weights are in memory."""
        return self._model is not None

    @property
    def device_type(self) -> str:
        """Kind of the device that the model is for, ``cpu`` or ``cuda``."""
        return str(self._device).partition(":")[0]

    def read(self) -> EncoderDecoder:
        """Return the model with these weights, in evaluation mode; the same one each time.

        Raises:
            BundleError: The weights do not fit the configuration, or were changed meanwhile.
            UnreadableError: They cannot be read now.
        """
        if self._model is not None:
            return self._model
        import torch

        from dragoman.model.build import build
        from dragoman.model.weights import (
            WithoutInitialisation,
            adopt,
            read_weights,
            restored,
            rounded,
            shapes,
        )

        # the first to need them may be in inference mode, and weights made in it can never be trained
        with self._lock, torch.inference_mode(False):
            if self._model is None:
                expected = shapes(self.config)
                # before anything large is allocated
                expected = rounded(expected) if self._is_rounded else expected
                weights = read_weights(self._path, expected, self._descriptor)
                with WithoutInitialisation():
                    model = build(self.config)
                adopt(model, restored(weights) if self._is_rounded else weights)
                if self._state_now() != self._state:
                    raise BundleError(f"{self._path}: was changed after it was opened; load the bundle again")
                model = model.to(self._device).eval()
                for call in self._calls:
                    call(model)
                self._model, self._calls = model, []
                self._close()
            return self._model

    def when_read(self, call: Callable[[EncoderDecoder], object]) -> None:
        """Call a function with the model when it is read, before anybody can change it; at once if it is."""
        with self._lock:
            if self._model is None:
                self._calls.append(call)
                return
        call(self._model)

    def __reduce__(self) -> Any:
        """Pickle the model itself."""
        return _itself, (self.read(),)


def _itself(model: EncoderDecoder) -> EncoderDecoder:
    return model


class Bundle(NamedTuple):
    """A trained model and what it was trained with."""

    config: Config
    weights: EncoderDecoder | StoredModel
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    manifest: dict[str, Any]
    shortlist: Shortlist | None = None
    words: SeenWords | None = None

    @property
    def facts(self) -> Facts:
        """Facts of the manifest, with types."""
        return Facts.of(self.manifest)

    @property
    def model(self) -> EncoderDecoder:
        """The model; its weights are read now if they were not yet: see ``StoredModel.read`` for the errors."""
        return self.weights.read() if isinstance(self.weights, StoredModel) else self.weights

    @property
    def sizes(self) -> ModelConfig:
        """Configuration of the model with its vocabulary sizes; reads no weights."""
        return self.weights.config

    @property
    def is_read(self) -> bool:
        """True if the weights are in memory."""
        return not isinstance(self.weights, StoredModel) or self.weights.is_read

    @property
    def device_type(self) -> str:
        """Kind of the device of the weights, ``cpu`` or ``cuda``; reads no weights."""
        if isinstance(self.weights, StoredModel) and not self.weights.is_read:
            return self.weights.device_type
        return next(self.model.parameters()).device.type

    @property
    def n_bytes(self) -> int:
        """Size of the weights on disk, in bytes."""
        from dragoman.model.weights import n_bytes, untied

        return n_bytes(untied(self.model))


class Tables(NamedTuple):
    """Tables that were learned from the training text, and that a bundle may do without."""

    shortlist: Shortlist | None = None
    words: SeenWords | None = None


def save_bundle(
    folder: Path, config: Config, model_config: ModelConfig, weights: Mapping[str, Tensor],
    src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, facts: Mapping[str, Any], tables: Tables | None = None,
) -> None:  # fmt: skip
    """Write a bundle in one step; ``facts`` (which weights, steps, scores) go into the manifest.

    Raises:
        DragomanError: The folder cannot be written.
    """
    from dragoman.model.weights import n_bytes, rounded, save_weights

    named = {"normalisation": src_tokenizer.normalisation} if src_tokenizer.composes else {}
    weights = rounded(weights) if facts.get("stored") == "int8" else weights
    with sealed_folder(folder, manifest_of(config, model_config) | named | dict(facts), n_bytes(weights)) as aside:
        (aside / "config.yaml").write_text(config.to_yaml(), encoding="utf-8")
        save_weights(aside / "model.safetensors", weights)
        if src_tokenizer.shares_pieces(tgt_tokenizer):
            src_tokenizer.save(aside / "joint.spm")
        else:
            src_tokenizer.save(aside / "src.spm")
            tgt_tokenizer.save(aside / "tgt.spm")
        if tables is not None and tables.shortlist is not None:
            tables.shortlist.write(aside / shortlists.FILE, model_config.tgt_vocab_size)
        if tables is not None and tables.words is not None:
            tables.words.write(aside / seen_words.FILE)


_OF_WRITING = ("files", "sha256", "dragoman")
"""Entries of a manifest that are made again whenever a bundle is written."""


def amend_bundle(path: Path, shortlist: Shortlist | None = None, *, of: str | None = None, **facts: Any) -> None:
    """Replace the bundle of a run by one that also has a shortlist, or ``facts`` in its manifest.

    Args:
        of: SHA-256 of the bundle that these belong to.

    Raises:
        BundleError: There is none, it is damaged, or another one has taken its place.
        DragomanError: The folder cannot be written.
    """
    from dragoman.model.weights import untied

    bundle = load_bundle(path)
    if of is not None and bundle.facts.sha256 != of:
        raise BundleError(f"{path}: another bundle has taken its place meanwhile, so nothing was stored; do it again")
    manifest = {name: fact for name, fact in bundle.manifest.items() if name not in _OF_WRITING} | facts
    tables = Tables(shortlist=shortlist or bundle.shortlist, words=bundle.words)
    save_bundle(
        own_place(find_bundle(path)), bundle.config, bundle.sizes, untied(bundle.model), bundle.src_tokenizer,
        bundle.tgt_tokenizer, manifest, tables,
    )  # fmt: skip


def manifest_of(config: Config, model_config: ModelConfig) -> dict[str, Any]:
    """Return the part of a manifest that does not depend on the weights."""
    return {
        "format": FORMAT,
        "dragoman": __version__,
        "src_lang": config.data.src_lang,
        "tgt_lang": config.data.tgt_lang,
        **({"pairs": [list(pair) for pair in config.data.pairs]} if config.data.tgt_langs else {}),
        "src_vocab_size": model_config.src_vocab_size,
        "tgt_vocab_size": model_config.tgt_vocab_size,
    }


def load_bundle(path: Path | str, device: str | torch.device = "cpu", *, read: bool = True) -> Bundle:
    """Read a run's bundle, or a bundle itself, and check it against its manifest.

    For a run without a bundle, read its newest complete weights (checkpoint or best validation). Its manifest then has
    ``unfinished`` and the step, and a message is logged. A folder that is replaced meanwhile is read again.

    Args:
        path: A run folder (with ``bundle/`` inside), a bundle folder, or the name of a ready bundle; see ``ready``.
        read: False leaves the weights in their file, whose sum is compared, until they are needed: ``StoredModel``.

    Raises:
        BundleError: There is none, it is damaged, or it was written by a newer dragoman.
        UnreadableError: A file of it cannot be read now.
    """
    path = run_folder(path)
    while True:
        before = _standing_now(path)
        try:
            bundle = (
                _read_unfinished(path, device) if is_unfinished(path) else _read_bundle(find_bundle(path), device, read)
            )
        except (BundleError, UnreadableError):
            if _standing_now(path) == before:
                raise
        else:
            # if the folder was replaced meanwhile, the files may be of two bundles
            if _standing_now(path) == before:
                return bundle


def is_unfinished(path: Path) -> bool:
    """True if ``path`` is a run that has begun to train and has no bundle yet."""
    return not (standing(path / "bundle") / MANIFEST).is_file() and (path / "checkpoints").is_dir()


def _standing_now(path: Path) -> set[tuple[Path, int, int]]:
    """Return path, inode and time of each folder that could be read; they differ once a folder is replaced."""
    states = set()
    weights = (folder for folder in path.glob("checkpoints/*") if folder.suffix != ".tmp")
    for folder in (standing(path), standing(path / "bundle"), *weights):
        with contextlib.suppress(OSError):
            stat = folder.stat()
            states.add((folder, stat.st_ino, stat.st_mtime_ns))
    return states


def _read_bundle(folder: Path, device: str | torch.device, read: bool) -> Bundle:
    """Read a bundle and check it against its manifest."""
    manifest = read_manifest(folder, "bundle")
    with ThreadPoolExecutor(1) as beside:
        checked = beside.submit(check_files, folder, "bundle", manifest)
        try:
            bundle = _read(folder, manifest, device)
            if read:
                bundle = bundle._replace(weights=bundle.model)
        finally:
            checked.result()  # its error, which names the damaged file, comes first
    return bundle


def _read(folder: Path, manifest: dict[str, Any], device: str | torch.device) -> Bundle:
    """Read the files of a bundle, without checking their hashes."""
    if "format" not in manifest:
        raise BundleError(
            f"{folder}: a checkpoint, not a bundle (a run writes its bundle when it ends): give the run folder"
        )
    if manifest["format"] != FORMAT or isinstance(manifest["format"], bool):
        raise BundleError(f"{folder}: bundle format {manifest['format']!r}, this dragoman reads {FORMAT}: upgrade it")
    joint = is_joint(folder)
    for name in ("config.yaml", "model.safetensors", *(("joint.spm",) if joint else ("src.spm", "tgt.spm"))):
        if name not in manifest["files"] or not (folder / name).is_file():  # nor a pipe, which would block
            raise BundleError(f"{folder / name}: missing from this bundle; copy it again or use another one")
    try:
        config = Config.from_yaml(folder / "config.yaml")
        model_config = _sizes(config, manifest["src_vocab_size"], manifest["tgt_vocab_size"])
    except (ConfigError, KeyError) as error:
        raise BundleError(f"{folder}: its configuration cannot be used ({error})") from None
    facts = Facts.of(manifest, folder)
    tokenizers = load_tokenizers(folder)
    vocab_sizes = tuple(tokenizer.vocab_size for tokenizer in tokenizers)
    if vocab_sizes != (model_config.src_vocab_size, model_config.tgt_vocab_size):
        raise BundleError(f"{folder}: the subword models are not the ones this model was trained with")
    shortlist = None
    if shortlists.FILE in manifest["files"]:
        sizes = model_config.src_vocab_size, model_config.tgt_vocab_size
        shortlist = Shortlist.read(folder / shortlists.FILE, *sizes)
    words = SeenWords.read(folder / seen_words.FILE) if seen_words.FILE in manifest["files"] else None
    weights = StoredModel(model_config, folder / "model.safetensors", device, is_rounded=facts.stored == "int8")
    return Bundle(config, weights, *tokenizers, manifest, shortlist, words)


def _sizes(config: Config, src_vocab_size: int, tgt_vocab_size: int) -> ModelConfig:
    return ModelConfig(**config.model.model_dump(), src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size)


def is_joint(folder: Path) -> bool:
    """True if a folder has one subword model for both sides."""
    return (folder / "joint.spm").is_file()


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Return the source and target tokenizer of a bundle or of a run's store; a joint one with the rules of each side.

    Raises:
        BundleError: They are missing or damaged.
    """
    if is_joint(folder):
        joint = Tokenizer.load(folder / "joint.spm")
        return joint, joint.for_targets
    return Tokenizer.load(folder / "src.spm"), Tokenizer.load(folder / "tgt.spm")


def facts_of_text(store: Store) -> Facts:
    """Return facts about the text that a model is trained on: that of corpora with a weight above 0.

    ``least_length_ratio``: 975 of 1,000 pairs with sources of ``TELLING_TOKENS`` or more have at least so many target
    subwords for each source subword. Stores of an earlier dragoman did not count sentences.
    """
    drawn = store.drawn()
    lengths = store.src_lengths()[drawn]
    facts = Facts(train_pairs=len(lengths), usual_src_tokens=int(np.quantile(lengths, 0.999, method="higher")))
    long = lengths >= TELLING_TOKENS
    if long.any():
        ratios = store.tgt_lengths()[drawn][long] / lengths[long].astype(np.float32)
        facts = replace(facts, least_length_ratio=round(float(np.quantile(ratios, 0.025)), 4))
    counts = sorted(store.src_sentences.items())
    if counts:
        reached = np.cumsum([lines for _, lines in counts]) >= USUAL_SHARE * sum(lines for _, lines in counts)
        facts = replace(facts, usual_src_sentences=max(1, counts[int(reached.argmax())][0]))
    return facts


def _read_unfinished(run: Path, device: str | torch.device) -> Bundle:
    """Return the newest complete weights of a run without a bundle, as a bundle."""
    candidates = [(manifest["step"], folder, manifest) for folder, manifest in _whole(run / "checkpoints")]
    if not candidates:
        raise BundleError(
            f"{run}: nothing can be used yet; the first weights are there after the first validation or checkpoint, or "
            "when training is stopped (Ctrl-C)"
        )
    # of the same step, the checkpoint step_... comes after best
    step, folder, manifest = max(candidates, key=lambda candidate: (candidate[0], candidate[1].name))
    name = "ema.safetensors" if "ema.safetensors" in manifest["files"] else "model.safetensors"
    weights = manifest["files"][name]
    check_files(folder, "checkpoint", {"files": {name: weights}})
    config, tokenizers = Config.from_yaml(run / "config.yaml"), load_tokenizers(run / "store")
    facts = replace(
        facts_of_text(Store.open(run / "store/train")), weights=f"step {step:,}, training not finished", step=step,
        unfinished=True, sha256=manifest.get("sha256"),
    )  # fmt: skip
    model_config = _sizes(config, *(tokenizer.vocab_size for tokenizer in tokenizers))
    manifest_now = {**manifest_of(config, model_config), **facts.as_manifest(), "files": {"model.safetensors": weights}}
    model = StoredModel(model_config, folder / name, device).read()
    logger.info("%s: training is not finished; using the weights of step %s", f"{run}", f"{step:,}")
    return Bundle(config, model, *tokenizers, manifest_now)


def _whole(checkpoints: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folders of complete weights with their manifests; also folders that are just being replaced."""
    for folder in checkpoints.iterdir():
        with contextlib.suppress(BundleError):
            manifest = read_manifest(folder, "checkpoint")
            if "model.safetensors" in manifest["files"] and isinstance(manifest.get("step"), int):
                yield folder, manifest


def find_bundle(path: Path) -> Path:
    """Return the bundle folder of a run, ``path`` itself if it is a bundle, or the folder of the ready bundle it names.

    Raises:
        BundleError: It is neither.
    """
    path = run_folder(path)
    bundle, path = standing(path / "bundle"), standing(path)
    if (bundle / MANIFEST).is_file():
        return bundle
    if (path / MANIFEST).is_file() and (path / "model.safetensors").is_file():
        return path
    if not path.exists():
        raise BundleError(f"{path}: no such run; train one with `dragoman train`, or take a ready one: {READY}")
    if f"{path}" in NAMES:
        raise BundleError(f"{path}: neither a run nor a bundle, but it hides the ready bundle of that name; rename it")
    raise BundleError(f"{path}: neither a run nor a bundle; name the folder of a run, such as runs/first")
