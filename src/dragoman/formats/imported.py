"""A foreign model as a run of ours: read by its format, checked against the model it is to be, written as a bundle.

    dragoman.import_model("opus-mt-en-de", "runs/opus")

The run holds ``bundle/`` alone. It can be translated with, scored, explained, fine-tuned, evaluated, exported, served.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.bundle import save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.data.corpus import read_lines
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError, ConfigError
from dragoman.files import explained, one_at_a_time
from dragoman.model.weights import shapes

logger = logging.getLogger(__name__)


class Imported(NamedTuple):
    """What a format has read: all that a bundle is made of."""

    config: Config
    model: ModelConfig
    weights: dict[str, Tensor]  # as ``model.weights.untied``
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    facts: dict[str, Any]  # what the manifest says of where it is from


def import_model(
    source: Path | str, out: Path | str, *, keep_pieces_of: Sequence[Path | str] = (),
    src_lang: str | None = None, tgt_lang: str | None = None,
) -> Path:  # fmt: skip
    """Make a run of a model of Hugging Face: a folder, or a name that huggingface_hub can download.

    Args:
        source: A folder with ``config.json``, weights, two ``.spm`` and ``vocab.json``; or a name such as
            ``Helsinki-NLP/opus-mt-en-de``.
        out: The run to write; it must not be there yet.
        keep_pieces_of: Texts of either language. If given, subwords that none of them has are left out, which makes
            the model smaller and faster; these texts are cut as before.
        src_lang, tgt_lang: Language codes; None: what the model says.

    Returns:
        ``out``.

    Raises:
        BundleError: The model is damaged, incomplete, or of a kind that cannot be held exactly.
        ConfigError: ``out`` is there already, or the name cannot be downloaded.
        DataError: A text cannot be read.
    """
    from dragoman.formats import from_huggingface

    run = Path(out)
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise ConfigError(f"{run}: already exists; choose another --out, or remove it")
    folder = Path(source) if Path(source).exists() else from_huggingface.download(str(source))
    texts = [line for path in keep_pieces_of for line in read_lines(path)]
    found = from_huggingface.read(folder, str(source), texts if keep_pieces_of else None, (src_lang, tgt_lang))
    _check(found, folder)
    with explained(run):
        run.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(run):
            save_bundle(
                run / "bundle", found.config, found.model, found.weights, found.src_tokenizer, found.tgt_tokenizer,
                found.facts,
            )  # fmt: skip
    return run


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
