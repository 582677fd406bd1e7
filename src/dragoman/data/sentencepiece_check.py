"""Is this a SentencePiece model of the kind that dragoman uses? Asked before SentencePiece sees the bytes.

SentencePiece trusts its model: one piece of 100 kB can end the process
(https://github.com/google/sentencepiece/issues/1263), and a damaged normalisation map is followed out of its memory. So
the wire format of its ModelProto
(https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto) is read here first: the pieces
(field 1, each with text, score and type), the trainer's settings (2) and the normaliser (3), nothing else. A field that
is not there has its default, as in every reader of protocol buffers.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

MAX_PIECES = 1_000_000
MAX_PIECE_BYTES = 4096

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6
"""SentencePiece.Type. No text is cut into what is control (after the first four: tags) or unused; of these two only the
unused is decoded. 4, defined by a user, is not known here."""
IDENTITY = "identity"
"""Name of the normaliser that leaves a text as it is."""
MAX_REPLACED_BYTES = 32
"""Longest text that a normaliser may replace, in bytes; SentencePiece has room for 32 matches at one place."""
MAX_REPLACEMENT_BYTES = 256
"""Longest text that it may put there, in bytes; 33 is the longest in Unicode."""

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
    if not 4 < len(pieces) <= MAX_PIECES or len(trainer) > 1 or len(normalizer) > 1:
        raise ValueError(f"it has {len(pieces):,} pieces, {len(trainer)} trainers, {len(normalizer)} normalisers")
    return Parts([_piece(piece, i) for i, piece in enumerate(pieces)], b"".join(trainer), b"".join(normalizer))


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
    text, score, kind = b"", 0.0, NORMAL  # the defaults of the three
    seen = set()
    for number, wire, value in fields(body):
        if (number, wire) == (1, _BYTES) and isinstance(value, bytes):
            text = value
        elif (number, wire) == (2, _FIXED32) and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif (number, wire) == (3, _VARINT) and isinstance(value, int):
            kind = value
        else:
            raise ValueError(f"piece {i}: field {number} does not belong there")
        if number in seen:
            raise ValueError(f"piece {i}: field {number} appears twice")
        seen.add(number)
    if not 0 < len(text) <= MAX_PIECE_BYTES:
        raise ValueError(f"piece {i} has {len(text):,} bytes (1 to {MAX_PIECE_BYTES:,} are possible)")
    if not math.isfinite(score):
        raise ValueError(f"piece {i}: its score is no finite number")
    if b"\0" in text:
        raise ValueError(f"piece {i} holds NUL")
    text.decode("utf-8")  # a UnicodeDecodeError is a ValueError
    return Piece(text, score, kind)


def _check_normalizer(body: bytes) -> None:
    """Refuse a normaliser with other fields than name (1), map (2), three switches (3 to 5), file of its rules (6)."""
    for number, wire, _ in fields(body):
        if (number, wire) not in ((1, _BYTES), (2, _BYTES), (3, _VARINT), (4, _VARINT), (5, _VARINT), (6, _BYTES)):
            raise ValueError(f"field {number} does not belong into its normaliser")
    if content := normalizer_map(body):
        _check_map(content)


@lru_cache(8)  # the same map comes with both sides, and with every load
def _check_map(content: bytes) -> None:
    """Refuse a map that SentencePiece or our page could follow out of its memory, or without end.

    The map has the size of a trie in bytes, the trie, and the texts to put in, each ended by NUL. The trie is a double
    array (https://github.com/s-yata/darts-clone) of units of 32 bits: bits 0 to 7 are the byte that leads here, bit 8
    says that a value stands at the unit's base, bits 9 to 30 tell that base, and bit 31 marks a value: where its text
    begins. From a unit with base ``b`` the byte ``c`` leads to unit ``b ^ c``, if that unit has the byte ``c``.
    """
    size = int.from_bytes(content[:4], "little")
    trie, texts = content[4 : 4 + size], content[4 + size :]
    if not size or size % 4 or len(trie) != size or texts[-1:] != b"\0":
        raise ValueError("the map of its normaliser is cut off")
    texts.decode("utf-8")
    if max(map(len, texts.split(b"\0"))) > MAX_REPLACEMENT_BYTES:
        raise ValueError(f"its normaliser puts in a text of more than {MAX_REPLACEMENT_BYTES} bytes")

    units = np.frombuffer(trie, "<u4").astype(np.int64)
    places = np.arange(len(units))
    is_value = units >> 31 == 1
    bases = places ^ (units >> 10 << ((units & 512) >> 6))
    if ((bases[~is_value] | 255) >= len(units)).any():
        raise ValueError("the map of its normaliser leads out of its memory")
    values = units[bases[~is_value & (units >> 8 & 1 == 1)]]
    begins = np.flatnonzero(np.frombuffer(b"\0" + texts[:-1], np.uint8) == 0)
    if not (values >> 31 == 1).all() or not np.isin(values & 0x7FFFFFFF, begins).all():
        raise ValueError("the map of its normaliser leads to no text")

    # A byte leads from a base to each unit whose place, with its own byte taken off, is that base. All units are
    # followed at once, byte by byte: after the longest text that may be replaced there must be none left.
    came_from = np.where(is_value, -1, places ^ (units & 255))
    reached = places[:1]
    for _ in range(MAX_REPLACED_BYTES + 1):
        reached = np.flatnonzero(np.isin(came_from, bases[reached]))
    if len(reached):
        raise ValueError(f"its normaliser replaces texts of more than {MAX_REPLACED_BYTES} bytes")


def normalizer_map(body: bytes) -> bytes:
    """Return the map of a normaliser; empty: it replaces nothing."""
    maps = [value for number, _, value in fields(body) if number == 2 and isinstance(value, bytes)]
    return maps[-1] if maps else b""


def normalizer_name(body: bytes) -> str:
    """Return the name of a normaliser, or ``identity`` if it replaces nothing, whatever its name."""
    if not normalizer_map(body):
        return IDENTITY
    names = [value for number, _, value in fields(body) if number == 1 and isinstance(value, bytes)]
    return names[-1].decode("utf-8", "replace")[:40] if names else "unnamed"


def keeps_texts(proto: bytes) -> bool:
    """True if a model that ``check_model`` lets pass takes texts as they are, double spaces too."""
    body = _message(proto, 3)
    removes_spaces = [value for number, _, value in fields(body) if number == 4] or [1]  # the default is true
    return not normalizer_map(body) and not removes_spaces[-1]


def _message(proto: bytes, number: int) -> bytes:
    """Return one of the messages of a model; empty: it is not there, and all its fields have their defaults."""
    return b"".join(value for field, _, value in fields(proto) if field == number and isinstance(value, bytes))


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
    kinds = [value for number, _, value in fields(_message(proto, 2)) if number == 3 and isinstance(value, int)]
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
