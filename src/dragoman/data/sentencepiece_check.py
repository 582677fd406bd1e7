"""Check that bytes are a SentencePiece model of a supported kind, before SentencePiece loads them.

SentencePiece trusts its model: one piece of 100 kB can crash the process
(https://github.com/google/sentencepiece/issues/1263), and a damaged normalisation map makes it read outside its memory.
So the wire format of the ModelProto is parsed here first
(https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto): the pieces (field 1, each with
text, score and type), the trainer's settings (2) and the normaliser (3). A missing field has its default, as always in
protocol buffers.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

MAX_PIECES = 1_000_000
MAX_PIECE_BYTES = 4096

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6
"""Values of SentencePiece.Type. Encoding yields no control (after the first four: tags) and no unused pieces; decoding
reads unused ones. 4, defined by a user, is not supported."""
IDENTITY = "identity"
"""Name of the normaliser that leaves a text as it is."""
MAX_REPLACED_BYTES = 32
"""Longest text that a normaliser may replace, in bytes; SentencePiece has room for 32 matches at one place."""
MAX_REPLACEMENT_BYTES = 256
"""Longest replacement in bytes; 33 is the longest in Unicode."""

_ALL_BYTES = {f"<0x{value:02X}>".encode() for value in range(256)}
_FIRST_TYPES = [CONTROL, UNKNOWN, CONTROL, CONTROL]  # pad, unk, bos, eos

Field = tuple[int, int, int | bytes]  # number, wire type, value: a number for _VARINT, else bytes


def check_model(proto: bytes) -> None:
    """Check that the bytes of a ``.spm`` file are a model of a kind that our tokenizer learns.

    Raises:
        ValueError: They are not; the message does not name the file.
    """
    model = parts(proto)
    _check_normalizer(model.normalizer)
    _check_trainer(model.trainer)
    _check_pieces(model.pieces)


class Piece(NamedTuple):
    """Piece of a model."""

    text: bytes
    score: float
    kind: int


class Parts(NamedTuple):
    """Parsed ModelProto."""

    pieces: list[Piece]
    trainer: bytes
    normalizer: bytes


def parts(proto: bytes, also: tuple[int, ...] = ()) -> Parts:
    """Parse a model.

    Args:
        also: Numbers of other fields that are allowed, and ignored.

    Raises:
        ValueError: The bytes are no model, or hold an unknown field.
    """
    messages: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    for number, wire, value in fields(proto):
        if number in also:
            continue
        if wire != _BYTES or not isinstance(value, bytes) or number not in (1, 2, 3):
            raise ValueError(f"field {number} does not belong there")
        messages[number - 1].append(value)
    pieces, trainer, normalizer = messages
    if not 4 < len(pieces) <= MAX_PIECES or len(trainer) > 1 or len(normalizer) > 1:
        raise ValueError(f"it has {len(pieces):,} pieces, {len(trainer)} trainers, {len(normalizer)} normalisers")
    for body in (*trainer, *normalizer):
        deque(fields(body), 0)  # what is damaged there is found now, and by every caller
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
        raise ValueError(f"piece {i} must have 1 to {MAX_PIECE_BYTES:,} bytes, got {len(text):,}")
    if not math.isfinite(score):
        raise ValueError(f"piece {i}: its score is no finite number")
    if b"\0" in text:
        raise ValueError(f"piece {i} holds NUL")
    text.decode("utf-8")  # a UnicodeDecodeError is a ValueError
    return Piece(text, score, kind)


def _check_normalizer(body: bytes) -> None:
    """Check that a normaliser has only name (1), map (2), three switches (3 to 5) and the file of its rules (6)."""
    for number, wire, _ in fields(body):
        if (number, wire) not in ((1, _BYTES), (2, _BYTES), (3, _VARINT), (4, _VARINT), (5, _VARINT), (6, _BYTES)):
            raise ValueError(f"field {number} does not belong in its normaliser")
    if content := normalizer_map(body):
        _check_map(content)


@lru_cache(8)  # both sides and every load have the same map
def _check_map(content: bytes) -> None:
    """Check that SentencePiece and our page can walk a map without leaving its memory or looping.

    A map holds the size of a trie in bytes, the trie, and the replacements, each ended by NUL. The trie is a double
    array (https://github.com/s-yata/darts-clone) of units of 32 bits. Bits 0 to 7 are the byte that leads to the unit.
    Bit 8 is set if a value lies at the unit's base, which bits 9 to 30 encode. Bit 31 marks a value, the offset of a
    replacement. From a unit with base ``b`` the byte ``c`` leads to unit ``b ^ c``, if that unit has the byte ``c``.
    """
    size = int.from_bytes(content[:4], "little")
    trie, texts = content[4 : 4 + size], content[4 + size :]
    if not size or size % 4 or len(trie) != size or texts[-1:] != b"\0":
        raise ValueError("the map of its normaliser is cut off")
    texts.decode("utf-8")
    if max(map(len, texts.split(b"\0"))) > MAX_REPLACEMENT_BYTES:
        raise ValueError(f"a replacement of its normaliser must have at most {MAX_REPLACEMENT_BYTES} bytes")

    units = np.frombuffer(trie, "<u4").astype(np.int64)
    places = np.arange(len(units))
    is_value = units >> 31 == 1
    bases = places ^ (units >> 10 << ((units & 512) >> 6))
    if ((bases[~is_value] | 255) >= len(units)).any():
        raise ValueError("the map of its normaliser points outside its memory")
    values = units[bases[~is_value & (units >> 8 & 1 == 1)]]
    begins = np.flatnonzero(np.frombuffer(b"\0" + texts[:-1], np.uint8) == 0)
    if not (values >> 31 == 1).all() or not np.isin(values & 0x7FFFFFFF, begins).all():
        raise ValueError("the map of its normaliser points to no replacement")

    # A byte leads from a base to a unit if the unit's index xor its byte is that base. All paths are followed at once,
    # byte by byte: after the longest text that may be replaced no path may go on. So no walk can loop.
    came_from = np.where(is_value, -1, places ^ (units & 255))
    reached = places[:1]
    for _ in range(MAX_REPLACED_BYTES + 1):
        reached = np.flatnonzero(np.isin(came_from, bases[reached]))
    if len(reached):
        raise ValueError(f"a text that its normaliser replaces must have at most {MAX_REPLACED_BYTES} bytes")


def normalizer_map(body: bytes) -> bytes:
    """Return the map of a normaliser; empty if it replaces nothing."""
    maps = [value for number, _, value in fields(body) if number == 2 and isinstance(value, bytes)]
    return maps[-1] if maps else b""


def normalizer_name(body: bytes) -> str:
    """Return the name of a normaliser, or ``identity`` if it replaces nothing, whatever its name."""
    if not normalizer_map(body):
        return IDENTITY
    names = [value for number, _, value in fields(body) if number == 1 and isinstance(value, bytes)]
    return names[-1].decode("utf-8", "replace")[:40] if names else "unnamed"


def keeps_texts(proto: bytes) -> bool:
    """True if a checked model keeps texts unchanged, double spaces too."""
    return not normalizer_map(normaliser_of(proto)) and not collapses_spaces(proto)


def collapses_spaces(proto: bytes) -> bool:
    """True if a checked model reads several spaces as one, and drops those at the ends of a text."""
    return bool(([value for number, _, value in fields(normaliser_of(proto)) if number == 4] or [1])[-1])


def has_dummy_prefix(proto: bytes) -> bool:
    """True if a checked model puts a space before every text."""
    return bool(([value for number, _, value in fields(normaliser_of(proto)) if number == 3] or [1])[-1])


def normaliser_of(proto: bytes) -> bytes:
    """Return the NormalizerSpec of a model."""
    return _message(proto, 3)


def _message(proto: bytes, number: int) -> bytes:
    """Return one of the messages of a model; empty if it is missing, so that its fields have their defaults."""
    return b"".join(value for field, _, value in fields(proto) if field == number and isinstance(value, bytes))


def _check_trainer(body: bytes) -> None:
    """Check the trainer's settings; only the model type matters (field 3: 1 unigram, 2 byte pairs, 3 words)."""
    kind = 1
    for number, _, value in fields(body):
        if number == 3 and isinstance(value, int):
            kind = value
        if isinstance(value, bytes) and len(value) > MAX_PIECE_BYTES:
            raise ValueError(f"setting {number} of the trainer has {len(value):,} bytes")
    if kind not in (1, 2, 3):
        raise ValueError(
            f"its type must be unigram (1), byte pairs (2) or words (3), got {kind}; it was learned by another program"
        )


def is_unigram(proto: bytes) -> bool:
    """True if a checked model is a unigram model."""
    return _kind(proto) == 1


def is_of_words(proto: bytes) -> bool:
    """True if a checked model has whole words as pieces."""
    return _kind(proto) == 3


def _kind(proto: bytes) -> int:
    kinds = [value for number, _, value in fields(_message(proto, 2)) if number == 3 and isinstance(value, int)]
    return kinds[-1] if kinds else 1


def fields(body: bytes) -> Iterator[Field]:
    """Yield the fields of a message of protocol buffers, see https://protobuf.dev/programming-guides/encoding/."""
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


def bytes_field(number: int, value: bytes) -> bytes:
    """Return an encoded field of bytes."""
    return _written_varint(number << 3 | _BYTES) + _written_varint(len(value)) + value


def number_field(number: int, value: int) -> bytes:
    """Return an encoded field of a number."""
    return _written_varint(number << 3) + _written_varint(value)


def _written_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _varint(body: bytes, place: int) -> tuple[int, int]:
    """Return a number stored in groups of seven bits, lowest first, and the position after it."""
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
