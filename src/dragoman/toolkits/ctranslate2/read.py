"""Models of CTranslate2 read: the inverse of ``ctranslate2.py``.

Of https://github.com/OpenNMT/CTranslate2, a folder written by version 1.20 or later, SentencePiece models beside it.
Every variable of ``model.bin`` is either taken or refused by its name, so that nothing of a model is left out in
silence. Rounded matrices are multiplied out, which is what they mean: an int8 row is its numbers over its scale.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.errors import BundleError
from dragoman.files import MANIFEST
from dragoman.toolkits.ctranslate2.model_bin import SINCE_CONFIG, Variables
from dragoman.toolkits.ctranslate2.write import ACTIVATIONS
from dragoman.toolkits.huggingface.write import parameters
from dragoman.toolkits.reading import Imported, facts_of, order_of_sinusoids, read_bytes, read_object
from dragoman.toolkits.subwords import Vocabulary, check_pieces, needed, read_model, tokenizers, vocabulary

logger = logging.getLogger(__name__)

ACTIVATION_CODES = {0: "RELU", 1: "GELUTanh", 2: "SWISH", 3: "GELU", 4: "GELUSigmoid", 5: "Tanh", 6: "Sigmoid"}
EPSILON = 1e-5  # of its norms, where its configuration gives none
SUBWORDS = (("joint.spm",), ("src.spm", "tgt.spm"), ("source.spm", "target.spm"), ("src.spm.model", "tgt.spm.model"),
            ("sentencepiece.model",))  # fmt: skip
"""What its users call the models beside it."""
SIDES = ("encoder", "decoder")
GATE = "encoder/layer_0/ffn/linear_0_noact/weight"  # there where the activation is gated
PADS = ("<pad>", "<blank>")
WANTED = "a model of CTranslate2 has it"


def read(
    source: Path, name: str, texts: Sequence[str] | None, languages: tuple[str | None, str | None],
    subwords: Sequence[Path] = (),
) -> Imported:  # fmt: skip
    """Read a folder; see ``imported.Reader``.

    Args:
        subwords: Where its SentencePiece models are, one or two; none: under one of the names of ``SUBWORDS``.
    """
    found = Variables(source / "model.bin")
    about = _about(found, source)
    paths = subwords or _subwords(source)
    models = [read_model(read_bytes(path, WANTED), str(path)) for path in paths]
    lists = _lists(source)
    kept = None if texts is None else needed(models, texts)
    vocabularies = []
    for i, listed in enumerate(lists):
        special = _special(listed, about, found.flag("decoder/start_from_zero_embedding"), source)
        vocabularies.append(vocabulary(listed, special, models if len(lists) == 1 else [models[-1 if i else 0]], kept))
    if about.get("add_source_bos"):
        raise BundleError(f"{source}/config.json: add_source_bos = true: here no source begins with bos")
    src, tgt = tokenizers(models, vocabularies, str(source))
    options, weights = _model(found, about, vocabularies)
    if not _has_source_eos(about, found, source):
        options["src_eos"] = False
        logger.info("%s: its sources have no eos (as OpenNMT-py's); model.src_eos = false says so", name)
    found.refuse_the_rest()
    given = _languages(source, languages)
    config = Config.from_mapping(
        {
            "model": options,
            "data": dict(
                train={"src": "imported.src", "tgt": "imported.tgt"}, src_lang=given[0], tgt_lang=given[1],
                max_tokens=max(1, min(256, options.get("max_len", 1024) - 1)), tokenizer=dict(joint=src is tgt),
            ),
        },
        str(found.path),
    )  # fmt: skip
    model = ModelConfig(**config.model.model_dump(), src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size)
    rounded = {"rounded_to": found.kind} if found.kind != "float32" else {}
    return Imported(config, model, weights, src, tgt, facts_of(name, "ctranslate2", found.digest, models, **rounded))


def _about(found: Variables, folder: Path) -> dict[str, Any]:
    """What is not in the tensors: ``config.json``, or what stood for it before there was one."""
    if found.version >= SINCE_CONFIG:
        return read_object(folder / "config.json", WANTED)
    found.must_be("user_decoder_start_tokens", 0)
    start = "<s>" if found.flag("with_target_bos", True) else "</s>"
    return dict(
        unk_token="<unk>", bos_token="<s>", eos_token="</s>", decoder_start_token=start,
        add_source_bos=found.flag("with_source_bos"), add_source_eos=found.flag("with_source_eos"),
    )  # fmt: skip


def _variant(found: Variables) -> dict[str, Any]:
    """The settings that it has as such: depth, heads, norm, activation, whether embeddings are scaled.

    Raises:
        BundleError: Encoder and decoder differ, or one cannot be held.
    """

    def same(what: str, ask: Any) -> Any:
        values = [ask(side) for side in SIDES]
        if values[0] != values[1]:
            raise BundleError(f"{found.path}: {what} of encoder and decoder differ ({values[0]} and {values[1]})")
        return values[0]

    n_layers = {f"n_{side}_layers": _n_layers(found, side) for side in SIDES}
    n_heads = int(same("num_heads", lambda side: found.number(f"{side}/num_heads")))
    if n_heads < 1:
        raise BundleError(f"{found.path}: num_heads = {n_heads} should be at least 1")
    is_pre = same("pre_norm", lambda side: found.flag(f"{side}/pre_norm", True))
    is_scaled = same("scale_embeddings", lambda side: _is_scaled(found, side))
    code = ACTIVATION_CODES.get(
        int(same("activation", lambda side: found.number(f"{side}/activation", 0))), "of no name"
    )
    is_gated = GATE in found
    activation = next((ours for ours, theirs in ACTIVATIONS.items() if theirs == code), None)
    if is_gated:
        activation = "swiglu" if code == "SWISH" else None
    if activation is None:
        raise BundleError(f"{found.path}: its activation {code}{' with a gate' * is_gated} cannot be held here")
    return dict(
        **n_layers, n_heads=n_heads, norm="pre" if is_pre else "post", activation=activation, scale_embeddings=is_scaled
    )


def _layers(found: Variables, options: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of all layers under our names; without biases of attention, where no attention has one."""
    weights: dict[str, Tensor] = {}
    has_bias = False

    def linear(theirs: str, *ours: str) -> None:
        """A projection, or several side by side."""
        parts = found.tensor(f"{theirs}/weight").chunk(len(ours))
        if len({part.shape for part in parts}) > 1 or len(parts) != len(ours):
            raise BundleError(f"{found.path}: {theirs} is not made of {len(ours)} equal projections")
        n = len(parts[0])
        bias = found.tensor(f"{theirs}/bias", 1) if f"{theirs}/bias" in found else torch.zeros(n * len(ours))
        for one, part, shift in zip(ours, parts, bias.chunk(len(ours)), strict=True):
            weights[f"{one}.weight"], weights[f"{one}.bias"] = part, shift

    def norm(theirs: str, ours: str) -> None:
        weights[f"{ours}.weight"], weights[f"{ours}.bias"] = (
            found.tensor(f"{theirs}/{what}", 1) for what in ("gamma", "beta")
        )

    for side in SIDES:
        for i in range(options[f"n_{side}_layers"]):
            theirs, ours = f"{side}/layer_{i}", f"{side}.layers.{i}"
            attentions: dict[str, tuple[str, tuple[str, ...]]] = {"self_attention": ("self_attn", ("qkv", "o"))}
            if side == "decoder":
                attentions["attention"] = ("cross_attn", ("q", "kv", "o"))
            for one, (name, groups) in attentions.items():
                for k, group in enumerate(groups):
                    linear(f"{theirs}/{one}/linear_{k}", *(f"{ours}.{name}.w_{letter}" for letter in group))
                    has_bias = has_bias or f"{theirs}/{one}/linear_{k}/bias" in found
                _check_heads(found, f"{theirs}/{one}", weights[f"{ours}.{name}.w_q.weight"], options["n_heads"])
            linear(f"{theirs}/ffn/linear_0", f"{ours}.feed_forward.{'w_3' if GATE in found else 'w_1'}")
            linear(f"{theirs}/ffn/linear_1", f"{ours}.feed_forward.w_2")
            if GATE in found:
                linear(f"{theirs}/ffn/linear_0_noact", f"{ours}.feed_forward.w_1")
            for n, one in enumerate((*attentions, "ffn"), 1):
                norm(f"{theirs}/{one}/layer_norm", f"{ours}.norm{n}")
        if options["norm"] == "pre":
            norm(f"{side}/layer_norm", f"{side}.norm")
    if not has_bias:
        weights = {name: one for name, one in weights.items() if not ("_attn.w_" in name and name.endswith(".bias"))}
    return weights


