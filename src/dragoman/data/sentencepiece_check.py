"""Is this a SentencePiece model that ``Tokenizer.learn`` could have made? Asked before SentencePiece sees the bytes.

SentencePiece trusts its model: one piece of 100 kB can end the process
(https://github.com/google/sentencepiece/issues/1263), and a normalisation map is read as it is. So the wire format of
its ModelProto (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto) is read here first:
the pieces (field 1, each with text, score and type), the trainer's settings (2) and the identity as normaliser (3),
nothing else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

MAX_PIECES = 1_000_000
MAX_PIECE_BYTES = 4096

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6  # SentencePiece.Type; 4 and 5 are not learned here
_ALL_BYTES = {f"<0x{value:02X}>".encode() for value in range(256)}
_FIRST_TYPES = [_CONTROL, _UNKNOWN, _CONTROL, _CONTROL]  # pad, unk, bos, eos

Field = tuple[int, int, int | bytes]  # number, wire type, value: of _VARINT the number, else the bytes


def check_model(proto: bytes) -> None:
    """Refuse the bytes of a ``.spm`` file that are no model of the kind learned here.

    Raises:
        ValueError: Says what is wrong, without the file's name.
    """
    found: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    for number, wire, value in _fields(proto):
        if wire != _BYTES or not isinstance(value, bytes) or number not in (1, 2, 3):
            raise ValueError(f"field {number} does not belong there")
        found[number - 1].append(value)
    pieces, trainer, normalizer = found
    if not 4 < len(pieces) <= MAX_PIECES or len(trainer) != 1 or len(normalizer) != 1:
        raise ValueError(f"it has {len(pieces):,} pieces, {len(trainer)} trainers, {len(normalizer)} normalisers")
    _check_normalizer(normalizer[0])
    _check_trainer(trainer[0])
    _check_pieces(pieces)


def _check_pieces(pieces: list[bytes]) -> None:
    texts, types = set(), []
    for i, piece in enumerate(pieces):
        text, kind = _piece(piece, i)
        texts.add(text)
        types.append(kind)
        if kind == _BYTE and text not in _ALL_BYTES:
            raise ValueError(f"piece {i} is marked as a byte but is not one")
    if len(texts) < len(pieces):
        raise ValueError("a piece appears twice")
    if types[:4] != _FIRST_TYPES or not set(types[4:]) <= {_NORMAL, _BYTE}:
        raise ValueError("its special pieces are not pad, unk, bos, eos, in this order, and no others")
    if types.count(_BYTE) not in (0, 256):
        raise ValueError("some of the 256 bytes are missing")


def _piece(body: bytes, i: int) -> tuple[bytes, int]:
    """The text and type of one piece."""
    text, score, kind = b"", math.nan, _NORMAL
    for number, wire, value in _fields(body):
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
    return text, kind


def _check_normalizer(body: bytes) -> None:
    """The text must be taken as it is: name "identity" (1), no map (2), and three switches (3 to 5)."""
    for number, wire, value in _fields(body):
        wanted = {1: b"identity", 2: b""}.get(number)
        if (wanted is not None and value != wanted) or (wanted is None and (wire != _VARINT or not 3 <= number <= 5)):
            raise ValueError("it changes the text before it cuts it; it was learned by another program")


def _check_trainer(body: bytes) -> None:
    """Settings of the trainer: of the fields only the model's type matters (3: 1 is unigram, 2 is bpe, 3 is words)."""
    kind = 1
    for number, _, value in _fields(body):
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
    trainer = next(value for number, _, value in _fields(proto) if number == 2 and isinstance(value, bytes))
    kinds = [value for number, _, value in _fields(trainer) if number == 3 and isinstance(value, int)]
    return kinds[-1] if kinds else 1


def _fields(body: bytes) -> Iterator[Field]:
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
