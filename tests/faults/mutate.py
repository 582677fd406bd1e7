"""Mutations of files by a rule: bytes, lines and tokens, numbers, XML, JSON, YAML, and the records of a zip archive.

A mutator takes a sound file and a random generator, and returns a changed file. All randomness is seeded.
"""

from __future__ import annotations

import copy
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from hostile import laughs, mutated_config, mutated_model

Mutator = Callable[[bytes, random.Random], bytes]

EXTREMES = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
NUMBERS = ["0", "-1", "1", "9" * 30, "9" * 5000, "1e999", "-1e999", "NaN", "Infinity", "0.5", "00", "٣", "0x7f", "²"]
ODD = ["\0", "\r", "\ufeff", "\u2028", "\x85", "\x1b", "\ufffe", "\U0010ffff", "\u200f", "&", "<", ">", '"', "'", "\\",
       "\t", "{", "}", "[", "]", "\n", "\n\n", "", " ", "\u0301", "🙂"]  # fmt: skip
ENCODINGS = ["utf-16", "utf-32", "utf-7", "cp037", "hex", "rot13", "idna", "punycode", "undefined", "unicode_escape",
             "raw_unicode_escape", "shift_jis", "iso2022_jp", "latin-1", "ascii", "x" * 80, "mbcs", "zlib_codec", "hz",
             "utf-8-sig", "gb18030", "cp1252", "UTF8", "big5", "koi8-r", "string-escape"]  # fmt: skip


