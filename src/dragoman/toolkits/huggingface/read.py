"""Read a model of Hugging Face: Marian (``Helsinki-NLP/opus-mt-*``), or an export of ``write.py``.

This is the inverse of ``write.py``, with the same parameters and order of channels. ``subwords.py`` rewrites ids and
subwords. OPUS-MT begins a translation with its padding, whose row is zero: it becomes our bos. Its padding and pieces
missing in its list can never be chosen: they get a bias of -10,000, so that the softmax is Marian's.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.data.sentencepiece_check import Parts
from dragoman.errors import BundleError, listing
from dragoman.model.weights import read_weights
from dragoman.options import either
from dragoman.toolkits.generation import ordered_search
from dragoman.toolkits.huggingface.write import EPSILON, order, parameters
from dragoman.toolkits.reading import (
    Imported,
    facts_of,
    order_of_sinusoids,
    read_bytes,
    read_object,
    shown,
    whole_number,
)
from dragoman.toolkits.subwords import (
    SPECIAL,
    Vocabulary,
    check_belongs,
    folded,
    needed,
    numbered,
    read_model,
    tokenizers,
    vocabulary,
)

logger = logging.getLogger(__name__)

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
SIDES = ("encoder", "decoder")
UNKNOWN = SPECIAL[1][0]
WANTED = "a Marian model of Hugging Face has it"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class SmallFiles(NamedTuple):
    """Contents of the files of a model that hold no weights."""

    config: dict[str, Any]  # of ``config.json``
    models: list[Parts]  # SentencePiece models of source and target
    lists: list[list[str]]  # pieces of both sides, or of each
    vocabularies: list[Vocabulary]
    search: dict[str, Any]  # section ``decode`` of a run


def read(folder: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None]) -> Imported:
    """Read a folder; see ``toolkit.Reader``."""
    _refuse_onnx(folder)
    small = small_files(folder, texts)
    theirs, lists, vocabularies = small.config, small.lists, small.vocabularies
    src, tgt = tokenizers(small.models, vocabularies, f"{folder}")
    raw, digest = _weights(folder)
    tables = _tables(theirs, lists)
    _refuse_other_tables(tables, raw, folder)
    bias = vocabularies[-1].bias(_bias(raw), f"{folder}: final_logits_bias")
    variant = dict(
        positions=_positions(raw), generator_bias=bias is not None,
        share_embeddings=_share_embeddings(folder, theirs, raw, len(lists) == 1),
    )  # fmt: skip
    src_lang, tgt_lang = _languages(folder, languages)
    data = dict(src_lang=src_lang, tgt_lang=tgt_lang, tokenizer=dict(joint=len(lists) == 1))
    config = _config(folder, theirs, variant, data, small.search)
    model = ModelConfig(**config.model.model_dump(), src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    if unread := raw.keys() - {parameter.theirs for parameter in parameters(model)} - tables.keys():
        raise BundleError(f"{folder}: the weights have {listing(unread)}, which its configuration has not")
    weights = _renamed(model, raw, vocabularies, folder)
    if bias is not None:
        weights["generator.bias"] = bias
    return Imported(config, model, weights, src, tgt, facts_of(name, theirs["model_type"], digest, small.models))


def small_files(folder: Path, texts: Sequence[str] | None = None) -> SmallFiles:
    """Read all of a folder but its weights.

    Raises:
        BundleError: A file is missing or damaged, or the model is of a kind that cannot be held exactly.
    """
    theirs = read_object(folder / "config.json", WANTED)
    _refuse_what_is_not_held(theirs, folder)
    paths = [folder / f"{side}.spm" for side in ("source", "target")]
    models = [read_model(read_bytes(path, WANTED), f"{path}") for path in paths]
    first = folder / "vocab.json"
    second = folder / "target_vocab.json"
    lists = folded([_listed(first), *([_listed(second)] if second.is_file() else [])])
    for path, spm, listed in zip(paths, models, (lists[0], lists[-1]), strict=True):
        check_belongs(spm, listed, f"{path}")
    pieces = None if texts is None else needed(models, texts)
    vocabularies = _vocabularies(theirs, lists, models, pieces, folder)
    never = (theirs["pad_token_id"], theirs["decoder_start_token_id"], lists[-1].index(UNKNOWN))
    return SmallFiles(theirs, models, lists, vocabularies, ordered_search(folder, theirs, never, WANTED))


def _refuse_onnx(folder: Path) -> None:
    """Refuse a folder that has graphs of ONNX in place of weights."""
    has_weights = any((folder / file).is_file() for name in WEIGHTS for file in (name, index_of(name)))
    graphs = [path.name for path in folder.glob("*.onnx")]
    if graphs and not has_weights:
        raise BundleError(
            f"{folder}: is a model of ONNX ({listing(graphs)}), which cannot be imported; "
            "import the weights that it was made from"
        )


def _refuse_what_is_not_held(theirs: Mapping[str, Any], folder: Path) -> None:
    """Refuse by name each setting that our model does not support."""
    kind = theirs.get("model_type")
    if kind not in ("marian", "pegasus"):
        raise BundleError(f"{folder}: its model_type is {shown(kind)}; only marian and pegasus can be imported")
    whole = ("d_model", "vocab_size", "encoder_layers", "decoder_layers", "encoder_attention_heads", "encoder_ffn_dim",
             "decoder_attention_heads", "decoder_ffn_dim", "pad_token_id", "eos_token_id", "decoder_start_token_id",
             "max_position_embeddings")  # fmt: skip
    for name in whole:
        whole_number(theirs.get(name), f"{folder}/config.json: {name}")
    if theirs.get("decoder_vocab_size") is not None:
        whole_number(theirs["decoder_vocab_size"], f"{folder}/config.json: decoder_vocab_size")
    for name in ("normalize_embedding", "normalize_before", "add_final_layer_norm", "add_bias_logits"):
        if theirs.get(name) and kind == "marian":
            raise BundleError(f"{folder}/config.json: {name} = true is not supported")
    if theirs.get("static_position_embeddings") is False:
        raise BundleError(f"{folder}/config.json: static_position_embeddings = false is not supported")
    for name in ("attention_heads", "ffn_dim"):
        both = theirs[f"encoder_{name}"], theirs[f"decoder_{name}"]
        if both[0] != both[1]:
            raise BundleError(f"{folder}/config.json: {name} of encoder and decoder differ ({both[0]} and {both[1]})")
    for name in ("scale_embedding", "tie_word_embeddings", "share_encoder_decoder_embeddings"):
        if type(theirs.get(name, True)) is not bool:
            raise BundleError(f"{folder}/config.json: {name} = {shown(theirs[name])} should be true or false")
    if theirs.get("activation_function") not in tuple(ACTIVATIONS):
        name = shown(theirs.get("activation_function"))
        raise BundleError(f"{folder}/config.json: activation_function must be {either(ACTIVATIONS)}, got {name}")


def _listed(path: Path) -> list[str]:
    """Return the pieces of a vocabulary file in the order of their ids."""
    return numbered(read_object(path, WANTED), f"{path}")


def _vocabularies(
    theirs: Mapping[str, Any],
    lists: Sequence[list[str]],
    models: Sequence[Parts],
    kept_pieces: frozenset[str] | None,
    folder: Path,
) -> list[Vocabulary]:
    """Return one vocabulary for both sides, or one for each; refuse lists that do not fit the configuration."""
    sizes = (theirs["vocab_size"], theirs.get("decoder_vocab_size") or theirs["vocab_size"])
    vocabularies = []
    for i, listed in enumerate(lists):
        if len(listed) != sizes[i]:
            raise BundleError(
                f"{folder}: its vocabulary has {len(listed):,} pieces, its configuration says {sizes[i]:,}"
            )
        if UNKNOWN not in listed:
            raise BundleError(f"{folder}: its vocabulary has no {UNKNOWN}")
        special = (
            theirs["pad_token_id"],
            listed.index(UNKNOWN),
            theirs["decoder_start_token_id"],
            theirs["eos_token_id"],
        )
        if max(special) >= len(listed):
            raise BundleError(f"{folder}/config.json: a special id is {max(special):,}, beyond {len(listed):,} pieces")
        own_models = models if len(lists) == 1 else [models[i]]
        vocabularies.append(vocabulary(listed, special, own_models, kept_pieces))
    return vocabularies


def _weights(folder: Path) -> tuple[dict[str, Tensor], str]:
    """Return all tensors in float32, and the SHA-256 of their file, or of their files one after the other."""
    tensors: dict[str, Tensor] = {}
    digest = hashlib.sha256()
    for path in _weight_files(folder):
        of_file = read_weights(path) if path.suffix == ".safetensors" else _unpickled(path)
        for name, tensor in of_file.items():
            if not tensor.is_floating_point() or tensor.layout != torch.strided:
                raise BundleError(f"{path}: {name[:60]} is no array of floats ({tensor.dtype}, {tensor.layout})")
            if name in tensors:
                raise BundleError(f"{path}: {name[:60]} is in another file of the weights too")
            tensors[name] = tensor.float()
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return tensors, digest.hexdigest()


def _weight_files(folder: Path) -> list[Path]:
    """Return the one file of the weights, or the files that an index lists."""
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / index_of(name)
        if index.is_file():
            placed = read_object(index, WANTED).get("weight_map")
            files = placed.values() if isinstance(placed, dict) else []
            if not files or not all(isinstance(file, str) and Path(file).name == file for file in files):
                raise BundleError(f"{index}: its weight_map should name a file in this folder for each tensor")
            return [folder / file for file in sorted(set(files))]
    raise BundleError(f"{folder}: neither {' nor '.join(WEIGHTS)} is there, and no index of their parts")


def index_of(weights: str) -> str:
    """Return the name of the index that lists the file of each tensor, of weights in several files."""
    return f"{weights}.index.json"


def _unpickled(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a ``.bin``; pickled code is never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions of pickle
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of any kind: the file may hold anything
        raise BundleError(
            f"{path}: cannot be read as weights ({type(error).__name__}); it must hold tensors alone"
        ) from None
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in tensors.items()
    ):
        raise BundleError(f"{path}: holds something other than tensors")
    return tensors


def _refuse_other_tables(tables: Mapping[str, tuple[int, int]], raw: Mapping[str, Tensor], folder: Path) -> None:
    """Check that the tables have as many rows and columns as there are pieces, positions and channels."""
    for name, size in tables.items():
        if name in raw and tuple(raw[name].shape) != size:
            raise BundleError(
                f"{folder}: {name} is {tuple(raw[name].shape)}, but its vocabulary and configuration say {size}"
            )


def _tables(theirs: Mapping[str, Any], lists: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    """Return name and size of each tensor outside the two stacks; a file may hold tied ones several times."""
    src, tgt, width, rows = len(lists[0]), len(lists[-1]), theirs["d_model"], theirs["max_position_embeddings"]
    return {
        "model.shared.weight": (src, width), "lm_head.weight": (tgt, width), "final_logits_bias": (1, tgt),
        "model.encoder.embed_tokens.weight": (src, width), "model.decoder.embed_tokens.weight": (tgt, width),
        **{f"model.{side}.embed_positions.weight": (rows, width) for side in SIDES},
    }  # fmt: skip


def _share_embeddings(folder: Path, theirs: Mapping[str, Any], raw: Mapping[str, Tensor], one_list: bool) -> str:
    """Return the setting ``share_embeddings``; refuse weights that lack a table which is tied to no other."""
    tied = theirs.get("tie_word_embeddings", True)
    shared = theirs.get("share_encoder_decoder_embeddings", True) if theirs["model_type"] == "marian" else tied
    decoder = raw.get("model.decoder.embed_tokens.weight")
    head = raw.get("lm_head.weight")
    own = {"lm_head.weight": not tied, **{f"model.{side}.embed_tokens.weight": not shared for side in SIDES}}
    if lacking := [name for name, is_own in own.items() if is_own and name not in raw]:
        raise BundleError(f"{folder}: the weights lack {lacking[0]}, and its configuration ties it to no other")
    # The configuration does not tell whether the generator is tied to the decoder's own table: compare the values.
    if not (one_list and shared):
        shared = False
        tied = tied and (head is None or (decoder is not None and torch.equal(head, decoder)))
    return "all" if shared and tied else "decoder" if tied else "none"


def _languages(folder: Path, chosen: tuple[str | None, str | None]) -> Iterator[str | None]:
    """Yield source and target language: the chosen ones, or those of the tokenizer."""
    path = folder / "tokenizer_config.json"
    about = read_object(path, WANTED) if path.is_file() else {}
    for lang, side in zip(chosen, ("source", "target"), strict=True):
        yield lang or about.get(f"{side}_lang") or None


def _config(
    folder: Path, theirs: Mapping[str, Any], variant: dict[str, Any], data: dict[str, Any], search: dict[str, Any]
) -> Config:
    """Return the configuration of the run."""
    limit = theirs["max_position_embeddings"]
    return Config.from_mapping(
        {
            "model": dict(
                d_model=theirs["d_model"], d_ff=theirs["encoder_ffn_dim"], n_heads=theirs["encoder_attention_heads"],
                n_encoder_layers=theirs["encoder_layers"], n_decoder_layers=theirs["decoder_layers"],
                norm="post" if theirs["model_type"] == "marian" else "pre", max_len=limit, norm_eps=EPSILON,
                activation=ACTIVATIONS[theirs["activation_function"]],
                scale_embeddings=bool(theirs.get("scale_embedding", False)),
                **variant, **{name: theirs[name] for name in DROPOUTS if name in theirs},
            ),
            "data": dict(
                train={"src": "imported.src", "tgt": "imported.tgt"}, max_tokens=max(1, min(256, limit - 1)), **data,
            ),
            "decode": search,
        },
        f"{folder}/config.json",
    )  # fmt: skip


def _positions(raw: Mapping[str, Tensor]) -> str:
    """Return the kind of positions: sinusoidal, unless a table is not all sines, then all cosines."""
    tables = [raw.get(f"model.{side}.embed_positions.weight") for side in SIDES]
    return "sinusoidal" if all(table is None or _has_sines_first(table) for table in tables) else "learned"


def _has_sines_first(table: Tensor) -> bool:
    """True if a table holds the paper's sinusoids in the order of ``write.order``."""
    found, channels = order_of_sinusoids(table), torch.arange(table.size(1))
    return found is not None and torch.equal(found, torch.cat((channels[0::2], channels[1::2])))


