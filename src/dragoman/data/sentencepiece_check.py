"""Is this a SentencePiece model of the kind that dragoman uses? Asked before SentencePiece sees the bytes.

SentencePiece trusts its model: one piece of 100 kB can end the process
(https://github.com/google/sentencepiece/issues/1263), and a normalisation map is read as it is. So the wire format of
its ModelProto (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto) is read here first:
the pieces (field 1, each with text, score and type), the trainer's settings (2) and the normaliser (3), nothing else.
The normaliser is the identity, or, in an imported model, one of those that SentencePiece has built in, byte for byte.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import sentencepiece

MAX_PIECES = 1_000_000
MAX_PIECE_BYTES = 4096

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6
"""SentencePiece.Type. No text is cut into what is control (after the first four: tags) or unused; of these two only the
unused is decoded. 4, defined by a user, is not known here."""
NORMALIZERS = ("identity", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf")
"""What SentencePiece can do to a text before it is cut, by its names."""

_ALL_BYTES = {f"<0x{value:02X}>".encode() for value in range(256)}
_FIRST_TYPES = [CONTROL, UNKNOWN, CONTROL, CONTROL]  # pad, unk, bos, eos

Field = tuple[int, int, int | bytes]  # number, wire type, value: of _VARINT the number, else the bytes


def check_model(proto: bytes) -> None:
    """Refuse the bytes of a ``.spm`` file that are no model of the kind learned here.

    Raises:
        ValueError: Says what is wrong, without the file's name.
    """
    found = parts(proto)
    _check_normalizer(found.normalizer)
    _check_trainer(found.trainer)
    _check_pieces(found.pieces)


class Piece(NamedTuple):
    """One piece of a model."""

    text: bytes
    score: float
    kind: int


class Parts(NamedTuple):
    """A ModelProto, taken apart."""

    pieces: list[Piece]
    trainer: bytes
    normalizer: bytes


def parts(proto: bytes, also: tuple[int, ...] = ()) -> Parts:
    """Take a model apart.

    Args:
        also: Fields that may be there beside those three, and are left out.

    Raises:
        ValueError: It is not one, or holds what none should.
    """
    found: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    for number, wire, value in fields(proto):
        if number in also:
            continue
        if wire != _BYTES or not isinstance(value, bytes) or number not in (1, 2, 3):
            raise ValueError(f"field {number} does not belong there")
        found[number - 1].append(value)
    pieces, trainer, normalizer = found
    if not 4 < len(pieces) <= MAX_PIECES or len(trainer) != 1 or len(normalizer) != 1:
        raise ValueError(f"it has {len(pieces):,} pieces, {len(trainer)} trainers, {len(normalizer)} normalisers")
    return Parts([_piece(piece, i) for i, piece in enumerate(pieces)], trainer[0], normalizer[0])


def _check_pieces(pieces: list[Piece]) -> None:
    types = [piece.kind for piece in pieces]
    for i, piece in enumerate(pieces):
        if piece.kind == BYTE and piece.text not in _ALL_BYTES:
            raise ValueError(f"piece {i} is marked as a byte but is not one")
    if len({piece.text for piece in pieces}) < len(pieces):
        raise ValueError("a piece appears twice")
    if types[:4] != _FIRST_TYPES or not set(types[4:]) <= {NORMAL, BYTE, UNUSED, CONTROL}:
        raise ValueError("its special pieces are not pad, unk, bos, eos, in this order, and tags")
    if types.count(BYTE) not in (0, 256):
        raise ValueError("some of the 256 bytes are missing")


def _piece(body: bytes, i: int) -> Piece:
    text, score, kind = b"", math.nan, NORMAL
    for number, wire, value in fields(body):
        if (number, wire) == (1, _BYTES) and isinstance(value, bytes) and not text:
            text = value
        elif (number, wire) == (2, _FIXED32) and isinstance(value, bytes) and math.isnan(score):
            (score,) = struct.unpack("<f", value)
        elif (number, wire) == (3, _VARINT) and isinstance(value, int):
            kind = value
        else:
            raise ValueError(f"piece {i}: field {number} does not belong there")
    if not 0 < len(text) <= MAX_PIECE_BYTES:
        raise ValueError(f"piece {i} has {len(text):,} bytes (1 to {MAX_PIECE_BYTES:,} are possible)")
    if not math.isfinite(score):
        raise ValueError(f"piece {i}: its score is no finite number")
    if b"\0" in text:
        raise ValueError(f"piece {i} holds NUL")
    text.decode("utf-8")  # a UnicodeDecodeError is a ValueError
    return Piece(text, score, kind)


def _check_normalizer(body: bytes) -> None:
    """Its name (1) and its map (2) must be one of SentencePiece's own; there are three switches beside (3 to 5)."""
    for number, wire, _ in fields(body):
        if (number, wire) not in ((1, _BYTES), (2, _BYTES), (3, _VARINT), (4, _VARINT), (5, _VARINT)):
            raise ValueError(f"field {number} does not belong into its normaliser")
    name = normalizer_name(body)
    if name not in NORMALIZERS:
        raise ValueError(f"it changes the text before it cuts it, in a way of its own ({name[:40]!r})")
    maps = [value for number, _, value in fields(body) if number == 2]
    if (maps or [b""]) != [built_in(name)]:
        raise ValueError(
            "it changes the text before it cuts it, and not as SentencePiece does; it is another program's"
        )


