"""Model files as somebody who means harm would write them: safetensors, configurations, SentencePiece models."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

Header = dict[str, Any]


def encoded(header: str | bytes | Mapping[str, Any], data: bytes, size: int | None = None) -> bytes:
    """A safetensors file with this header; ``size`` is what it says the header's length is."""
    if not isinstance(header, str | bytes):
        header = json.dumps(header)
    raw = header.encode() if isinstance(header, str) else header
    return (len(raw) if size is None else size).to_bytes(8, "little") + raw + data


def sound(tensors: Mapping[str, torch.Tensor]) -> tuple[Header, bytes]:
    """The header and data of these tensors, as they should be."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {
            "dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)],
        }  # fmt: skip
        data += raw
    return header, data


def hostile_tensors(tensors: Mapping[str, torch.Tensor], seed: int) -> Iterator[tuple[str, bytes]]:
    """Files that must all be refused where ``tensors`` are expected, each with what it is; without an end."""
    chance = random.Random(seed)
    header, data = sound(tensors)
    names = list(header)

    def changed(name: str, **fields: Any) -> Header:
        return {**header, name: {**header[name], **fields}}

    def text_of(name: str, field: str, value: str) -> str:
        return json.dumps(changed(name, **{field: "HERE"})).replace('"HERE"', value)

    many = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(300_000))
    fit = ",".join(f'"{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for i in range(15_000))
    while True:
        name, other = chance.sample(names, 2)
        start, end = header[name]["data_offsets"]
        shape = header[name]["shape"]
        whole = encoded(header, data)
        yield "empty", b""
        yield "cut", whole[: chance.randrange(len(whole))]
        yield "longer", whole + chance.randbytes(chance.randint(1, 99))
        yield (
            "header length too large",
            encoded(header, data, chance.choice([2**20 + 1, 2**31, 2**40, 2**63, 2**64 - 1])),
        )
        yield "header length too small", encoded(header, data, chance.randrange(len(whole) - len(data) - 8))
        yield "300,000 empty tensors", encoded("{" + many + "}", b"")
        yield "15,000 empty tensors", encoded("{" + fit + "}", b"")
        yield "deep JSON", encoded(chance.choice(["[", '{"a":']) * 150_000, data)
        yield "deep JSON, closed", encoded("[" * 100_000 + "]" * 100_000, data)
        yield "no JSON", encoded(chance.randbytes(200), data)
        yield "no object", encoded(chance.choice(["[]", "null", "1", '"a"', "NaN"]), data)
        yield "a name twice", encoded(json.dumps(header)[:-1] + f', "{name}": {json.dumps(header[name])}}}', data)
        yield "a field twice", encoded(json.dumps(header).replace('"dtype"', '"dtype": "F32", "dtype"', 1), data)
        yield "a field too many", encoded(changed(name, code="os.system"), data)
        yield "a field missing", encoded({**header, name: {"dtype": "F32"}}, data)
        yield "no description", encoded({**header, name: chance.choice([None, 1, "x", [], {}])}, data)
        yield "overlap", encoded(changed(name, data_offsets=header[other]["data_offsets"]), data)
        yield "negative place", encoded(changed(name, data_offsets=[-(end - start), 0]), data)
        yield "place far away", encoded(changed(name, data_offsets=[2**62, 2**62 + end - start]), data)
        yield "backwards", encoded(changed(name, data_offsets=[end, start]), data)
        yield "three places", encoded(changed(name, data_offsets=[start, end, end]), data)
        yield "place that is a fraction", encoded(changed(name, data_offsets=[start + 0.5, end + 0.5]), data)
        yield "another dtype", encoded(changed(name, dtype=chance.choice(["F64", "I32", "BF16", "F16", "U8"])), data)
        yield "no dtype", encoded(changed(name, dtype=chance.choice(["f32", "", "object", None, 3, ["F32"]])), data)
        yield "another shape", encoded(changed(name, shape=[*shape, 2]), data)
        yield (
            "the shape turned or flattened",
            encoded(changed(name, shape=[len(data) and (end - start) // 4, 1, 1]), data),
        )
        yield "a shape of enormous size", encoded(changed(name, shape=[2**40, 2**40]), data)
        yield "a negative shape", encoded(changed(name, shape=[-1, *shape]), data)
        yield (
            "a shape of other things",
            encoded(changed(name, shape=chance.choice([None, "x", [True], [1.0], [[1]]])), data),
        )
        yield "NaN for a place", encoded(text_of(name, "data_offsets", "[NaN, Infinity]"), data)
        yield "a number of 5,000 digits", encoded(text_of(name, "shape", "[" + "9" * 5000 + "]"), data)
        yield "a name that is NaN", encoded({("NaN" if n == name else n): about for n, about in header.items()}, data)
        yield (
            "a name of 100,000 letters",
            encoded({("x" * 10**5 if n == name else n): a for n, a in header.items()}, data),
        )
        yield "a name with NUL", encoded({(f"{n}\0" if n == name else n): about for n, about in header.items()}, data)
        yield "a tensor missing", encoded(*sound({n: t for n, t in tensors.items() if n != name}))
        yield "a tensor too many", encoded(*sound({**tensors, "more": torch.zeros(3)}))
        yield "a zip archive, as torch.save writes", b"PK\x03\x04" + chance.randbytes(500)
        yield "a pickle", b"\x80\x04\x95" + chance.randbytes(500)


# --- configurations ---------------------------------------------------------------------------------------------------

VALUES = [
    "null", "true", "-1", "0", "1e400", ".nan", "-.inf", "9" * 400, "1e9", "'x'", "[]", "[1, [2, [3]]]", "{}", "{a: {b: 1}}",
    "2026-01-01", "0x7fffffffffffffff", "!!python/object/apply:os.system ['true']", "!!binary aGk=", "!!set {a, b}", "&x [*x]",
    "*y", "|\n    text", "../../etc/passwd", "\u2028", "'\\0'", "3.5", "1_000_000_000", "~", "? [a]", "!!float x",
]  # fmt: skip


def laughs(depth: int = 12) -> str:
    """A list of lists of lists ... that ten lines describe and no memory holds."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, depth)]
    return "\n".join([*lines, f"train: {{max_steps: *a{depth - 1}}}"]) + "\n"