# --- bytes ------------------------------------------------------------------------------------------------------------


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Flip 1, 3 or 20 bits."""
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 3, 20])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def overwritten(content: bytes, chance: random.Random) -> bytes:
    """Overwrite a run of bytes: a lost block of zeros or ones, or noise."""
    start, length = _run(content, chance)
    return content[:start] + _noise(length, chance) + content[start + length :]


def truncated(content: bytes, chance: random.Random) -> bytes:
    """Cut the end off."""
    return content[: chance.randrange(len(content))]


def deleted(content: bytes, chance: random.Random) -> bytes:
    """Delete a run of bytes."""
    start, length = _run(content, chance)
    return content[:start] + content[start + length :]


def inserted(content: bytes, chance: random.Random) -> bytes:
    """Insert a run of noise."""
    start, length = _run(content, chance)
    return content[:start] + _noise(length, chance) + content[start:]


def duplicated(content: bytes, chance: random.Random) -> bytes:
    """Copy a run of bytes to another place."""
    start, length = _run(content, chance)
    to = chance.randrange(len(content) + 1)
    return content[:to] + content[start : start + length] + content[to:]


def with_an_extreme(content: bytes, chance: random.Random) -> bytes:
    """Write an extreme number in 1, 2, 4 or 8 bytes over the file, little- or big-endian."""
    size = chance.choice([1, 2, 4, 8])
    start = chance.randrange(max(1, len(content) - size))
    number = (chance.choice(EXTREMES) % 256**size).to_bytes(size, chance.choice(["little", "little", "big"]))
    return content[:start] + number + content[start + size :]


BYTES: list[Mutator] = [flipped, overwritten, truncated, deleted, inserted, duplicated, with_an_extreme]


def spliced(others: Sequence[bytes]) -> Mutator:
    """Return a mutator that continues a file with the end of another one."""

    def mutator(content: bytes, chance: random.Random) -> bytes:
        other = chance.choice(others)
        return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other) + 1) :]

    return mutator


def _run(content: bytes, chance: random.Random) -> tuple[int, int]:
    """Return start and length of a run, short ones most often."""
    start = chance.randrange(len(content))
    return start, min(chance.choice([1, 2, 4, 16, 64, 400, 4000]), len(content) - start)


def _noise(length: int, chance: random.Random) -> bytes:
    return chance.choice([b"\0" * length, b"\xff" * length, chance.randbytes(length), b"A" * length])


# --- text, XML, JSON, YAML --------------------------------------------------------------------------------------------


def of_text(tokens: Sequence[str]) -> list[Mutator]:
    """Return the mutators of a text format; ``tokens`` are the marks of its syntax."""

    def with_tokens(content: bytes, chance: random.Random) -> bytes:
        text = content.decode()
        for _ in range(chance.choice([1, 1, 2, 6])):
            at = chance.randrange(len(text) + 1)
            token = chance.choice([*tokens, *ODD]) * chance.choice([1, 1, 1, 2, 9, 300])
            text = text[:at] + token + text[at + chance.choice([0, 0, 1, 4]) :]
        return text.encode()

    def with_other_lines(content: bytes, chance: random.Random) -> bytes:
        lines = content.decode().split("\n")
        for _ in range(chance.choice([1, 2, 5])):
            i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
            kind = chance.randrange(5)
            if kind == 0:
                del lines[i : i + chance.randint(1, 4)]
            elif kind == 1:
                lines[j:j] = lines[i : i + chance.randint(1, 4)] * chance.choice([1, 1, 40])
            elif kind == 2:
                lines[i], lines[j] = lines[j], lines[i]
            elif kind == 3:
                lines[i] = lines[i] + chance.choice(["\r", " \\", "\t"]) + lines[j]
            else:
                lines[i] = lines[i][: chance.randrange(len(lines[i]) + 1)]
            lines = lines or [""]
        return "\n".join(lines).encode()

    return [with_tokens, with_other_lines, with_other_numbers]


def with_other_numbers(content: bytes, chance: random.Random) -> bytes:
    """Replace a number in the text by an extreme or impossible one."""
    numbers = list(re.finditer(rb"\d+", content))
    if not numbers:
        return flipped(content, chance)
    number = chance.choice(numbers)
    return content[: number.start()] + chance.choice(NUMBERS).encode() + content[number.end() :]


def of_xml(content: bytes, chance: random.Random) -> bytes:
    """Change the structure of XML: move, drop, repeat, nest and rename its tags, and add what XML can have."""
    pieces = re.findall(r"<[^>]*>|[^<]+", content.decode())
    for _ in range(chance.choice([1, 1, 2, 4])):
        i, j = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        kind = chance.randrange(11)
        if kind == 0:
            del pieces[i]
        elif kind == 1:
            pieces.insert(j, pieces[i])
        elif kind == 2:
            pieces[i], pieces[j] = pieces[j], pieces[i]
        elif kind == 3:
            pieces[i] = re.sub(r"[\w:]+", chance.choice(["a", "w:p", "x:y", "source", "é"]), pieces[i], count=1)
        elif kind == 4:
            depth = chance.choice([2, 20, 255, 400, 3000])
            name = (re.match(r"<([\w:.-]+)", pieces[i]) or ["", "b"])[1]
            pieces[i] = f"<{name}>" * depth + pieces[i] + f"</{name}>" * depth
        elif kind == 5:
            odd = ["&#0;", "&#x110000;", "&#xD800;", "&nothing;", "&amp", "&lt;&gt;", "&#65;", "]]>", "<![CDATA[<b>a</b>]]>",
                   "<!--c-->", "<!-- a -- b -->", "<?pi a?>", "<![CDATA[", "<!DOCTYPE a>", '<?xml version="1.0"?>',
                   "<!DOCTYPE a [<!ENTITY b 'c'>]>"]  # fmt: skip
            pieces.insert(i, chance.choice(odd))
        elif kind == 6:
            pieces[i] = re.sub(r'"[^"]*"', f'"{chance.choice([*NUMBERS, "", "a&b", "http://x"])}"', pieces[i], count=1)
        elif kind == 7:
            pieces[i] = re.sub(r"\s[\w:]+=\S*", "", pieces[i], count=1)
        elif kind == 8:
            pieces[i] = pieces[i].replace(">", ' xmlns:q="urn:q" q:a=\'>\' b="1">', 1)
        elif kind == 9:
            pieces.insert(0, f'<?xml version="1.0" encoding="{chance.choice(ENCODINGS)}"?>')
        else:
            pieces[i] = pieces[i] * chance.choice([2, 50, 2000])
        pieces = pieces or ["<a/>"]
    return "".join(pieces).encode()


ANYTHING: list[Any] = [None, True, -1, 0, 1.5, 2**63, 10**30, float("nan"), float("inf"), "", "x" * 3000, "\ud800",
                       "\0", "../../x", [], {}, [[]], [{}], {"a": {"b": [1]}}, [None] * 50, "1", [1, "a"]]  # fmt: skip


def of_json(content: bytes, chance: random.Random) -> bytes:
    """Replace, drop, add or nest values of JSON."""
    tree = json.loads(content)
    for _ in range(chance.choice([1, 1, 3])):
        node, places = tree, list(_places(tree))
        if not places:
            break
        node, key = chance.choice(places)
        kind = chance.randrange(5)
        if kind <= 2:
            node[key] = copy.deepcopy(chance.choice(ANYTHING))  # or a later change would nest it in itself
        elif kind == 3:
            del node[key]
        elif isinstance(node, dict):
            node[chance.choice(["__class__", "", "a" * 500, "\ud800", str(key).upper()])] = node[key]
        else:
            node.insert(0, node[key])
    text = json.dumps(tree)
    kind = chance.randrange(8)
    if kind == 0:
        text = text.replace(":", ": " + "[" * chance.choice([50, 100_000]), 1)
    elif kind == 1:
        text = text.replace(",", ', "format": 9, ', 1)
    return text.encode("utf-8", "surrogatepass")


def _places(node: Any) -> Any:
    """Yield each place of a tree of JSON: the list or mapping, and the index or key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


