"""Subwords as ``tokenizer.json``, the format of the package tokenizers, which transformers.js reads too.

https://huggingface.co/docs/tokenizers describes its parts. Byte pairs become a list of merges, in the order of the
scores of the merged pieces; a unigram model keeps its scores. In a model of several target languages the tags, such as
``>>fr<<``, are recognised anywhere in a text, as nothing else names the language there.
"""

from __future__ import annotations

from typing import Any

from dragoman.data.sentencepiece_check import is_unigram
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer

N_SPECIAL = 4  # pad, unk, bos, eos


def tokenizer_json(tokenizer: Tokenizer, src_eos: bool = True) -> dict[str, Any]:
    """Return the content of the file; with ``src_eos`` every text ends with eos."""
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    special = [
        dict(id=i, content=pieces[i], single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
        for i in range(N_SPECIAL)
    ]
    if len(tokenizer.targets) > 1:  # with the space that follows it, if there is one
        special += [
            dict(id=i, content=pieces[i], single_word=False, lstrip=False, rstrip=True, normalized=False, special=True)
            for i in sorted(tokenizer.targets.values())
        ]
    spaces = [dict(type="Prepend", prepend="▁"), dict(type="Replace", pattern={"String": " "}, content="▁")]
    back = [
        dict(type="Replace", pattern={"String": "▁"}, content=" "),
        dict(type="ByteFallback"),
        dict(type="Fuse"),
        dict(type="Strip", content=" ", start=1, stop=0),
    ]
    eos = pieces[EOS_ID]
    end = [{"SpecialToken": dict(id=eos, type_id=0)}] if src_eos else []
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": dict(type="Sequence", normalizers=spaces), "pre_tokenizer": None,
        "post_processor": dict(
            type="TemplateProcessing",
            single=[{"Sequence": dict(id="A", type_id=0)}, *end],
            pair=[{"Sequence": dict(id="A", type_id=0)}, *end, {"Sequence": dict(id="B", type_id=0)}, *end],
            special_tokens={eos: dict(id=eos, ids=[EOS_ID], tokens=[eos])},
        ),
        "decoder": dict(type="Sequence", decoders=back), "model": _model(tokenizer, pieces),
    }  # fmt: skip


def _model(tokenizer: Tokenizer, pieces: list[str]) -> dict[str, Any]:
    scores, are_bytes = tokenizer.scores, tokenizer.byte_ids
    has_bytes = bool(are_bytes)
    if is_unigram(tokenizer.proto):
        vocabulary = [[piece, score] for piece, score in zip(pieces, scores, strict=True)]
        return dict(type="Unigram", unk_id=UNK_ID, vocab=vocabulary, byte_fallback=has_bytes)
    plain = {piece: i for i, piece in enumerate(pieces) if i >= N_SPECIAL and i not in are_bytes}
    merges: list[list[str]] = []
    for piece in sorted(plain, key=lambda piece: -scores[plain[piece]]):
        halves = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        known = [(left, right) for left, right in halves if left in plain and right in plain]
        merges += [list(pair) for pair in sorted(known, key=lambda pair: (plain[pair[0]], plain[pair[1]]))]
    return dict(
        type="BPE", dropout=None, unk_token=pieces[UNK_ID], continuing_subword_prefix=None, end_of_word_suffix=None,
        fuse_unk=True, byte_fallback=has_bytes, ignore_merges=False,
        vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges,
    )  # fmt: skip
