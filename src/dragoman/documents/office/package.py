"""Office files: Word and PowerPoint (OOXML), .odt and .odp (OpenDocument), which are zip archives of XML files.

All text is translated: body, tables, headers, footers, footnotes, endnotes, comments, text boxes, speaker notes,
masters, charts, diagrams, descriptions of pictures, and the data that controls show. Archive members without a
translation keep their bytes. All members keep their order, date and compression.
"""

from __future__ import annotations

import copy
import io
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from dragoman.documents.document import Document, DocumentInfo, Text, Untranslated
from dragoman.documents.office.fields import Formulas
from dragoman.documents.office.grammars import ODF, OOXML
from dragoman.documents.office.paragraphs import Grammar, has_unknown_text, paragraphs
from dragoman.documents.office.parts import (
    CONTENT_TYPES,
    CORE_PROPERTIES,
    RELATIONSHIPS,
    bound_data,
    embedded,
    main_part,
    parts_with_text,
    properties,
)
from dragoman.documents.units import Part, Unit, units_of
from dragoman.documents.xml import check
from dragoman.errors import DataError, parsing

_WORD, _POWERPOINT, _OPEN = (
    (".docx", ".docm", ".dotx", ".dotm"),
    (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
    (".odt", ".ott", ".odp", ".otp"),
)
SUFFIXES = (*_WORD, *_POWERPOINT, *_OPEN)

MOST_BYTES = 1 << 30
"""Limit on the uncompressed size of all members together."""

FREE_BYTES, MOST_RATIO = 1 << 26, 100
"""Uncompressed size that any archive may have, and beyond it the limit as a multiple of the archive's own size.

Zeros are packed to a thousandth: an upload of 0.3 MB would be as much work as a document of 300 MB.
"""

MOST_XML_BYTES = 1 << 26
"""Limit on the uncompressed size of a member with text."""

MOST_MEMBERS = 20_000
"""Limit on the number of members of the archive."""

MOST_NAME = 1000
"""Limit on the characters of a member's name."""

CHUNK = 1 << 20
"""Bytes of a member that are unpacked at a time."""


_HEADER = struct.Struct("<6xH6x3I")  # of a member: flags; sum, packed size, size
_SIZES_FOLLOW = 8  # the flag of a header without sum and sizes
_IN_ZIP64 = 0xFFFFFFFF  # a size that stands elsewhere
_END = struct.Struct("<10xH")  # of the archive: number of members
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of Office begin that are encrypted, or as old as .doc and .ppt."""
_ENCRYPTED_WHOLE = frozenset({"EncryptedPackage", "encrypted-package"})  # members that hold a whole package
_ENCRYPTED = re.compile(r"full-path=[\"']content\.xml[\"'][^<>]{0,500}+>\s*<(?:\w+:)?encryption-data")
"""What the manifest of an OpenDocument file says of content that is encrypted."""
_MANY = 0xFFFF  # a number of members that stands elsewhere
_CHARTS = re.compile(r"(?:word|ppt)/charts/.*\.xml")
_MEMBERS = {
    **dict.fromkeys(_WORD, re.compile(r"word/.*\.xml")), **dict.fromkeys(_POWERPOINT, re.compile(r"ppt/.*\.xml")),
    **dict.fromkeys(_OPEN, re.compile(r"(?:.*/)?(?:content|styles)\.xml")),
}  # fmt: skip
"""Members with text, by their names; OOXML can give them other names."""
_MAIN = re.compile(r"word/document[^/]*\.xml|ppt/slides/[^/]*\.xml|content\.xml")
"""Members whose text stands in paragraphs."""

_ABOUT = re.compile(
    r"docProps/(?:core|app)\.xml|customXml/.*\.(?:xml|rels)|meta\.xml|_rels/\.rels|\[Content_Types\]\.xml"
)
"""Members that say something about the document or hold its data."""

_CORE = {
    **dict.fromkeys(_WORD, "word/document.xml"), **dict.fromkeys(_POWERPOINT, "ppt/presentation.xml"),
    **dict.fromkeys(_OPEN, "content.xml"),
}  # fmt: skip


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an office file into its paragraphs; see ``document.Format``."""
    suffix = next(candidate for candidate in SUFFIXES if info.name.lower().endswith(candidate))
    grammar = ODF if suffix in _OPEN else OOXML
    with parsing(info.name, f"a {suffix} file"):
        contents, about, names = _contents(data, suffix, info)
    texts, left = _checked(contents, grammar, info)
    members: dict[str, tuple[Text, Sequence[Part]]] = {}
    formulas = Formulas.of(text.text for text in texts.values())
    for name, text in texts.items():
        parts, names_left = paragraphs(text.text, grammar, formulas)
        left += names_left
        if any(isinstance(part, Unit) for part in parts):
            members[name] = text, parts
        elif _MAIN.fullmatch(name) and not names_left and has_unknown_text(text.text, grammar):
            left.append(Untranslated(name, "has text, but no paragraph in the elements of this format"))
    sheets = set(_sheets(names, members))
    left += [*_data_sheets(names, members), *embedded([name for name in names if name not in sheets])]
    stores, _ = _checked(about, ODF, info)  # which nobody must be able to read
    data_parts, unreachable = bound_data(texts, stores) if grammar is OOXML else ({}, [])
    members |= {name: (stores[name], parts) for name, parts in data_parts.items()}
    everything = [part for _, parts in members.values() for part in parts]
    left += unreachable
    for name in (CORE_PROPERTIES, "meta.xml"):
        bound = {unit.plain for unit in units_of(data_parts.get(name, ()))}
        left += properties(stores[name].text, bound) if name in stores else []

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        new_members = {name: text.encode(render(parts)) for name, (text, parts) in members.items()}
        for name, content in new_members.items():
            check(content, replace(info, name=f"{info.name}: {name}, as translated"))
        with parsing(info.name, f"a {suffix} file"):
            return _repacked(data, new_members)

    return Document(everything, save, tuple(left))


def _checked(
    contents: dict[str, bytes], grammar: Grammar, info: DocumentInfo
) -> tuple[dict[str, Text], list[Untranslated]]:  # fmt: skip
    """Return the texts of members, and those of embedded OpenDocument objects that are no safe XML.

    Raises:
        DataError: Another member is no safe XML.
    """
    texts: dict[str, Text] = {}
    left = []
    for name, content in contents.items():
        try:
            texts[name] = check(content, replace(info, name=f"{info.name}: {name}"))
        except DataError as error:
            if grammar is not ODF or name in ("content.xml", "styles.xml"):
                raise
            left.append(Untranslated(name, f"an embedded object that cannot be read ({error})"[:200]))
    return texts, left


def _contents(
    data: bytes, suffix: str, info: DocumentInfo
) -> tuple[dict[str, bytes], dict[str, bytes], list[str]]:  # fmt: skip
    """Return the members that hold text, those about the document, and the names of all; all sums are checked first.

    Raises:
        DataError: The archive is refused; see ``_check``.
        Exception: It is damaged; any error that unpacking can raise.
    """
    contents, about = {}, {}
    if data.startswith(_COMPOUND):
        raise DataError(
            f"{info.name}: is encrypted, or of an old format such as .doc: remove its password, or save it as {suffix}"
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check(archive, data, info)
        names = archive.namelist()
        holds_text = _members_with_text(archive, suffix, info)
        for member in archive.infolist():
            is_about, has_text = _ABOUT.fullmatch(member.filename) is not None, holds_text(member.filename)
            if (has_text or is_about) and member.file_size > MOST_XML_BYTES:
                raise DataError(f"{info.name}: {member.filename} unpacks to {member.file_size:,} bytes: too many")
            # Large members without text are read and forgotten. zipfile checks each sum, and stops at the listed size.
            chunks, size = [], 0
            with archive.open(member) as source:
                while chunk := source.read(CHUNK):
                    size += len(chunk)
                    chunks += [chunk] if has_text or is_about else []
            if size != member.file_size or not _agrees_with_its_header(member, data):
                raise DataError(f"{info.name}: damaged ({member.filename} has another size or sum than it should)")
            if has_text:
                contents[member.filename] = b"".join(chunks)
            elif is_about:
                about[member.filename] = b"".join(chunks)
    return contents, about, names


def _members_with_text(archive: zipfile.ZipFile, suffix: str, info: DocumentInfo) -> Callable[[str], bool]:
    """Return whether a member holds text, by its name, or by what an OOXML package says of its parts.

    Raises:
        DataError: The archive has no main part.
    """
    names, core, pattern = set(archive.namelist()), _CORE[suffix], _MEMBERS[suffix]
    listed: set[str] = set()
    if suffix not in _OPEN:
        core = main_part(_small(archive, RELATIONSHIPS)) or core
        listed = {core, *parts_with_text(_small(archive, CONTENT_TYPES))}
    if core not in names:
        raise DataError(f"{info.name}: has no {core}, so it is not a {suffix} file")
    return lambda name: name in listed or pattern.fullmatch(name) is not None


def _small(archive: zipfile.ZipFile, name: str) -> str:
    """Return the text of a member, "" without it or if it is larger than any sound one."""
    if name not in archive.namelist() or archive.getinfo(name).file_size > CHUNK:
        return ""
    return archive.read(name).decode("utf-8", errors="replace")


def _agrees_with_its_header(member: zipfile.ZipInfo, data: bytes) -> bool:
    """True if sum and sizes in front of a member are those in the directory, or are written behind it."""
    flags, *numbers = _HEADER.unpack_from(data, member.header_offset)
    listed = [member.CRC, member.compress_size, member.file_size]
    return bool(flags & _SIZES_FOLLOW) or all(
        number in (known, _IN_ZIP64) for number, known in zip(numbers, listed, strict=True)
    )


def _sheets(names: Collection[str], translated: Collection[str]) -> list[str]:
    """Return the embedded workbooks of charts, if charts are translated."""
    if not any(_CHARTS.fullmatch(name) for name in translated):
        return []
    return [name for name in names if re.fullmatch(r"(?=.*/embeddings/).*\.xls[xmb]", name)]


def _data_sheets(names: Collection[str], translated: Collection[str]) -> list[Untranslated]:
    """Return the workbooks of charts as left, because formulas and tables refer to cells by the text in them."""
    return [Untranslated(name, "the data sheet of a chart keeps its labels") for name in _sheets(names, translated)]


def _check(archive: zipfile.ZipFile, data: bytes, info: DocumentInfo) -> None:
    """Check an archive by its directory, before anything is unpacked."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if _n_listed(data) not in (len(members), _MANY):
        raise DataError(
            f"{info.name}: damaged (its directory lists {len(members):,} members, which is not all of them)"
        )
    if len(set(names)) != len(names):
        raise DataError(f"{info.name}: has two members of the same name")
    if any(not 0 < len(name) <= MOST_NAME for name in names):
        raise DataError(f"{info.name}: has a member without a name, or with one of over {MOST_NAME:,} characters")
    n_bytes = sum(member.file_size for member in members)
    most = min(MOST_BYTES, max(FREE_BYTES, MOST_RATIO * len(data)))
    if n_bytes > most or len(members) > MOST_MEMBERS:
        raise DataError(f"{info.name}: unpacks to {n_bytes:,} bytes in {len(members):,} members: too much")
    is_encrypted = any(member.flag_bits & 1 for member in members) or not _ENCRYPTED_WHOLE.isdisjoint(names)
    if is_encrypted or _ENCRYPTED.search(_small(archive, "META-INF/manifest.xml")):
        raise DataError(f"{info.name}: is encrypted: remove its password first")


def _n_listed(data: bytes) -> int:
    """Return the number of members according to the record at the end of an archive, which zipfile does not check."""
    return int(_END.unpack_from(data, data.rfind(b"PK\5\6"))[0])


def _repacked(data: bytes, changed: dict[str, bytes]) -> bytes:
    """Return the archive with the content of some members replaced; the others are copied."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as new_archive:
        new_archive.comment = archive.comment
        for member in archive.infolist():
            if member.filename in changed:
                new_archive.writestr(member, changed[member.filename])
            else:
                with archive.open(member) as source, new_archive.open(copy.copy(member), "w") as out_member:
                    shutil.copyfileobj(source, out_member, CHUNK)
    return out.getvalue()