def _model(
    found: Variables, about: Mapping[str, Any], vocabularies: Sequence[Vocabulary]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of the model, and its tensors under our names."""
    options = _variant(found)
    found.take("encoder/embeddings_merge", "decoder/alignment_layer", "decoder/alignment_heads")
    found.take("decoder/alibi_use_positive_positions")
    for name in ("encoder/multi_query_attention", "decoder/alibi", "decoder/scale_alibi"):
        found.must_be(name, 0)
    tables = {
        side: found.tensor(f"{side}/position_encodings/encodings")
        for side in SIDES
        if f"{side}/position_encodings/encodings" in found
    }
    src = found.tensor("encoder/embeddings_0/weight")
    tgt, generator = found.tensor("decoder/embeddings/weight"), found.tensor("decoder/projection/weight")
    d_model, n_heads = src.size(1), options["n_heads"]
    weights = _layers(found, options)
    projection = "decoder/projection/bias"
    given = found.tensor(projection, 1) if projection in found else None
    bias = vocabularies[-1].bias(given, f"{found.path}: {projection}")
    if bias is not None:
        weights["generator.bias"] = bias

    epsilon = about.get("layer_norm_epsilon")
    tied = generator.shape == tgt.shape and torch.equal(generator, tgt)
    is_one = len(vocabularies) == 1 and src.shape == tgt.shape and torch.equal(src, tgt)
    share = "all" if tied and is_one else "decoder" if tied else "none"
    for name, table in {"src_embed": src, "tgt_embed": tgt, "generator": generator}.items():
        of = vocabularies[0 if name == "src_embed" else -1]
        rows = of.take(table, f"{found.path}: {name}")
        if name in {"all": ("src_embed",), "decoder": ("src_embed", "tgt_embed")}.get(share, (name,)):
            weights[f"{name}.weight"] = rows
    heads = weights["encoder.layers.0.self_attn.w_q.weight"].size(0) // n_heads
    options |= dict(
        d_model=d_model, d_ff=len(weights["encoder.layers.0.feed_forward.w_1.weight"]),
        d_k=None if heads * n_heads == d_model else heads, d_v=None if heads * n_heads == d_model else heads,
        share_embeddings=share, attention_bias="encoder.layers.0.self_attn.w_q.bias" in weights,
        generator_bias=bias is not None, norm_eps=EPSILON if epsilon is None else epsilon,
    )  # fmt: skip
    options |= _positions(found, tables, weights, options)
    return options, {name: one.contiguous() for name, one in weights.items()}


def _n_layers(found: Variables, side: str) -> int:
    n = 0
    while f"{side}/layer_{n}/self_attention/linear_0/weight" in found:
        n += 1
    if not n:
        raise BundleError(f"{found.path}: has no {side}; only translators can be imported")
    return n


def _is_scaled(found: Variables, side: str) -> bool:
    """Whether embeddings are multiplied by the root of their width: a flag, or the factor itself."""
    name, width = (
        f"{side}/scale_embeddings",
        found.shape(f"{side}/embeddings{'_0' if side == 'encoder' else ''}/weight"),
    )
    if found.type(name) in ("", "int8"):
        return found.flag(name, True)
    factor = found.number(name)
    if factor != 1 and not math.isclose(factor, math.sqrt(width[-1]), rel_tol=1e-3):
        raise BundleError(f"{found.path}: {name} = {factor:g} cannot be held here, only 1 and the root of d_model")
    return factor != 1


def _check_heads(found: Variables, attention: str, queries: Tensor, n_heads: int) -> None:
    """Refuse heads that are not of one width, or turned in another way than ours."""
    if len(queries) % n_heads:
        raise BundleError(f"{found.path}: {attention} has {len(queries)} rows of queries for {n_heads} heads")
    width = len(queries) // n_heads
    found.must_be(f"{attention}/head_dim", width)
    if f"{attention}/rotary_dim" in found:
        if found.number(f"{attention}/rotary_dim"):  # 0 is all of them too
            found.must_be(f"{attention}/rotary_dim", width)
        found.must_be(f"{attention}/rotary_interleave", 1)
        found.must_be(f"{attention}/rotary_base", 10000)


def _positions(
    found: Variables, tables: Mapping[str, Tensor], weights: dict[str, Tensor], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of positions; what they need is done to the weights.

    Sinusoids with all sines first reorder the channels as ``huggingface.order`` does; any other table is learned.
    """
    if not tables:
        if (
            "encoder/layer_0/self_attention/rotary_dim" in found
            and "decoder/layer_0/self_attention/rotary_dim" in found
        ):
            return dict(positions="rotary")
        raise BundleError(f"{found.path}: has no table of positions (OpenNMT-tf's are made elsewhere), which is needed")
    if len(tables) == 1 or tables["encoder"].size(1) != tables["decoder"].size(1):
        raise BundleError(f"{found.path}: its positions of encoder and decoder are of two kinds")
    orders = [order_of_sinusoids(table) for table in tables.values()]
    if orders[0] is not None and orders[1] is not None and torch.equal(orders[0], orders[1]):
        back = orders[0].argsort()
        layers = {name: options[name] for name in ("n_encoder_layers", "n_decoder_layers", "norm")}
        for one in parameters(ModelConfig(src_vocab_size=5, tgt_vocab_size=5, **layers)):
            if one.ours in weights and one.rows:
                weights[one.ours] = weights[one.ours][back]
            if one.ours in weights and one.columns:
                weights[one.ours] = weights[one.ours][:, back]
        for name in {"src_embed.weight", "tgt_embed.weight", "generator.weight"} & weights.keys():
            weights[name] = weights[name][:, back]
        return dict(positions="sinusoidal")
    n = min(len(table) for table in tables.values())
    for side, letters in (("encoder", "src"), ("decoder", "tgt")):
        weights[f"{letters}_positions.weight"] = tables[side][:n].contiguous()
    return dict(positions="learned", max_len=n)


def _lists(folder: Path) -> list[list[str]]:
    """The pieces of each id: one list for both sides, or one for each."""

    def listed(name: str) -> list[str] | None:
        path = folder / f"{name}_vocabulary.json"
        if not path.is_file():
            path = path.with_suffix(".txt")
            return read_bytes(path, WANTED).decode("utf-8").removesuffix("\n").split("\n") if path.is_file() else None
        found = json.loads(read_bytes(path, WANTED))
        if not isinstance(found, list) or not all(isinstance(piece, str) for piece in found):
            raise ValueError(f"{path.name} is no list of texts")
        return found

    try:
        shared = listed("shared")
        both = [shared] if shared is not None else [listed("source"), listed("target")]
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{folder}: its vocabulary is damaged ({error}); copy it again") from None
    found = [one for one in both if one is not None]
    if len(found) < len(both):
        raise BundleError(f"{folder}: lacks shared_vocabulary.json, or source_ and target_vocabulary.json")
    for one in found:
        check_pieces(one, str(folder))
    return found


def _subwords(folder: Path) -> list[Path]:
    """Its SentencePiece models."""
    for names in SUBWORDS:
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    said = " or ".join(" and ".join(names) for names in SUBWORDS)
    raise BundleError(f"{folder}: its SentencePiece models are not beside it: put {said} there")


def _special(
    listed: Sequence[str], about: Mapping[str, Any], from_zero: bool, folder: Path
) -> tuple[int | None, int, int | None, int]:
    """The ids there of our pad, unk, bos and eos."""
    ids = {piece: i for i, piece in enumerate(listed)}

    def needed_id(setting: str) -> int:
        piece = about.get(setting)
        if not isinstance(piece, str) or piece not in ids:
            raise BundleError(f"{folder}/config.json: {setting} = {str(piece)[:40]!r} should be in its vocabulary")
        return ids[piece]

    pad = next((ids[piece] for piece in PADS if piece in ids), None)
    bos = None if from_zero else needed_id("decoder_start_token")
    return pad, needed_id("unk_token"), bos, needed_id("eos_token")


def _has_source_eos(about: Mapping[str, Any], found: Variables, folder: Path) -> bool:
    """Whether its sources end with eos, whoever adds it: those of Marian do, those of OpenNMT do not.

    Raises:
        BundleError: Nothing says so: M2M100's and mBART's configurations look alike, and their tokenizers add eos.
    """
    if about.get("add_source_eos") or found.flag("decoder/start_from_zero_embedding"):
        return True
    if about.get("decoder_start_token") != about.get("bos_token"):
        raise BundleError(
            f"{folder}/config.json: add_source_eos = false and decoder_start_token = "
            f"{str(about.get('decoder_start_token'))[:40]!r}: nothing says whether sources end with eos. If they do, "
            "write add_source_eos = true there"
        )
    return False


def _languages(folder: Path, given: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """The languages asked for, or those of the manifest that our exports have."""
    manifest = read_object(folder / MANIFEST, WANTED) if (folder / MANIFEST).is_file() else {}
    src, tgt = (manifest.get(f"{side}_lang") for side in ("src", "tgt"))
    return given[0] or src, given[1] or tgt
