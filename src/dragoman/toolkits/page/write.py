"""Write a translator in one HTML file: the model, its subwords and the attention explorer, in plain JavaScript.

The scripts are in ``pages/translator/``; this module makes their data. The file holds

  content   settings, subwords and the names and shapes of the matrices, as JSON
  weights   the matrices one after the other, low byte first, as base64: float32; or, quantized, the scale of each row
            as float32, then its int8 values; vectors stay float32

and needs no network, server or library.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman import __version__
from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.data.sentencepiece_check import UNUSED, fields, is_of_words, is_unigram, parts
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from dragoman.errors import ConfigError
from dragoman.files import explained, write_text
from dragoman.languages.known import is_unspaced
from dragoman.model.weights import untied
from dragoman.pages.colours import scale, signed_scale
from dragoman.pages.render import render
from dragoman.toolkits.writing import not_held, weights_of

TITLE = "an HTML page"
FILE = ".html"
PACKAGES = ()
QUANTIZATIONS = ("float32", "int8")
ACTIVATIONS = ("relu", "gelu", "swish", "swiglu")  # of pages/translator/model.js
POSITIONS = ("sinusoidal", "learned", "rotary")

NAME = f"translator{FILE}"
HEADING = "<title>dragoman</title>"
"""Part of the head by which the page of every version is known."""
MOST_LETTERS = 500_000_000
"""Largest length of the weights in the file; browsers hold no text of more than 2 ** 29 characters."""
LEAST_USUAL = 32
"""Smallest usual length of a source in tokens."""


def why_not(config: ModelConfig) -> str:
    """See ``Writer``: a page holds what its ``model.js`` computes."""
    return not_held(config, ACTIVATIONS, POSITIONS)


def write(bundle: Bundle, folder: Path, quantization: str) -> None:
    """See ``Writer``; the file is ``translator.html``."""
    write_text(folder / NAME, html(bundle, quantization))


def html(bundle: Bundle, quantization: str) -> str:
    """Return the text of the file.

    Raises:
        BundleError: A weight is not finite.
        ConfigError: The model is a parser or too large, or its tokenizer is not supported.
    """
    for tokenizer in (bundle.src_tokenizer, bundle.tgt_tokenizer):
        _check(tokenizer)
    tensors, weights = packed(bundle, quantization)
    if len(weights) > MOST_LETTERS:
        raise ConfigError(
            f"the weights of a page must have at most {MOST_LETTERS:,} characters, got {len(weights):,}: choose "
            "--quantization int8, or --format ctranslate2"
        )
    return page_of({**settings(bundle), "tensors": tensors, "facts": facts(bundle, quantization)}, weights)


def page_of(content: Mapping[str, Any], weights: str) -> str:
    """Return the text of a file, given all that its scripts compute with and the weights as ``packed`` returns them."""
    shell = render("explanation.html", source="", content={})
    return render(
        "translator/translator.html", content=content, weights=weights, shell=shell, scale=scale(), signs=signed_scale()
    )


def packed(bundle: Bundle, quantization: str) -> tuple[list[tuple[str, tuple[int, ...], bool]], str]:
    """Return for each matrix its name, its shape and True if it is quantized; then all values as base64."""
    stored = untied(bundle.model)
    tensors: list[tuple[str, tuple[int, ...], bool]] = []
    data = []
    for name, tensor in weights_of(bundle).items():
        if name not in stored:
            continue
        values = tensor.numpy()
        rounds = quantization == "int8" and values.ndim == 2
        tensors.append((name, values.shape, rounds))
        data += rounded(values) if rounds else [values.astype("<f4").tobytes()]
    return tensors, base64.b64encode(b"".join(data)).decode()


def rounded(matrix: NDArray[np.float32]) -> list[bytes]:
    """Quantize a matrix: return the scale of each row, float32, and its values, int8."""
    scales = np.abs(matrix).max(axis=1, keepdims=True) / 127  # (out, 1)
    scales[scales == 0] = 1
    return [scales.astype("<f4").tobytes(), np.round(matrix / scales).astype(np.int8).tobytes()]


def settings(bundle: Bundle) -> dict[str, Any]:
    """Return everything that the scripts compute with, except the weights."""
    config, data, decode = bundle.sizes, bundle.config.data, bundle.config.decode
    read = data.max_tokens
    if config.n_positions is not None:
        read = max(1, min(read, config.n_positions - decode.max_extra_tokens - 1))
    usual = max(LEAST_USUAL, bundle.facts.usual_src_tokens or read)
    both, targets = [bundle.src_tokenizer, bundle.tgt_tokenizer], bundle.src_tokenizer.targets
    return {
        "config": config.model_dump(mode="json"),
        "special": {"pad": PAD_ID, "unk": UNK_ID, "bos": BOS_ID, "eos": EOS_ID},
        "subwords": [subwords(tokenizer) for tokenizer in (both[:1] if both[0].shares_pieces(both[1]) else both)],
        "decode": {
            "beamSize": decode.beam_size, "alpha": decode.length_penalty, "form": decode.length_penalty_form,
            "patience": decode.patience, "maxExtra": decode.max_extra_tokens,
        },
        "most": min(read, 2 * usual),
        "positions": config.n_positions,
        "targets": dict(sorted(targets.items())) if len(targets) > 1 else None,
        "src_lang": data.src_lang or "", "tgt_lang": data.tgt_lang or "",
        "unspaced": [code for code in (*targets, data.tgt_lang or "") if is_unspaced(code)],
    }  # fmt: skip


def subwords(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return a vocabulary in the form that the scripts read."""
    tags = frozenset(tokenizer.tags.values())
    return {
        "kind": "unigram" if is_unigram(tokenizer.proto) else "bpe",
        "normaliser": normaliser(parts(tokenizer.proto).normalizer) | {"compose": tokenizer.composes},
        "pieces": tokenizer.pieces(range(tokenizer.vocab_size)),
        "scores": base64.b64encode(np.array(tokenizer.scores, "<f4").tobytes()).decode(),
        "unused": [i for i, piece in enumerate(parts(tokenizer.proto).pieces) if piece.kind == UNUSED or i in tags],
        "silent": sorted(tags),
        "bytes": sorted(tokenizer.byte_ids, key=lambda i: tokenizer.spelled[i]),
    }


