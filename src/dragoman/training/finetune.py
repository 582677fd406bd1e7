"""Fine-tuning: training that starts from the weights of another run, with its subwords or with new ones.

With the same subwords training starts from exactly the weights of the parent. With new subwords every row of the
embeddings and of the generator is set: a piece that the old vocabulary contains keeps its row. Any other
piece gets the mean of the rows of the old pieces into which its text is split. All other weights do not depend on the
vocabulary and are kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import Config
from dragoman.data.seen_words import FILE as WORDS
from dragoman.data.seen_words import SeenWords, learn
from dragoman.data.store import Store
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from dragoman.files import write_bytes, write_text
from dragoman.model.weights import never_chosen, untied
from dragoman.ready import is_ready, run_folder
from dragoman.translation.language_pairs import trained_pairs

PARENT = "parent.json"
PARENT_WORDS = f"parent.{WORDS}"
PATH = "path"
"""Entry of ``parent.json``: the path of the parent from the folder of the run; a ready bundle has none."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def adapt(
    parent: Bundle, from_run: Path | str, tokenizers: tuple[Tokenizer, Tokenizer], run: Path
) -> tuple[dict[str, Tensor], str]:
    """Return the weights to start from, and a description of what became of the embeddings; note the parent in ``run``.

    Args:
        parent: The bundle to fine-tune.
        from_run: Run folder, bundle, or name of a ready bundle; its name and path are noted.
        tokenizers: Tokenizers of the new run, source and target.

    Returns:
        Weights by the names of ``model.weights.untied``, and the description.

    Raises:
        DragomanError: ``parent.json``, or the file of the words that the parent saw, cannot be written.
    """
    weights = with_all_choosable(untied(parent.model))
    description = "its subwords are kept"
    old, facts = (parent.src_tokenizer, parent.tgt_tokenizer), {}
    if tokenizers != old:
        src, tgt = (composition(*pair) for pair in zip(old, tokenizers, strict=True))
        rows = {"src_embed.weight": src, "tgt_embed.weight": tgt, "generator.weight": tgt, "generator.bias": tgt}
        weights = {key: composed(tensor, rows[key]) if key in rows else tensor for key, tensor in weights.items()}
        sides = [tgt] if tokenizers[0].shares_pieces(tokenizers[1]) and old[0].shares_pieces(old[1]) else [src, tgt]
        copied = sum(len(parts) == 1 for side in sides for parts in side)
        facts = {"copied_rows": copied, "composed_rows": sum(map(len, sides)) - copied}
        description = f"new subwords: {copied:,} rows copied, {facts['composed_rows']:,} composed as means of others"
    trained = trained_pairs(parent)
    name: dict[str, Any] = {"name": Path(from_run).resolve().name, "is_ready": run_folder(from_run) != Path(from_run)}
    if not name["is_ready"]:
        name[PATH] = os.path.relpath(Path(from_run).resolve(), run.resolve())
    pairs: dict[str, Any] = {"pairs": trained} if trained else {}
    digest = parent.manifest["files"]["model.safetensors"]["sha256"]
    if parent.words is not None:
        pairs["languages"] = parent.config.data.pairs
        write_bytes(run / PARENT_WORDS, parent.words.to_bytes())
    write_text(run / PARENT, json.dumps({**name, "weights_sha256": digest, **pairs, **facts}, indent=2) + "\n")
    return weights, description


def with_all_choosable(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights in which subwords that an imported model never chose are as likely as an unknown one.

    Their rows are those of unk already. No training could raise the bias that rules them out.
    """
    bias = weights.get("generator.bias")
    ruled_out = [i for i in never_chosen(bias) if i > EOS_ID]
    if bias is None or not ruled_out:
        return weights
    bias = bias.clone()
    bias[ruled_out] = bias[UNK_ID].item()
    return {**weights, "generator.bias": bias}


def composition(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """Return for each id of ``new`` the ids of ``old`` whose mean its row will be: the same piece, or its parts."""
    known = {piece: i for i, piece in enumerate(old.pieces(range(old.vocab_size)))}
    pieces = new.pieces(range(new.vocab_size))
    cuts = old.encode_inside([piece.replace("\u2581", " ") for piece in pieces])
    result = []
    for i, (piece, cut) in enumerate(zip(pieces, cuts, strict=True)):
        if i <= EOS_ID:
            result.append([i])
        elif piece in known:
            result.append([known[piece]])
        else:  # a byte piece is not text and has no parts
            result.append([UNK_ID] if _BYTE.fullmatch(piece) else cut or [UNK_ID])
    return result


def composed(table: Tensor, parts: Sequence[Sequence[int]]) -> Tensor:
    """Return rows ``(len(parts), ...)``, each the mean of the named rows of ``table``; sums are in float64."""
    return torch.stack([table[list(ids)].double().mean(0) for ids in parts]).to(table.dtype)


def parent_of(run: Path) -> dict[str, Any]:
    """Return the facts about the parent that ``adapt`` noted in ``run``; empty for a run of its own."""
    path = run / PARENT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def parent_words(run: Path) -> list[object]:
    """Return the options of ``dragoman train`` by which a run was fine-tuned; none for a run of its own."""
    parent = parent_of(run)
    if not parent:
        return []
    beside, there = run.parent / parent["name"], parent["name"]
    if PATH in parent:
        noted = Path(os.path.normpath(run.resolve() / parent[PATH]))
        noted = noted if Path(f"{run}").is_absolute() else Path(os.path.relpath(noted))  # as the run was named
        there = beside if beside.exists() and not noted.exists() else noted
    elif not parent.get("is_ready", is_ready(parent["name"]) and not beside.exists()):  # not noted by older versions
        there = beside
    return ["--from-run", there, *(["--new-subwords"] if "composed_rows" in parent else [])]


def words_seen(config: Config, run: Path, store: Store, tokenizer: Tokenizer) -> SeenWords | None:
    """Return the words of the sources that a run and its parent were trained on; None if the parent's are not known.

    Words that a parent learned to translate into other languages alone do not count.
    """
    words, parent = learn(store, tokenizer), parent_of(run)
    if not parent:
        return words
    if "languages" not in parent:
        return None
    shared = {tuple(pair) for pair in parent["languages"]} & set(config.data.pairs)
    return words.union(SeenWords.read(run / PARENT_WORDS)) if shared else words
