"""A translator that is one HTML file: the model, its subwords and the attention explorer, in plain JavaScript.

The scripts are in ``pages/translator/``; here is what they are given. The file holds

  content   settings, subwords and the names and shapes of the matrices, as JSON
  weights   the matrices one after the other, low byte first, as base64: float32, or of a rounded matrix a float32 for
            each row, what one step is worth, and then its int8; whatever has one axis stays float32

and needs nothing else: no network, no server, no library.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
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
from dragoman.model.weights import untied
from dragoman.pages.colours import scale
from dragoman.pages.render import render
from dragoman.toolkits.writing import not_held, weights_of

TITLE = "an HTML page"
FILE = ".html"
PACKAGES = ()
QUANTIZATIONS = ("float32", "int8")
ACTIVATIONS = ("relu", "gelu", "swish", "swiglu")  # of pages/translator/model.js
POSITIONS = ("sinusoidal", "learned", "rotary")

NAME = f"translator{FILE}"
MOST_LETTERS = 500_000_000
"""Of the weights in the file: no browser holds a text of more than 2 ** 29."""
LEAST_USUAL = 32


def why_not(config: ModelConfig) -> str:
    """What of a model the page cannot hold: what its ``model.js`` does not compute."""
    return not_held(config, ACTIVATIONS, POSITIONS)


def write(bundle: Bundle, folder: Path, quantization: str) -> None:
    """Write ``translator.html`` into the folder.

    Args:
        quantization: ``float32``; or ``int8``: each row of a matrix is rounded to 127 steps of its largest value.

    Raises:
        BundleError: A weight is not finite.
        ConfigError: The model is a parser or too large, or has subwords of another kind.
        OSError: The file cannot be written.
    """
    write_text(folder / NAME, html(bundle, quantization))


def html(bundle: Bundle, quantization: str) -> str:
    """The text of the file, as ``write`` writes it."""
    for tokenizer in (bundle.src_tokenizer, bundle.tgt_tokenizer):
        _check(tokenizer)
    tensors, weights = packed(bundle, quantization)
    if len(weights) > MOST_LETTERS:
        raise ConfigError(
            f"{len(weights):,} letters of weights are more than a browser holds in one text (at most "
            f"{MOST_LETTERS:,}): choose --quantization int8, or --to ctranslate2"
        )
    content = {**settings(bundle), "tensors": tensors, "facts": facts(bundle, quantization)}
    shell = render("explanation.html", source="", content={})
    return render("translator/translator.html", content=content, weights=weights, shell=shell, scale=scale())


def packed(bundle: Bundle, quantization: str) -> tuple[list[tuple[str, tuple[int, ...], bool]], str]:
    """Name, shape and whether it is rounded of each matrix, and all of them as base64."""
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
    """What one step of each row is worth, float32, and the steps, int8."""
    worth = np.abs(matrix).max(axis=1, keepdims=True) / 127  # (out, 1)
    worth[worth == 0] = 1
    return [worth.astype("<f4").tobytes(), np.round(matrix / worth).astype(np.int8).tobytes()]


def settings(bundle: Bundle) -> dict[str, Any]:
    """All but the weights that the scripts compute with."""
    config, data, decode = bundle.model.config, bundle.config.data, bundle.config.decode
    read = data.max_tokens
    if config.n_positions is not None:
        read = max(1, min(read, config.n_positions - decode.max_extra_tokens - 1))
    usual = max(LEAST_USUAL, bundle.facts.usual_src_tokens or read)
    both, targets = [bundle.src_tokenizer, bundle.tgt_tokenizer], bundle.src_tokenizer.targets
    return {
        "config": config.model_dump(mode="json"),
        "special": {"pad": PAD_ID, "unk": UNK_ID, "bos": BOS_ID, "eos": EOS_ID},
        "subwords": [subwords(tokenizer) for tokenizer in (both[:1] if both[0] == both[1] else both)],
        "decode": {
            "beamSize": decode.beam_size, "alpha": decode.length_penalty, "form": decode.length_penalty_form,
            "patience": decode.patience, "maxExtra": decode.max_extra_tokens,
        },
        "most": min(read, 2 * usual),
        "positions": config.n_positions,
        "targets": dict(sorted(targets.items())) if len(targets) > 1 else None,
        "src_lang": data.src_lang or "", "tgt_lang": data.tgt_lang or "",
    }  # fmt: skip


def subwords(tokenizer: Tokenizer) -> dict[str, Any]:
    """A vocabulary as the scripts read it."""
    tags = frozenset(tokenizer.tags.values())
    return {
        "kind": "unigram" if is_unigram(tokenizer.proto) else "bpe",
        "normaliser": normaliser(parts(tokenizer.proto).normalizer),
        "pieces": tokenizer.pieces(range(tokenizer.vocab_size)),
        "scores": base64.b64encode(np.array(tokenizer.scores, "<f4").tobytes()).decode(),
        "unused": [i for i, piece in enumerate(parts(tokenizer.proto).pieces) if piece.kind == UNUSED or i in tags],
        "silent": sorted(tags),
        "bytes": sorted(tokenizer.byte_ids, key=lambda i: tokenizer.spelled[i]),
    }


def facts(bundle: Bundle, quantization: str) -> dict[str, Any]:
    """What the page's foot says of its model; what is not known is left out."""
    known = bundle.facts
    found = {
        "parameters": sum(weight.numel() for weight in bundle.model.parameters()),
        "step": known.step,
        "bleu": known.validation.get("bleu"),
        "quantization": quantization,
        "bundle": known.sha256,
        "dragoman": __version__,
    }
    return {name: value for name, value in found.items() if value is not None}


def facts_of(file: Path) -> dict[str, Any]:
    """What a manifest says of an export, of a page that lies by itself.

    Raises:
        ConfigError: It is no page that ``write`` wrote.
        DragomanError: It cannot be read.
    """
    with explained(file):
        data = file.read_bytes()
    found = re.search(rb'<script type="application/json" id="content">([^<]+)</script>', data)
    try:
        known = json.loads(found[1] if found else b"")["facts"]
        known = {"quantization": known["quantization"], "bundle": known.get("bundle")}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"{file}: no translator in a page, as `dragoman export --to page` writes it") from None
    digest = hashlib.sha256(data).hexdigest()
    return {"export": "page", **known, "files": {file.name: {"bytes": len(data)}}, "sha256": digest}


def normaliser(body: bytes) -> dict[str, Any]:
    """What SentencePiece does to a text before it cuts it, from its NormalizerSpec.

    Raises:
        ConfigError: It leaves spaces as they are, which no script here does.
    """
    said = {number: value for number, _, value in fields(body)}
    if not said.get(_ESCAPE, 1):
        raise ConfigError(f"this model cannot be written for {TITLE}: its subwords do not write spaces as U+2581")
    rules = said.get(_MAP, b"")
    return {
        "map": base64.b64encode(rules if isinstance(rules, bytes) else b"").decode(),
        "prefix": bool(said.get(_PREFIX, 1)),
        "trim": bool(said.get(_TRIM, 1)),
    }


_MAP, _PREFIX, _TRIM, _ESCAPE = 2, 3, 4, 5  # fields of a NormalizerSpec


def _check(tokenizer: Tokenizer) -> None:
    """Refuse whole words."""
    if is_of_words(tokenizer.proto):
        raise ConfigError(f"this model cannot be written for {TITLE}: it is a parser, and the page translates")