def facts(bundle: Bundle, quantization: str) -> dict[str, Any]:
    """Return the known facts about the model, for the foot of the page."""
    known = bundle.facts
    values = {
        "parameters": sum(weight.numel() for weight in bundle.model.parameters()),
        "step": known.step,
        "bleu": known.validation.get("bleu"),
        "quantization": quantization,
        "bundle": known.sha256,
        "dragoman": __version__,
    }
    return {name: value for name, value in values.items() if value is not None}


def facts_of(file: Path) -> dict[str, Any]:
    """Return the facts of an exported page that the manifest of a folder would hold.

    Raises:
        ConfigError: ``write`` did not write this page.
        DragomanError: The file cannot be read.
    """
    with explained(file):
        data = file.read_bytes()
    content = re.search(rb'<script type="application/json" id="content">([^<]+)</script>', data)
    try:
        known = json.loads(content[1] if content else b"")["facts"]
        known = {"quantization": known["quantization"], "bundle": known.get("bundle")}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"{file}: is no page of `dragoman export --format page`") from None
    digest = hashlib.sha256(data).hexdigest()
    return {"export": "page", **known, "files": {file.name: {"bytes": len(data)}}, "sha256": digest}


def normaliser(body: bytes) -> dict[str, Any]:
    """Return the normalisation that SentencePiece applies to a text, from its NormalizerSpec.

    Raises:
        ConfigError: It does not replace spaces by U+2581, as the scripts do.
    """
    values = {number: value for number, _, value in fields(body)}
    if not values.get(_ESCAPE, 1):
        raise ConfigError(f"this model cannot be written for {TITLE}: its subwords do not write spaces as U+2581")
    rules = values.get(_MAP, b"")
    return {
        "map": base64.b64encode(rules if isinstance(rules, bytes) else b"").decode(),
        "prefix": bool(values.get(_PREFIX, 1)),
        "trim": bool(values.get(_TRIM, 1)),
    }


_MAP, _PREFIX, _TRIM, _ESCAPE = 2, 3, 4, 5  # fields of a NormalizerSpec


def _check(tokenizer: Tokenizer) -> None:
    """Refuse the tokenizer of a parser, which has whole words."""
    if is_of_words(tokenizer.proto):
        raise ConfigError(f"this model cannot be written for {TITLE}: it is a parser, and the page translates")