def normalizer_name(body: bytes) -> str:
    """What the normaliser of a model is called; nothing said is SentencePiece's default."""
    names = [value for number, _, value in fields(body) if number == 1 and isinstance(value, bytes)]
    return names[-1].decode("utf-8", "replace") if names else "nmt_nfkc"


@lru_cache(len(NORMALIZERS))
def built_in(name: str) -> bytes:
    """The map of one of ``NORMALIZERS``, as the SentencePiece that is installed writes it."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b"]), model_writer=model, model_type="char", vocab_size=6, hard_vocab_limit=False,
        normalization_rule_name=name, minloglevel=2,
    )  # fmt: skip
    (normalizer,) = (value for number, _, value in fields(model.getvalue()) if number == 3 and isinstance(value, bytes))
    return b"".join(value for number, _, value in fields(normalizer) if number == 2 and isinstance(value, bytes))


def normalizer_of(proto: bytes) -> str:
    """Which of ``NORMALIZERS`` a model has that ``check_model`` lets pass."""
    return next(
        normalizer_name(value) for number, _, value in fields(proto) if number == 3 and isinstance(value, bytes)
    )


def _check_trainer(body: bytes) -> None:
    """Settings of the trainer: of the fields only the model's type matters (3: 1 is unigram, 2 is bpe, 3 is words)."""
    kind = 1
    for number, _, value in fields(body):
        if number == 3 and isinstance(value, int):
            kind = value
        if isinstance(value, bytes) and len(value) > MAX_PIECE_BYTES:
            raise ValueError(f"setting {number} of the trainer has {len(value):,} bytes")
    if kind not in (1, 2, 3):
        raise ValueError(
            "it is neither of byte pairs nor a unigram model, nor of words; it was learned by another program"
        )


def is_unigram(proto: bytes) -> bool:
    """Whether a model that ``check_model`` lets pass is a unigram model."""
    return _kind(proto) == 1


def is_of_words(proto: bytes) -> bool:
    """Whether a model that ``check_model`` lets pass is one of whole words."""
    return _kind(proto) == 3


def _kind(proto: bytes) -> int:
    trainer = next(value for number, _, value in fields(proto) if number == 2 and isinstance(value, bytes))
    kinds = [value for number, _, value in fields(trainer) if number == 3 and isinstance(value, int)]
    return kinds[-1] if kinds else 1


def fields(body: bytes) -> Iterator[Field]:
    """The fields of one message of protocol buffers, see https://protobuf.dev/programming-guides/encoding/."""
    place = 0
    while place < len(body):
        key, place = _varint(body, place)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, place = _varint(body, place)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, place = _varint(body, place)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"byte {place}: wire type {wire}")
        if size > len(body) - place:
            raise ValueError(f"byte {place}: {size:,} bytes should follow, and there are {len(body) - place:,}")
        yield number, wire, body[place : place + size]
        place += size


def _varint(body: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, least first, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(body):
            raise ValueError("it ends inside a number")
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError(f"byte {place}: a number of more than ten bytes")