def of_yaml(content: bytes, chance: random.Random) -> bytes:
    """Change YAML: values of other kinds, aliases that grow, merges, anchors, tags, depth."""
    if chance.random() < 0.3:
        levels = chance.choice([2, 4, 6, 9])
        name = chance.choice(re.findall(rb"^([\w-]+):", content, re.MULTILINE) or [b"a"]).decode()
        more = [laughs(levels) + f"{name}: *a{levels - 1}\n", f"<<: &a {{{name}: 1}}\n", f"{name}: &a [*a]\n",
                f"{name}: {'[' * 3000}\n", f"{name}: !!python/name:os.system x\n", f"? [{name}]\n: 1\n",
                f"{name}: 2020-13-45\n", f"{name}: {'9' * 5000}\n", f"{name}: 190:20:30\n", f"{name}: !!int ''\n",
                f"{name}: 0x{'f' * 9000}\n", f"{name}: [{'[a], ' * 3000}]\n", f"{name}: {'x' * 90_000}\n", f"{name}: 0b{'1' * 900}\n",
                f"{name}: [a, 'b\\0c']\n", f"{name}: ['..', '/etc/passwd']\n", f"{name}: .inf\n", f"{name}: -1\n", f"{name}:\n",
                f"{name}: !!binary '='\n", f"{name}: !!timestamp x\n", f"{name}: 9999-99-99 99:99:99\n"]  # fmt: skip
        return content + chance.choice(more).encode()
    return mutated_config(content.decode() + "\n", chance)


# --- zip archives -----------------------------------------------------------------------------------------------------

_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s4H2IH")
NAMES = [
    b"\x80" * 40_000,
    b"e\xcc\x81.xml",
    b"word/document.xml/",
    b".",
    b"",
    b"..",
    b"/",
    b"../x",
    b"/etc/x",
    b"a\\..\\b",
    b"\xff\xfe.xml",
    b"x" * 60_000,
    b"a/",
    b"./a",
    b"c:x",
    b"a\0b",
]


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of these members."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def unzipped(content: bytes) -> dict[str, bytes]:
    """Return the members of a sound archive."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def of_zip(mutate_member: Mutator) -> list[Mutator]:
    """Return the mutators of an archive: of its records, of the fields in them, and of what a member contains."""

    def other_content(content: bytes, chance: random.Random) -> bytes:
        """Change a member under a checksum that is right, in any method."""
        members = unzipped(content)
        name = chance.choice(list(members))
        mutator = chance.choice([mutate_member, mutate_member, *BYTES])
        try:
            members[name] = mutator(members[name], chance) if members[name] else b"x"
        except (UnicodeDecodeError, ValueError):  # a member of another kind
            members[name] = flipped(members[name], chance)
        methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
        return zipped(members, chance.choice(methods))

    def damaged_member(content: bytes, chance: random.Random) -> bytes:
        """Flip bits in the packed bytes of a member of any method."""
        methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_LZMA]
        packed = bytearray(zipped(unzipped(content), chance.choice(methods)))
        with zipfile.ZipFile(BytesIO(packed)) as archive:
            entry = chance.choice([entry for entry in archive.infolist() if entry.compress_size])
        start = entry.header_offset + _LOCAL.size + len(entry.filename.encode())
        for _ in range(chance.choice([1, 1, 4])):
            packed[start + chance.randrange(entry.compress_size)] ^= 1 << chance.randrange(8)
        return bytes(packed)

    return [other_content, damaged_member, _other_records]


def _other_records(content: bytes, chance: random.Random) -> bytes:
    """Change fields of the records: method, flags, names, sums, sizes, offsets, numbers of members, zip64, order."""
    locals_, centrals = _records(content)
    i = chance.randrange(len(locals_))
    local, central = locals_[i], centrals[i]
    both = chance.choice([[local, central], [central], [local]])
    kind = chance.randrange(12)
    extra_count, comment, offset_by = 0, b"", {}
    if kind == 0:
        _set(both, 3, chance.choice([0, 1, 8, 9, 12, 14, 93, 95, 99, 65535]))
    elif kind == 1:
        _set(both, 2, chance.choice([1, 8, 9, 0x20, 0x40, 0x800, 0x801, 0x2000, 65535]))
    elif kind == 2:
        is_utf8 = chance.choice([0, 0x800])
        for record in both:
            record["name"] = chance.choice(NAMES)
            record["fields"][2] |= is_utf8
    elif kind == 3:
        _set(both, 6, chance.getrandbits(32))
    elif kind == 4:
        _set(both, chance.choice([7, 8]), chance.choice(EXTREMES) % 2**32)
    elif kind == 5:
        offset_by[i] = chance.choice([-(2**31), -13, -1, 1, 13, 2**31])
    elif kind == 6:
        extra_count = chance.choice([-1, 1, 60_000])
    elif kind == 7:
        for record in both:
            record["extra"] = chance.choice([
                struct.pack("<HHQQQ", 1, 24, *[chance.choice(EXTREMES) for _ in range(3)]), struct.pack("<HHQ", 1, 8, 2**40),
                b"\x01\0\xff\xff", chance.randbytes(7), struct.pack("<HHB", 0x7075, 1, 9),
            ])  # fmt: skip
        _set(both, chance.choice([7, 8]), 2**32 - 1)
    elif kind == 8:
        centrals.append(centrals[i])  # the same member twice: overlapping
    elif kind == 9:
        j = chance.randrange(len(locals_))
        offset_by[i] = ("of", j)  # two members in one place
    elif kind == 10:
        comment = chance.randbytes(chance.choice([1, 22, 60_000]))
    else:
        _set([central], chance.choice([1, 5, 10, 12]), chance.choice(EXTREMES) % 2**16)
    return _assembled(locals_, centrals, offset_by, extra_count, comment)


def _set(records: Sequence[dict[str, Any]], field: int, number: int) -> None:
    """Set a field, by its number in a local record; a central record has one more field before it."""
    for record in records:
        record["fields"][field if not record["central"] else field + 1 if field > 1 else field] = number


def _records(content: bytes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the local and central records of a sound archive."""
    locals_, centrals = [], []
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for entry in archive.infolist():
            at = entry.header_offset
            fields = list(_LOCAL.unpack_from(content, at))
            name_at = at + _LOCAL.size
            data_at = name_at + fields[9] + fields[10]
            name = content[name_at : name_at + fields[9]]
            data = content[data_at : data_at + entry.compress_size]
            locals_.append({"central": False, "fields": fields, "name": name, "extra": b"", "data": data})
            central = [b"PK\1\2", 20, *fields[1:9], 0, 0, 0, 0, 0, 0, 0]
            centrals.append({"central": True, "fields": central[:17], "name": name, "extra": b""})
    return locals_, centrals


