"""Subwords as ``tokenizer.json``, the format of the package tokenizers, which transformers.js reads too.

https://huggingface.co/docs/tokenizers describes its parts. Byte pairs become a list of merges, in the order of the
scores of the merged pieces; a unigram model keeps its scores. In a model of several target languages the tags, such as
``>>fr<<``, are recognised anywhere in a text, as nothing else names the language there.

Our normalisation becomes a list of normalizers that both programs apply exactly: NFC, then its replacements, then the
spaces. The map of another program, such as nmt_nfkc, has no such form: the normalizer ``Precompiled`` drops marks of
decomposed letters in tokenizers, and is NFKC in transformers.js, whatever its map.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dragoman.data.normalisation import replacements
from dragoman.data.sentencepiece_check import collapses_spaces, has_dummy_prefix, is_unigram
from dragoman.data.tokenizer import EOS_ID, UNK_ID, Tokenizer
from dragoman.files import final_name
from dragoman.toolkits.writing import write_json

logger = logging.getLogger(__name__)

N_SPECIAL = 4  # pad, unk, bos, eos
SPACES_BEFORE = 256
"""Number of spaces dropped at the beginning of a decoded text, where SentencePiece drops all."""


def why_no_json(tokenizer: Tokenizer) -> str:
    """Return the reason why the file cannot hold a tokenizer; "" if it can."""
    if tokenizer.composes or tokenizer.normalisation == "none":
        return ""
    return (
        f"its subwords normalise text by {tokenizer.normalisation}, which tokenizers and transformers.js do otherwise"
    )


def write_tokenizer_json(tokenizer: Tokenizer, folder: Path, src_eos: bool = True) -> bool:
    """Write ``tokenizer.json`` into a folder; return False, and log the reason, if it cannot hold the tokenizer."""
    if reason := why_no_json(tokenizer):
        logger.warning("%s: no tokenizer.json is written: %s; use the .spm files there", final_name(folder), reason)
        return False
    write_json(folder / "tokenizer.json", tokenizer_json(tokenizer, src_eos))
    return True


def tokenizer_json(tokenizer: Tokenizer, src_eos: bool = True) -> dict[str, Any]:
    """Return the content of the file, unless ``why_no_json`` objects; with ``src_eos`` every text ends with eos."""
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
    back = [
        dict(type="Replace", pattern={"String": "▁"}, content=" "),
        dict(type="ByteFallback"),
        dict(type="Fuse"),
        dict(type="Strip", content=" ", start=SPACES_BEFORE if collapses_spaces(tokenizer.proto) else 1, stop=0),
    ]
    eos = pieces[EOS_ID]
    end = [{"SpecialToken": dict(id=eos, type_id=0)}] if src_eos else []
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": dict(type="Sequence", normalizers=_normalizers(tokenizer)), "pre_tokenizer": None,
        "post_processor": dict(
            type="TemplateProcessing",
            single=[{"Sequence": dict(id="A", type_id=0)}, *end],
            pair=[{"Sequence": dict(id="A", type_id=0)}, *end, {"Sequence": dict(id="B", type_id=0)}, *end],
            special_tokens={eos: dict(id=eos, ids=[EOS_ID], tokens=[eos])},
        ),
        "decoder": dict(type="Sequence", decoders=back), "model": _model(tokenizer, pieces),
    }  # fmt: skip


def cut_differently_by_json(
    folder: Path, texts: Sequence[str], ids: Sequence[Sequence[int]], src_eos: bool = True
) -> list[bool] | None:
    """Return for each text True if the file in a folder does not give its ids; None if it is not there, or not usable.

    Args:
        ids: Our ids of each text, without eos.
        src_eos: True if the file puts eos behind each text.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    try:
        theirs = import_module("tokenizers").Tokenizer.from_file(str(path))
    except ImportError:
        return None
    end = [EOS_ID] if src_eos else []
    return [theirs.encode(text).ids != [*row, *end] for text, row in zip(texts, ids, strict=True)]


def _normalizers(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Return what is done to a text before it is cut, in order."""
    rules = [dict(type="NFC"), *_replaced(replacements(tokenizer.normalisation))] if tokenizer.composes else []
    prefix = has_dummy_prefix(tokenizer.proto)
    if not collapses_spaces(tokenizer.proto):
        before = [dict(type="Prepend", prepend="▁")] if prefix else []
        return [*rules, *before, dict(type="Replace", pattern={"String": " "}, content="▁")]
    # The space before a text joins those at its beginning, so that nothing is left of a blank text.
    before = [dict(type="Prepend", prepend=" ")] if prefix else []
    return [
        *rules, *before, dict(type="Replace", pattern={"Regex": " {2,}"}, content=" "),
        dict(type="Strip", strip_left=not prefix, strip_right=True),
        dict(type="Replace", pattern={"String": " "}, content="▁"),
    ]  # fmt: skip


def _replaced(table: dict[str, str]) -> list[dict[str, Any]]:
    """Return normalizers that replace as one pass over a text does: no replacement holds what a later one replaces.

    Texts of several characters come first, as each is longer than its characters.
    """
    next_of: dict[str, str] = defaultdict(str)  # of a character that is left out before these
    of_new: dict[str, str] = defaultdict(str)  # of a replacement: the characters that it stands for
    several = []
    for text, new in table.items():
        if len(text) == 1:
            of_new[new] += text
        elif text[1:] == new:
            next_of[text[0]] += new
        else:
            several.append(dict(type="Replace", pattern={"String": text}, content=new))
    left_out: dict[str, str] = defaultdict(str)
    for first, others in next_of.items():
        left_out[others] += first
    return [
        *(_pattern(f"{_class(first)}(?={_class(others)})", "") for others, first in left_out.items()),
        *several,
        *(_pattern(_class(characters), new) for new, characters in of_new.items()),
    ]


def _pattern(regex: str, new: str) -> dict[str, Any]:
    return dict(type="Replace", pattern={"Regex": regex}, content=new)


def _class(characters: str) -> str:
    """Return a class of characters as a regular expression of Oniguruma and JavaScript; none needs an escape."""
    spans: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if spans and spans[-1][1] == code - 1:
            spans[-1][1] = code
        else:
            spans.append([code, code])
    return "[" + "".join(chr(a) if a == b else f"{chr(a)}-{chr(b)}" for a, b in spans) + "]"


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
