"""Read a model of CTranslate2: the inverse of ``write.py``.

It is a folder written by https://github.com/OpenNMT/CTranslate2, version 1.20 or later, with its SentencePiece models.
Every variable of ``model.bin`` is either read or refused by name, so that no part of a model is dropped silently.
Quantized matrices are multiplied out: an int8 row is its numbers divided by its scale.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.config import Config, DecodeConfig, ModelConfig
from dragoman.errors import BundleError, listing
from dragoman.files import MANIFEST
from dragoman.toolkits.ctranslate2.model_bin import SINCE_CONFIG, Variables
from dragoman.toolkits.ctranslate2.write import ACTIVATIONS
from dragoman.toolkits.huggingface.write import parameters
from dragoman.toolkits.reading import Imported, facts_of, order_of_sinusoids, read_bytes, read_object, shown
from dragoman.toolkits.subwords import (
    Vocabulary,
    check_belongs,
    check_pieces,
    folded,
    needed,
    read_model,
    tokenizers,
    vocabulary,
)

logger = logging.getLogger(__name__)

ACTIVATION_CODES = {0: "RELU", 1: "GELUTanh", 2: "SWISH", 3: "GELU", 4: "GELUSigmoid", 5: "Tanh", 6: "Sigmoid"}
EPSILON = 1e-5  # epsilon of its norms, where its configuration gives none
SUBWORDS = (("joint.spm",), ("src.spm", "tgt.spm"), ("source.spm", "target.spm"), ("src.spm.model", "tgt.spm.model"),
            ("sentencepiece.model",))  # fmt: skip
"""Usual names of the SentencePiece models in its folder."""
SIDES = ("encoder", "decoder")
GATE = "encoder/layer_0/ffn/linear_0_noact/weight"  # exists if the activation is gated
PADS = ("<pad>", "<blank>")
LANGUAGE = re.compile("__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}")
"""Language tokens of M2M100 (``__de__``), NLLB (``deu_Latn``) and mBART (``de_DE``)."""
WANTED = "a model of CTranslate2 has it"


class Package(NamedTuple):
    """Files and facts of a model in a package of Argos."""

    subwords: Sequence[Path]  # its SentencePiece models, one or two, where names of ``SUBWORDS`` would be tried
    about: Mapping[str, Any]  # instead of the manifest of an export of ours: languages and search


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None],
    package: Package | None = None,
) -> Imported:  # fmt: skip
    """Read a folder; see ``toolkit.Reader``.

    Args:
        package: The package of Argos that it lies in.
    """
    subwords, export = ((), None) if package is None else package
    variables = Variables(source / "model.bin")
    about = _about(variables, source)
    lists = _lists(source)
    _refuse_language_tokens(lists, source)
    paths = subwords or _subwords(source)
    models = [read_model(read_bytes(path, WANTED), f"{path}") for path in paths]
    pieces = None if texts is None else needed(models, texts)
    src_eos = _has_source_eos(about, variables, source)
    from_zero = variables.flag("decoder/start_from_zero_embedding")
    vocabularies = []
    for i, listed in enumerate(lists):
        special = (
            _special_of_source(listed, about, src_eos, source) if len(lists) > 1 and i == 0
            else _special(listed, about, from_zero, source)
        )  # fmt: skip
        vocabularies.append(
            vocabulary(listed, special, models if len(lists) == 1 else [models[-1 if i else 0]], pieces)
        )
    of_models = lists if len(models) == len(lists) else [[piece for listed in lists for piece in listed]] * len(models)
    for path, spm, listed in zip(paths, models, of_models, strict=True):
        check_belongs(spm, listed, f"{path}")
    if about.get("add_source_bos"):
        raise BundleError(f"{source}/config.json: add_source_bos = true is not supported, only false")
    src, tgt = tokenizers(models, vocabularies, f"{source}")
    options, weights = _model(variables, about, vocabularies)
    if not src_eos:
        options["src_eos"] = False
        logger.info("%s: its sources do not end with eos (as OpenNMT-py's): model.src_eos = false", name)
    variables.refuse_unread()
    if export is None:
        export = read_object(source / MANIFEST, WANTED) if (source / MANIFEST).is_file() else {}
    lang_codes = [chosen or export.get(f"{side}_lang") for side, chosen in zip(("src", "tgt"), languages, strict=True)]
    if "decode" not in export:
        own = DecodeConfig()
        logger.info(
            "%s: does not tell how to search: beam_size = %d and length_penalty = %g (%s), as in the paper; "
            "--beam-size and --length-penalty of translate replace them",
            name, own.beam_size, own.length_penalty, own.length_penalty_form,
        )  # fmt: skip
    config = Config.from_mapping(
        {
            "model": options,
            "data": dict(
                train={"src": "imported.src", "tgt": "imported.tgt"}, src_lang=lang_codes[0], tgt_lang=lang_codes[1],
                max_tokens=max(1, min(256, options.get("max_len", 1024) - 1)),
                tokenizer=dict(joint=len(lists) == 1),
            ),
            "decode": export.get("decode", {}),
        },
        f"{variables.path}",
    )  # fmt: skip
    model = ModelConfig(**config.model.model_dump(), src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    rounded = {"rounded_to": variables.kind} if variables.kind != "float32" else {}
    return Imported(
        config, model, weights, src, tgt, facts_of(name, "ctranslate2", variables.digest, models, **rounded)
    )


def refuse_by_small_files(folder: Path) -> None:
    """Read what a folder has besides its weights, so that a model is refused before they are downloaded.

    Raises:
        BundleError: Vocabulary or subwords are missing or damaged, or of a kind that cannot be imported.
    """
    _refuse_language_tokens(_lists(folder), folder)
    for path in _subwords(folder):
        read_model(read_bytes(path, WANTED), f"{path}")


def _about(variables: Variables, folder: Path) -> dict[str, Any]:
    """Return the settings of ``config.json``, or of an older model those of its variables."""
    if variables.version >= SINCE_CONFIG:
        return read_object(folder / "config.json", WANTED)
    variables.must_be("user_decoder_start_tokens", 0)
    start = "<s>" if variables.flag("with_target_bos", True) else "</s>"
    return dict(
        unk_token="<unk>", bos_token="<s>", eos_token="</s>", decoder_start_token=start,
        add_source_bos=variables.flag("with_source_bos"), add_source_eos=variables.flag("with_source_eos"),
    )  # fmt: skip


def _variant(variables: Variables) -> dict[str, Any]:
    """Return the settings that are stored as such: depth, heads, norm, activation, scaling of embeddings.

    Raises:
        BundleError: Encoder and decoder differ, or a value is not supported.
    """

    def same(what: str, value_of: Any) -> Any:
        values = [value_of(side) for side in SIDES]
        if values[0] != values[1]:
            raise BundleError(f"{variables.path}: {what} of encoder and decoder differ ({values[0]} and {values[1]})")
        return values[0]

    n_layers = {f"n_{side}_layers": _n_layers(variables, side) for side in SIDES}
    n_heads: int = same("num_heads", lambda side: variables.whole_number(f"{side}/num_heads"))
    if n_heads < 1:
        raise BundleError(f"{variables.path}: num_heads = {n_heads} should be at least 1")
    is_pre = same("pre_norm", lambda side: variables.flag(f"{side}/pre_norm", True))
    is_scaled = same("scale_embeddings", lambda side: _is_scaled(variables, side))
    code = ACTIVATION_CODES.get(
        same("activation", lambda side: variables.whole_number(f"{side}/activation", 0)), "of no name"
    )
    is_gated = GATE in variables
    activation = next((name for name, their_name in ACTIVATIONS.items() if their_name == code), None)
    if is_gated:
        activation = "swiglu" if code == "SWISH" else None
    if activation is None:
        raise BundleError(f"{variables.path}: its activation {code}{' with a gate' * is_gated} is not supported")
    return dict(
        **n_layers, n_heads=n_heads, norm="pre" if is_pre else "post", activation=activation, scale_embeddings=is_scaled
    )


def _layers(variables: Variables, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of all layers under our names, without biases of attention if no attention has one."""
    weights: dict[str, Tensor] = {}
    has_bias = False

    def linear(source: str, *targets: str) -> None:
        """Add one projection, or several that are stored side by side."""
        parts = variables.tensor(f"{source}/weight").chunk(len(targets))
        if len({part.shape for part in parts}) > 1 or len(parts) != len(targets):
            raise BundleError(f"{variables.path}: {source} is not made of {len(targets)} equal projections")
        n = len(parts[0])
        bias = variables.tensor(f"{source}/bias", 1) if f"{source}/bias" in variables else torch.zeros(n * len(targets))
        for name, part, shift in zip(targets, parts, bias.chunk(len(targets)), strict=True):
            weights[f"{name}.weight"], weights[f"{name}.bias"] = part, shift

    def norm(source: str, target: str) -> None:
        weights[f"{target}.weight"], weights[f"{target}.bias"] = (
            variables.tensor(f"{source}/{what}", 1) for what in ("gamma", "beta")
        )

    for side in SIDES:
        for i in range(options[f"n_{side}_layers"]):
            source, target = f"{side}/layer_{i}", f"{side}.layers.{i}"
            attentions: dict[str, tuple[str, tuple[str, ...]]] = {"self_attention": ("self_attn", ("qkv", "o"))}
            if side == "decoder":
                attentions["attention"] = ("cross_attn", ("q", "kv", "o"))
            for block, (name, groups) in attentions.items():
                for k, group in enumerate(groups):
                    linear(f"{source}/{block}/linear_{k}", *(f"{target}.{name}.w_{letter}" for letter in group))
                    has_bias = has_bias or f"{source}/{block}/linear_{k}/bias" in variables
                _check_heads(variables, f"{source}/{block}", weights[f"{target}.{name}.w_q.weight"], options["n_heads"])
            linear(f"{source}/ffn/linear_0", f"{target}.feed_forward.{'w_3' if GATE in variables else 'w_1'}")
            linear(f"{source}/ffn/linear_1", f"{target}.feed_forward.w_2")
            if GATE in variables:
                linear(f"{source}/ffn/linear_0_noact", f"{target}.feed_forward.w_1")
            for n, block in enumerate((*attentions, "ffn"), 1):
                norm(f"{source}/{block}/layer_norm", f"{target}.norm{n}")
        if options["norm"] == "pre":
            norm(f"{side}/layer_norm", f"{side}.norm")
    if not has_bias:
        biases = {name for name in weights if "_attn.w_" in name and name.endswith(".bias")}
        weights = {name: tensor for name, tensor in weights.items() if name not in biases}
    return weights