def _assembled(
    locals_: list[dict[str, Any]], centrals: list[dict[str, Any]], offset_by: dict[int, Any], extra_count: int,
    comment: bytes,
) -> bytes:  # fmt: skip
    """Return the archive of these records."""
    out, offsets = b"", []
    for local in locals_:
        offsets.append(len(out))
        fields = [*local["fields"][:9], len(local["name"]), len(local["extra"])]
        out += _LOCAL.pack(*fields) + local["name"] + local["extra"] + local["data"]
    start = len(out)
    for i, central in enumerate(centrals):
        offset = offsets[i % len(offsets)]
        change = offset_by.get(i, 0)
        offset = offsets[change[1]] if isinstance(change, tuple) else (offset + change) % 2**32
        fields = [*central["fields"][:10], len(central["name"]), len(central["extra"]), 0, 0, 0, 0, offset]
        out += _CENTRAL.pack(*fields) + central["name"] + central["extra"]
    count = (len(centrals) + extra_count) % 2**16
    return out + _END.pack(b"PK\5\6", 0, 0, count, count, len(out) - start, start, len(comment)) + comment


def of_npy(content: bytes, chance: random.Random) -> bytes:
    """Change the header of an array of NumPy."""
    body = content[content.index(b"\n") + 1 :]
    header = chance.choice([
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "{'descr': 'O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-5,), }", "{'descr': '" + "f" * 99 + "'}", "{" * 200, "(" * 150,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 60 + "), }", "{'descr': [('a', '<f4')], 'fortran_order': True, 'shape': (1,), }",
        "{'descr': '<c16', 'fortran_order': 1, 'shape': (1, 1)}", "{'descr': '<m8[999s]', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2.0), }", "1" * 9000, "__import__('os')",
    ])  # fmt: skip
    version = bytes(chance.choice([(1, 0), (2, 0), (3, 0), (9, 9)]))
    size = len(header) + 1
    return (
        b"\x93NUMPY" + version + size.to_bytes(2 if version[0] == 1 else 4, "little") + header.encode() + b"\n" + body
    )


of_sentencepiece: Mutator = mutated_model


def recompressed(content: bytes, chance: random.Random) -> bytes:
    """Change a .gz under its container: the text in it, or several members, some of them empty."""
    text = zlib.decompress(content, 31)
    packer = zlib.compressobj(wbits=31)
    kind = chance.randrange(3)
    if kind == 0:
        return content + content[: chance.randrange(len(content))]
    changed = flipped(text, chance) if kind == 1 else b""
    return packer.compress(changed) + packer.flush()
