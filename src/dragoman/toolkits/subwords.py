"""Foreign subwords: rewrite a SentencePiece model so that its ids are those of another vocabulary.

Marian and its heirs split text with SentencePiece, but number the pieces by a list of their own. Source and target have
two models and may share one list. ``Vocabulary`` is such a list in the order of our ids; ``rewritten`` makes a model
with these ids.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece
import torch
from torch import Tensor

from dragoman.data.sentencepiece_check import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    Parts,
    Piece,
    bytes_field,
    fields,
    normalizer_map,
    normalizer_name,
    number_field,
    parts,
)  # fmt: skip
from dragoman.data.tokenizer import BOS_ID, EOS_ID, MAX_MODEL_BYTES, PAD_ID, TARGET, UNK_ID, Tokenizer
from dragoman.errors import BundleError
from dragoman.model.weights import NEVER

SPECIAL = (("<pad>", CONTROL), ("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL))
"""Name and type of our first four ids, in their order."""
LEFT_OUT = (4, 5)  # fields of a ModelProto: self-test samples; a denormaliser, which translation does not use
_MODEL_TYPE, _BYTE_FALLBACK, _SUFFIXES = 3, 35, 24  # fields of the trainer's settings


class Vocabulary(NamedTuple):
    """Pieces of one side or of both in the order of our ids, and the rows of their tensors."""

    pieces: tuple[str, ...]  # from id 4 on
    rows: tuple[int, ...]  # by our id, special ones too: its row in the foreign tensors; -1: none
    never: tuple[int, ...]  # our ids that the foreign model cannot choose
    n_listed: int  # number of foreign pieces, those too that are left out here

    def take(self, table: Tensor, what: str) -> Tensor:
        """Return the rows of a foreign table ``(V, ...)`` in our order; zeros for ids without a row.

        Raises:
            BundleError: The table, which ``what`` names, has not a row for each piece of the foreign list.
        """
        if len(table) < self.n_listed:
            raise BundleError(f"{what} has {len(table):,} rows, its vocabulary more: {self.n_listed:,} pieces")
        if len(table) > self.n_listed:
            raise BundleError(
                f"{what} has {len(table):,} rows, its vocabulary only {self.n_listed:,} pieces: if it was cut off, "
                "copy it again; if it is whole, add a piece of a new name for each row that has none"
            )
        return torch.cat((table, torch.zeros_like(table[:1])))[list(self.rows)].contiguous()

    def bias(self, foreign: Tensor | None, what: str) -> Tensor | None:
        """Return the generator's bias in our order, very low for ids that can never be chosen; None if none is needed.

        Raises:
            BundleError: See ``take``.
        """
        if foreign is None and not self.never:
            return None
        bias = torch.zeros(len(self.rows)) if foreign is None else self.take(foreign, what)
        bias[list(self.never)] = NEVER
        return bias


def numbered(ids: Mapping[str, Any], name: str) -> list[str]:
    """Return the pieces in the order of their ids.

    Args:
        ids: Content of a vocabulary file, the id of each piece.
        name: Name of the file in messages.

    Raises:
        BundleError: The ids are not 0, 1, 2, ..., or a piece is not a text of one line.
    """
    pieces = {i: piece for piece, i in ids.items() if type(i) is int}
    if sorted(pieces) != list(range(len(ids))):
        raise BundleError(f"{name}: should give the {len(ids):,} pieces the ids 0 to {len(ids) - 1:,}, once each")
    listed = [pieces[i] for i in range(len(ids))]
    check_pieces(listed, name)
    return listed


def folded(lists: Sequence[list[str]]) -> list[list[str]]:
    """Return one list for both sides if theirs are equal, else the first and the last.

    Two equal lists would be taken for two vocabularies, whose embeddings cannot be tied.
    """
    return [lists[0]] if lists[0] == lists[-1] else [lists[0], lists[-1]]


def check_pieces(listed: Sequence[str], name: str) -> None:
    """Check that every piece is a text of one line.

    Raises:
        BundleError: One is empty, holds a line break or is not valid Unicode.
    """
    for i, piece in enumerate(listed):
        if not piece or "\n" in piece or any("\ud800" <= letter <= "\udfff" for letter in piece):
            raise BundleError(f"{name}: piece {i:,} is {piece[:40]!r}, which no text can hold; copy the file again")


def check_belongs(model: Parts, listed: Sequence[str], name: str) -> None:
    """Check that a SentencePiece model belongs to a vocabulary.

    Raises:
        BundleError: The vocabulary lacks more than half of its pieces.
    """
    texts = _texts(model)
    n_lacking = len(set(texts) - set(listed))
    if 2 * n_lacking > len(texts):
        raise BundleError(
            f"{name}: {n_lacking:,} of its {len(texts):,} pieces are not in the vocabulary; it belongs to another model"
        )


def read_model(proto: bytes, name: str) -> Parts:
    """Parse a foreign SentencePiece model.

    Raises:
        BundleError: The bytes are no such model, or a model of an unsupported kind.
    """
    if len(proto) > MAX_MODEL_BYTES:
        raise BundleError(f"{name}: {len(proto):,} bytes is too much for a tokenizer (at most {MAX_MODEL_BYTES:,})")
    try:
        model = parts(proto, LEFT_OUT)
        settings = {number: value for number, _, value in fields(model.trainer)}
        kind = settings.get(_MODEL_TYPE, 1)
        strange = sorted({piece.kind for piece in model.pieces} - {NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE})
    except ValueError as error:
        raise BundleError(f"{name}: not a SentencePiece model, or damaged ({error}); copy it again") from None
    if kind not in (1, 2):
        raise BundleError(
            f"{name}: its subwords are neither a unigram model nor byte pairs; only those can be imported"
        )
    if settings.get(_SUFFIXES, 0):
        raise BundleError(f"{name}: writes spaces at the end of words, which cannot be imported")
    if strange:
        raise BundleError(f"{name}: has pieces of type {strange[0]} (defined by a user), which cannot be imported")
    return model


def vocabulary(
    listed: Sequence[str],
    special: tuple[int | None, int, int | None, int | None],
    models: Sequence[Parts],
    kept_pieces: frozenset[str] | None = None,
) -> Vocabulary:
    """Return a foreign list of pieces in our order, special ids first.

    Args:
        listed: The piece of each foreign id.
        special: The foreign ids whose rows our pad, unk, bos and eos get; None: no such row, zeros are used. A row that
            serves two of them can be chosen as eos or unk alone.
        models: SentencePiece models that use this list.
        kept_pieces: The pieces to keep; None: all.
    """
    names = {name for name, _ in SPECIAL}
    order = [i for i, piece in enumerate(listed) if i not in special and piece not in names]
    if kept_pieces is not None:
        order = [i for i in order if listed[i] in kept_pieces or TARGET.fullmatch(listed[i])]
    # Pieces that the models may produce but the list lacks are read with the row of unk, and never chosen.
    produced = {text for model in models for text in _texts(model)}
    lacking = sorted((produced if kept_pieces is None else produced & kept_pieces) - {*listed, *names})
    pad, unk, bos, eos = special
    rows = [*(-1 if i is None else i for i in special), *order]
    never = [ours for ours, i, others in ((PAD_ID, pad, (unk, bos, eos)), (BOS_ID, bos, (pad, unk, eos)))
             if i is None or i in others]  # fmt: skip
    never += range(len(rows), len(rows) + len(lacking))
    names_of_rows = (*(listed[i] for i in order), *lacking)
    return Vocabulary(names_of_rows, (*rows, *[unk] * len(lacking)), tuple(never), len(listed))


def tokenizers(models: Sequence[Parts], vocabularies: Sequence[Vocabulary], name: str) -> tuple[Tokenizer, Tokenizer]:
    """Return the tokenizers of both sides; each list holds one entry for both, or two.

    A model that both sides share is the source's; the target's has the rules of our normalisation for targets.
    """
    src, tgt = (Tokenizer(rewritten(models[i], vocabularies[i]), name) for i in (0, -1))
    return src, src.for_targets if src == tgt else tgt


def needed(models: Sequence[Parts], texts: Sequence[str]) -> frozenset[str]:
    """Return the pieces that any of the models needs to split some texts as before."""
    pieces: frozenset[str] = frozenset()
    for model in models:
        everything = [piece.text.decode() for piece in model.pieces]
        whole = Tokenizer(rewritten(model, vocabulary(everything, (0, 0, 0, 0), [model])))
        pieces |= used(model, {piece for row in whole.encode(texts) for piece in whole.pieces(row)})
    return pieces


def cut_differently_by_sentencepiece(
    folder: Path, texts: Sequence[str], ids: Sequence[Sequence[int]]
) -> list[bool] | None:
    """Return for each text True if SentencePiece, with the source's model in an export, does not give its ids.

    Users of such an export call it so. None: the folder holds no such model.
    """
    paths = [folder / name for name in ("joint.spm", "src.spm") if (folder / name).is_file()]
    if not paths:
        return None
    plain = sentencepiece.SentencePieceProcessor(model_file=str(paths[0]))
    return [plain.encode(text) != list(row) for text, row in zip(texts, ids, strict=True)]


def _texts(model: Parts) -> list[str]:
    """Return the pieces of a model that may come out of a text."""
    return [piece.text.decode() for piece in model.pieces if piece.kind in (NORMAL, BYTE)]


def used(model: Parts, pieces: set[str]) -> frozenset[str]:
    """Return the pieces to keep, so that texts which were split into ``pieces`` are split so again.

    These are all their parts, which byte pairs are merged from, and all single characters and bytes.
    """
    return frozenset(
        {
            part
            for piece in pieces
            for i in range(len(piece))
            for j in range(i, len(piece))
            if (part := piece[i : j + 1])
        }
        | {piece.text.decode() for piece in model.pieces if piece.kind == BYTE or len(piece.text.decode()) == 1}
    )


def rewritten(model: Parts, vocabulary: Vocabulary) -> bytes:
    """Return the model with the ids of the vocabulary; a piece that it lacks becomes unused: decoded, never split off.

    A single character is the exception. SentencePiece splits off a character that it does not know. Marian and its
    heirs look it up in the list for both sides, where the other side's model may have put it. So it is split off here
    too, with the score of an unknown one. (Marian looks up several in a row as one piece.)
    """
    known = {piece.text.decode(): piece for piece in model.pieces if piece.kind in (NORMAL, BYTE, UNUSED)}
    lowest = min(piece.score for piece in model.pieces) - 1
    pieces = [Piece(name.encode(), 0.0, kind) for name, kind in SPECIAL]
    has_bytes = sum(known[text].kind == BYTE for text in vocabulary.pieces if text in known) == 256
    spells = any(piece.kind == BYTE for piece in model.pieces)  # unknown characters in bytes
    for text, row in zip(vocabulary.pieces, vocabulary.rows[len(SPECIAL) :], strict=True):
        is_looked_up = len(text) == 1 and not spells and row not in vocabulary.rows[: len(SPECIAL)]
        piece = known.get(text, Piece(text.encode(), lowest, NORMAL if is_looked_up else UNUSED))
        pieces.append(piece._replace(kind=UNUSED) if piece.kind == BYTE and not has_bytes else piece)
    settings = {number: value for number, _, value in fields(model.trainer)}
    trainer = [(_MODEL_TYPE, settings.get(_MODEL_TYPE, 1)), (4, len(pieces)), (_BYTE_FALLBACK, int(has_bytes))]
    trainer += [(40, UNK_ID), (41, BOS_ID), (42, EOS_ID), (43, PAD_ID)]
    switches = {number: value for number, _, value in fields(model.normalizer) if isinstance(value, int)}
    normalizer = bytes_field(1, normalizer_name(model.normalizer).encode()) + bytes_field(
        2, normalizer_map(model.normalizer)
    )
    return (
        b"".join(bytes_field(1, _written(piece)) for piece in pieces)
        + bytes_field(2, b"".join(number_field(field, value) for field, value in trainer if isinstance(value, int)))
        + bytes_field(3, normalizer + b"".join(number_field(field, value) for field, value in sorted(switches.items())))
    )


def _written(piece: Piece) -> bytes:
    score = bytes([2 << 3 | 5]) + struct.pack("<f", piece.score)
    return bytes_field(1, piece.text) + score + number_field(3, piece.kind)
