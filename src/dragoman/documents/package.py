"""Office files: .docx, .pptx (OOXML) and .odt (OpenDocument), which are zip archives of XML files.

All text is translated: body, tables, headers, footers, footnotes, endnotes, comments, text boxes, speaker notes,
masters, charts and diagrams. Archive members without a translation keep their bytes. All members keep their order, date
and compression.
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
from dragoman.documents.office import Grammar, paragraphs
from dragoman.documents.units import Part, Unit
from dragoman.documents.xml import check
from dragoman.errors import DataError, parsing

SUFFIXES = (".docx", ".pptx", ".odt")

MOST_BYTES = 1 << 30
"""Limit on the uncompressed size of all members together."""

MOST_XML_BYTES = 1 << 26
"""Limit on the uncompressed size of a member with text."""

MOST_MEMBERS = 20_000
"""Limit on the number of members of the archive."""

MOST_NAME = 1000
"""Limit on the characters of a member's name."""

CHUNK = 1 << 20
"""Bytes of a member that are unpacked at a time."""


def _names(prefix: str, names: str) -> frozenset[str]:
    """Return the element names that a text lists, separated by spaces, each with the prefix."""
    return frozenset(f"{prefix}:{name}" for name in names.split())


_OOXML = "http://schemas.openxmlformats.org"
_STRICT = "http://purl.oclc.org/ooxml"
_CHART = _names("c", "v") | _names("cx", "v pt")
"""Elements with the labels and numbers that a chart shows; its formulas are in other elements."""
OOXML = Grammar(
    namespaces={
        f"{_OOXML}/wordprocessingml/2006/main": "w", f"{_STRICT}/wordprocessingml/main": "w",
        f"{_OOXML}/drawingml/2006/main": "a", f"{_STRICT}/drawingml/main": "a",
        f"{_OOXML}/presentationml/2006/main": "p", f"{_STRICT}/presentationml/main": "p",
        f"{_OOXML}/drawingml/2006/chart": "c", f"{_STRICT}/drawingml/chart": "c",
        "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    },
    paragraphs=frozenset({"w:p", "a:p", "p:text"}) | _CHART,
    inline=_names("w", "hyperlink ins moveTo sdt sdtContent smartTag customXml fldSimple bdo dir"),
    breaks=_names("w", "br tab cr ptab") | {"a:br"},
    dropped=_names("w", "proofErr lastRenderedPageBreak"),
    runs=frozenset({"w:r", "a:r"}),
    direct=frozenset({"p:text"}) | _CHART,
    texts={"w:noBreakHyphen": "\u2011", "w:softHyphen": ""},
    untouched=_names("w", "del moveFrom pPr sdtPr sdtEndPr instrText delText") | {"a:pPr", "a:endParaRPr"},
)  # fmt: skip
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
ODF = Grammar(
    namespaces={f"{_OASIS}:text:1.0": "text", f"{_OASIS}:office:1.0": "office", f"{_OASIS}:drawing:1.0": "draw"},
    paragraphs=_names("text", "p h"),
    inline=_names("text", "span a meta meta-field ruby ruby-base"),
    breaks=_names("text", "tab line-break"),
    dropped=_names("text", "soft-page-break"),
    texts={"text:s": " "},
    untouched=_names("text", "tracked-changes ruby-text note-citation"),
)
_MEMBERS = {
    ".docx": (re.compile(r"word/.*\.xml"), OOXML),
    ".pptx": (re.compile(r"ppt/.*\.xml"), OOXML),
    ".odt": (re.compile(r"(?:.*/)?(?:content|styles)\.xml"), ODF),
}
_HEADER = struct.Struct("<6xH6x3I")  # of a member: flags; sum, packed size, size
_SIZES_FOLLOW = 8  # the flag of a header without sum and sizes
_IN_ZIP64 = 0xFFFFFFFF  # a size that stands elsewhere
_END = struct.Struct("<10xH")  # of the archive: number of members
_MANY = 0xFFFF  # a number of members that stands elsewhere
_CHARTS = re.compile(r"(?:word|ppt)/charts/.*\.xml")
_CORE = {".docx": "word/document.xml", ".pptx": "ppt/presentation.xml", ".odt": "content.xml"}


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an office file into its paragraphs; see ``document.Format``."""
    suffix = next(candidate for candidate in SUFFIXES if info.name.lower().endswith(candidate))
    pattern, grammar = _MEMBERS[suffix]
    members: dict[str, tuple[Text, Sequence[Part]]] = {}
    with parsing(info.name, f"a {suffix} file"):
        contents = _contents(data, pattern, suffix, info)
    for name, content in contents.items():
        text = check(content, replace(info, name=f"{info.name}: {name}"))
        parts = paragraphs(text.text, grammar)
        if any(isinstance(part, Unit) for part in parts):
            members[name] = text, parts
    everything = [part for _, parts in members.values() for part in parts]

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        new_members = {name: text.encode(render(parts)) for name, (text, parts) in members.items()}
        for name, content in new_members.items():
            check(content, replace(info, name=f"{info.name}: {name}, as translated"))
        with parsing(info.name, f"a {suffix} file"):
            return _repacked(data, new_members)

    return Document(everything, save, _data_sheets(data, members))


def _contents(data: bytes, pattern: re.Pattern[str], suffix: str, info: DocumentInfo) -> dict[str, bytes]:
    """Return the members that hold text, and check the sums of all members before anything is translated.

    Raises:
        DataError: The archive is refused; see ``_check``.
        Exception: It is damaged; any error that unpacking can raise.
    """
    contents = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check(archive, data, suffix, info)
        for member in archive.infolist():
            has_text = pattern.fullmatch(member.filename) is not None
            if has_text and member.file_size > MOST_XML_BYTES:
                raise DataError(f"{info.name}: {member.filename} has {member.file_size:,} bytes, too many")
            chunks = []
            n_bytes = 0
            with archive.open(member) as unpacked:  # zipfile checks its sum at its end, but not its size
                while chunk := unpacked.read(CHUNK):
                    n_bytes += len(chunk)
                    chunks += [chunk] * has_text
            if n_bytes != member.file_size or not _agrees_with_its_header(member, data):
                raise DataError(f"{info.name}: damaged ({member.filename} has another size or sum than it should)")
            if has_text:
                contents[member.filename] = b"".join(chunks)
    return contents


def _agrees_with_its_header(member: zipfile.ZipInfo, data: bytes) -> bool:
    """True if sum and sizes in front of a member are those in the directory, or are written behind it."""
    flags, *numbers = _HEADER.unpack_from(data, member.header_offset)
    listed = [member.CRC, member.compress_size, member.file_size]
    return bool(flags & _SIZES_FOLLOW) or all(
        number in (known, _IN_ZIP64) for number, known in zip(numbers, listed, strict=True)
    )


def _data_sheets(data: bytes, translated: Collection[str]) -> tuple[Untranslated, ...]:
    """Return the embedded workbooks of charts, if charts are translated; the workbooks are left as they are.

    Their formulas and tables refer to cells by the text in them, so translated labels would break them.
    """
    if not any(_CHARTS.fullmatch(name) for name in translated):
        return ()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [name for name in archive.namelist() if re.fullmatch(r"(?=.*/embeddings/).*\.xls[xmb]", name)]
    return tuple(Untranslated(name, "the data sheet of a chart keeps its labels") for name in sheets)


def _check(archive: zipfile.ZipFile, data: bytes, suffix: str, info: DocumentInfo) -> None:
    """Check an archive by its directory, before anything is unpacked."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if _CORE[suffix] not in names:
        raise DataError(f"{info.name}: has no {_CORE[suffix]}, so it is not a {suffix} file")
    if _n_listed(data) not in (len(members), _MANY):
        raise DataError(
            f"{info.name}: damaged (its directory lists {len(members):,} members, which is not all of them)"
        )
    if len(set(names)) != len(names):
        raise DataError(f"{info.name}: has two members of the same name")
    if any(not 0 < len(name) <= MOST_NAME for name in names):
        raise DataError(f"{info.name}: has a member without a name, or with one of over {MOST_NAME:,} characters")
    n_bytes = sum(member.file_size for member in members)
    if n_bytes > MOST_BYTES or len(members) > MOST_MEMBERS:
        raise DataError(f"{info.name}: unpacks to {n_bytes:,} bytes in {len(members):,} members: too much")
    if any(member.flag_bits & 1 for member in members) or "EncryptedPackage" in names:
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