def _model(
    variables: Variables, about: Mapping[str, Any], vocabularies: Sequence[Vocabulary]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings of the model, and its tensors under our names."""
    options = _variant(variables)
    variables.take("encoder/embeddings_merge", "decoder/alignment_layer", "decoder/alignment_heads")
    variables.take("decoder/alibi_use_positive_positions")
    for name in ("encoder/multi_query_attention", "decoder/alibi", "decoder/scale_alibi"):
        variables.must_be(name, 0)
    tables = {
        side: variables.tensor(f"{side}/position_encodings/encodings")
        for side in SIDES
        if f"{side}/position_encodings/encodings" in variables
    }
    src = variables.tensor("encoder/embeddings_0/weight")
    tgt, generator = variables.tensor("decoder/embeddings/weight"), variables.tensor("decoder/projection/weight")
    d_model, n_heads = src.size(1), options["n_heads"]
    weights = _layers(variables, options)
    projection = "decoder/projection/bias"
    their_bias = variables.tensor(projection, 1) if projection in variables else None
    bias = vocabularies[-1].bias(their_bias, f"{variables.path}: {projection}")
    if bias is not None:
        weights["generator.bias"] = bias

    epsilon = about.get("layer_norm_epsilon")
    tied = generator.shape == tgt.shape and torch.equal(generator, tgt)
    is_one = len(vocabularies) == 1 and src.shape == tgt.shape and torch.equal(src, tgt)
    share = "all" if tied and is_one else "decoder" if tied else "none"
    for name, table in {"src_embed": src, "tgt_embed": tgt, "generator": generator}.items():
        of = vocabularies[0 if name == "src_embed" else -1]
        rows = of.take(table, f"{variables.path}: {name}")
        if name in {"all": ("src_embed",), "decoder": ("src_embed", "tgt_embed")}.get(share, (name,)):
            weights[f"{name}.weight"] = rows
    heads = weights["encoder.layers.0.self_attn.w_q.weight"].size(0) // n_heads
    options |= dict(
        d_model=d_model, d_ff=len(weights["encoder.layers.0.feed_forward.w_1.weight"]),
        d_k=None if heads * n_heads == d_model else heads, d_v=None if heads * n_heads == d_model else heads,
        share_embeddings=share, attention_bias="encoder.layers.0.self_attn.w_q.bias" in weights,
        generator_bias=bias is not None, norm_eps=EPSILON if epsilon is None else epsilon,
    )  # fmt: skip
    options |= _positions(variables, tables, weights, options)
    return options, {name: tensor.contiguous() for name, tensor in weights.items()}


def _n_layers(variables: Variables, side: str) -> int:
    n = 0
    while f"{side}/layer_{n}/self_attention/linear_0/weight" in variables:
        n += 1
    if not n:
        raise BundleError(f"{variables.path}: has no {side}; only translators can be imported")
    return n


def _is_scaled(variables: Variables, side: str) -> bool:
    """True if embeddings are multiplied by the root of their width; the file has a flag, or the factor."""
    name = f"{side}/scale_embeddings"
    *_, d_model = variables.shape(f"{side}/embeddings{'_0' if side == 'encoder' else ''}/weight")
    if variables.type(name) in ("", "int8"):
        return variables.flag(name, True)
    factor = variables.number(name)
    if factor != 1 and not math.isclose(factor, math.sqrt(d_model), rel_tol=1e-3):
        raise BundleError(f"{variables.path}: {name} must be 1 or the root of d_model, got {factor:g}")
    return factor != 1


def _check_heads(variables: Variables, attention: str, queries: Tensor, n_heads: int) -> None:
    """Check that all heads have one width, and that rotary positions are those of our model."""
    if len(queries) % n_heads:
        raise BundleError(f"{variables.path}: {attention} has {len(queries)} rows of queries for {n_heads} heads")
    width = len(queries) // n_heads
    variables.must_be(f"{attention}/head_dim", width)
    if f"{attention}/rotary_dim" in variables:
        if variables.number(f"{attention}/rotary_dim"):  # 0 means the whole width too
            variables.must_be(f"{attention}/rotary_dim", width)
        variables.must_be(f"{attention}/rotary_interleave", 1)
        variables.must_be(f"{attention}/rotary_base", 10000)


def _positions(
    variables: Variables, tables: Mapping[str, Tensor], weights: dict[str, Tensor], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of positions, and change ``weights`` to fit them.

    Sinusoids with all sines first reorder the channels as ``huggingface.write.order`` does; any other table is learned.
    """
    if not tables:
        if (
            "encoder/layer_0/self_attention/rotary_dim" in variables
            and "decoder/layer_0/self_attention/rotary_dim" in variables
        ):
            return dict(positions="rotary")
        raise BundleError(
            f"{variables.path}: has no table of positions, which is needed (OpenNMT-tf's models have none)"
        )
    if len(tables) == 1 or tables["encoder"].size(1) != tables["decoder"].size(1):
        raise BundleError(f"{variables.path}: its encoder and decoder must have the same kind of positions")
    orders = [order_of_sinusoids(table) for table in tables.values()]
    if orders[0] is not None and orders[1] is not None and torch.equal(orders[0], orders[1]):
        # Both tables hold the paper's sinusoids: bring the channels of all tensors into the order of ours.
        back = orders[0].argsort()
        layers = {name: options[name] for name in ("n_encoder_layers", "n_decoder_layers", "norm")}
        for parameter in parameters(ModelConfig(src_vocab_size=5, tgt_vocab_size=5, **layers)):
            name = parameter.ours
            if name in weights and parameter.rows:
                weights[name] = weights[name][back]
            if name in weights and parameter.columns:
                weights[name] = weights[name][:, back]
        # Layers of Hugging Face lack gates: `parameters` does not name them.
        gates = {name for name in weights if name.endswith(".feed_forward.w_3.weight")}
        for name in gates | {"src_embed.weight", "tgt_embed.weight", "generator.weight"} & weights.keys():
            weights[name] = weights[name][:, back]
        return dict(positions="sinusoidal")
    n = min(len(table) for table in tables.values())
    for side, letters in (("encoder", "src"), ("decoder", "tgt")):
        weights[f"{letters}_positions.weight"] = tables[side][:n].contiguous()
    return dict(positions="learned", max_len=n)


def _lists(folder: Path) -> list[list[str]]:
    """Return the pieces in the order of their ids: one list for both sides, or one for each."""

    def listed(name: str) -> list[str] | None:
        path = folder / f"{name}_vocabulary.json"
        if not path.is_file():
            path = path.with_suffix(".txt")
            return read_bytes(path, WANTED).decode("utf-8").removesuffix("\n").split("\n") if path.is_file() else None
        pieces = json.loads(read_bytes(path, WANTED))
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise ValueError(f"{path.name} is no list of texts")
        return pieces

    try:
        shared = listed("shared")
        both = [shared] if shared is not None else [listed("source"), listed("target")]
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{folder}: its vocabulary is damaged ({error}); copy it again") from None
    lists = [pieces for pieces in both if pieces is not None]
    if len(lists) < len(both):
        raise BundleError(f"{folder}: lacks shared_vocabulary.json, or source_ and target_vocabulary.json")
    for pieces in lists:
        check_pieces(pieces, f"{folder}")
    return folded(lists)


def _refuse_language_tokens(lists: Sequence[Sequence[str]], folder: Path) -> None:
    """Refuse a model whose texts begin with the token of a language, which our sources and targets do not hold."""
    tokens = {piece for pieces in lists for piece in pieces if LANGUAGE.fullmatch(piece)}
    if len(tokens) > 1:  # one may be an odd subword
        raise BundleError(
            f"{folder}: its vocabulary has {listing(tokens)}: it translates by language tokens, "
            "which cannot be imported"
        )


def _subwords(folder: Path) -> list[Path]:
    """Return the paths of its SentencePiece models."""
    for names in SUBWORDS:
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    choices = " or ".join(" and ".join(names) for names in SUBWORDS)
    raise BundleError(f"{folder}: has no SentencePiece models: put {choices} there")


def _special(
    listed: Sequence[str], about: Mapping[str, Any], from_zero: bool, folder: Path
) -> tuple[int | None, int, int | None, int]:
    """Return their ids of our pad, unk, bos and eos."""
    bos = None if from_zero else _needed_id("decoder_start_token", listed, about, folder)
    unk, eos = (_needed_id(f"{name}_token", listed, about, folder) for name in ("unk", "eos"))
    return _id_of_padding(listed), unk, bos, eos


def _special_of_source(
    listed: Sequence[str], about: Mapping[str, Any], src_eos: bool, folder: Path
) -> tuple[int | None, int, int | None, int | None]:
    """Return their ids of our pad, unk, bos and eos in a list of sources alone.

    Those of OpenNMT-py have neither bos nor eos, since its sources do not hold them.
    """
    unk = _needed_id("unk_token", listed, about, folder)
    bos, eos = (_id_of(about.get(name), listed) for name in ("decoder_start_token", "eos_token"))
    if src_eos:
        eos = _needed_id("eos_token", listed, about, folder)
    return _id_of_padding(listed), unk, bos, eos


def _needed_id(setting: str, listed: Sequence[str], about: Mapping[str, Any], folder: Path) -> int:
    """Return the id of the piece that a setting names.

    Raises:
        BundleError: The list lacks the piece.
    """
    piece = about.get(setting)
    i = _id_of(piece, listed)
    if i is None:
        raise BundleError(f"{folder}/config.json: {setting} = {shown(piece)} should be in its vocabulary")
    return i


def _id_of(piece: object, listed: Sequence[str]) -> int | None:
    return listed.index(piece) if isinstance(piece, str) and piece in listed else None


def _id_of_padding(listed: Sequence[str]) -> int | None:
    return next((listed.index(piece) for piece in PADS if piece in listed), None)


def _has_source_eos(about: Mapping[str, Any], variables: Variables, folder: Path) -> bool:
    """True if its sources end with eos, as those of Marian do and those of OpenNMT do not.

    Raises:
        BundleError: Its files leave it open: in Pegasus only the tokenizer adds eos.
    """
    if about.get("add_source_eos") or variables.flag("decoder/start_from_zero_embedding"):
        return True
    start = about.get("decoder_start_token")
    if start != about.get("bos_token") or start in PADS:  # OpenNMT starts with bos, Pegasus with padding
        raise BundleError(
            f"{folder}/config.json: add_source_eos = false and decoder_start_token = "
            f"{shown(start)}: nothing says whether sources end with eos. If they do, "
            "write add_source_eos = true there"
        )
    return False