def mutated_config(text: str, chance: random.Random) -> bytes:
    """A configuration with something wrong in it, most of the time."""
    lines = text.split("\n")
    kind = chance.randrange(10)
    i = chance.randrange(len(lines) - 1)
    key = lines[i].partition(":")[0]
    if kind < 5:
        lines[i] = f"{key}: {chance.choice(VALUES)}"
    elif kind == 5:
        lines[i] = lines[i].replace(
            key.strip(), chance.choice(["__class__", "d_modle", "", "'\\0'", "1", "<<", "a.b", "é" * 90])
        )
    elif kind == 6:
        del lines[i : i + chance.randint(1, 9)]
    elif kind == 7:
        lines.insert(
            chance.randrange(len(lines)), chance.choice([lines[i], "\t", "---", "...", "%YAML 9.9", "- x", laughs()])
        )
    elif kind == 8:
        lines[i] = f"{key}: " + chance.choice(
            ["[" * 2000, "{a: " * 400 + "1" + "}" * 400, "[" * 900 + "]" * 900, "x" * 70_000]
        )
    raw = bytearray("\n".join(lines).encode())
    if kind == 9:
        for _ in range(chance.randint(1, 8)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


# --- SentencePiece ----------------------------------------------------------------------------------------------------


def field(number: int, value: int | bytes | float) -> bytes:
    """One field of a message of protocol buffers."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def piece(text: bytes, score: float = -1.0, kind: int = 1) -> bytes:
    """A piece, ready to be put behind a model."""
    return field(1, field(1, text) + field(2, float(score)) + field(3, kind))


def mutated_model(proto: bytes, chance: random.Random) -> bytes:
    """A SentencePiece model with something wrong in it, most of the time."""
    makers: list[Callable[[], bytes]] = [
        lambda: _flipped(proto, chance),
        lambda: proto[: chance.randrange(len(proto))],
        lambda: chance.randbytes(chance.randrange(1, 3000)),
        lambda: proto + piece(b"a" * chance.choice([5000, 100_000, 2_000_000])),
        lambda: proto + piece(b""),
        lambda: proto + piece(chance.choice([b"\xff\xfe", b"\xed\xa0\x80", b"a\0b", b"<0x41>", b"\xe2\x96\x81"])),
        lambda: proto + piece(b"odd", chance.choice([float("nan"), float("inf"), -float("inf"), 1e38, -1e38])),
        lambda: proto + piece(b"odd", -1.0, chance.choice([0, 2, 3, 4, 5, 6, 7, 2**31, 2**63])),
        lambda: proto + b"".join(piece(b"%d" % chance.randrange(10**12)) for _ in range(300)),
        lambda: proto + field(2, field(3, chance.choice([0, 1, 2, 3, 4, 9]))),
        lambda: proto + field(2, field(chance.choice([4, 40, 41, 42, 43]), chance.choice([0, 7, 2**31 - 1, 2**63]))),
        lambda: proto + field(3, field(1, b"identity") + field(2, chance.randbytes(chance.randrange(1, 5000)))),
        lambda: proto + field(3, field(1, b"nmt_nfkc")) + field(5, field(2, chance.randbytes(64))),
        lambda: proto + field(4, field(1, field(1, b"a") + field(2, b"b"))),
        lambda: proto + varint(chance.randrange(2**20)) + chance.randbytes(20),
        lambda: proto + b"\x0a" + varint(chance.choice([2**31, 2**32 - 1, 2**63])) + b"a" * 40,
        lambda: proto + b"\x80" * chance.randrange(1, 40),
        lambda: proto.replace(b"<0x41>", chance.choice([b"<0x42>", b"<0xZZ>", b"xxxxxx"])),
        lambda: proto.replace(b"identity", b"nmt_nfkc"),
        lambda: proto.replace(b"<unk>", chance.choice([b"<UNK>", b"</s>>"])),
    ]
    return chance.choice(makers)()


def _flipped(proto: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(proto)
    for _ in range(chance.choice([1, 3, 20])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)