def _bias(raw: Mapping[str, Tensor]) -> Tensor | None:
    """Return the generator's bias; None if it is zero."""
    bias = raw.get("final_logits_bias")
    return bias.flatten() if bias is not None and bool(bias.any()) else None


def _renamed(
    model: ModelConfig,
    raw: Mapping[str, Tensor],
    vocabularies: Sequence[Vocabulary],
    folder: Path,
) -> dict[str, Tensor]:
    """Return their tensors under our names, with channels and rows in our order."""
    back = order(model).argsort()

    def first_of(*names: str) -> Tensor:
        tensor = next((raw[name] for name in names if name in raw), None)
        if tensor is None:
            raise BundleError(f"{folder}: the weights lack {names[0]}; copy it again")
        return tensor

    def reordered(tensor: Tensor, axis: int, what: str) -> Tensor:
        if tensor.dim() <= axis or tensor.size(axis) != model.d_model:
            raise BundleError(
                f"{folder}: {what} is {tuple(tensor.shape)}, but its configuration says d_model = {model.d_model}"
            )
        return tensor.index_select(axis, back)

    weights = {}
    for parameter in parameters(model):
        tensor, name = first_of(parameter.theirs), parameter.theirs
        tensor = reordered(tensor, 0, name) if parameter.rows else tensor
        weights[parameter.ours] = (reordered(tensor, 1, name) if parameter.columns else tensor).contiguous()
    shared = "model.shared.weight"
    src, tgt = ("model.encoder.embed_tokens.weight", shared), ("model.decoder.embed_tokens.weight", shared)
    names = {"src_embed": src, "tgt_embed": tgt, "generator": ("lm_head.weight", *tgt)}
    untied = {"all": ("src_embed",), "decoder": ("src_embed", "tgt_embed"), "none": tuple(names)}
    for name in untied[model.share_embeddings]:
        own = vocabularies[0 if name == "src_embed" else -1]
        table = reordered(first_of(*names[name]), 1, names[name][0])
        weights[f"{name}.weight"] = own.take(table, f"{folder}: {names[name][0]}")
    if model.positions == "learned":
        for side, letters in (("encoder", "src"), ("decoder", "tgt")):
            weights[f"{letters}_positions.weight"] = first_of(f"model.{side}.embed_positions.weight").contiguous()
    return weights
