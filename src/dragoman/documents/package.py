"""Office files: .docx, .pptx (OOXML) and .odt (OpenDocument), which are zips of XML.

Every text is found: body, tables, headers, footers, footnotes, endnotes, comments, text boxes, notes of a slide,
masters, charts and diagrams. Members without a translation keep their bytes, and all keep order, dates and compression.
"""

from __future__ import annotations

import copy
import io
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from dragoman.documents.document import Asked, Document, Left, Text
from dragoman.documents.office import Grammar, paragraphs
from dragoman.documents.units import Part, Unit
from dragoman.documents.xml import check
from dragoman.errors import DataError

SUFFIXES = (".docx", ".pptx", ".odt")

MOST_BYTES = 1 << 30
"""Of all members, unpacked."""

MOST_XML_BYTES = 1 << 26
"""Of one member with text."""

MOST_MEMBERS = 20_000


def _names(prefix: str, names: str) -> frozenset[str]:
    return frozenset(f"{prefix}:{name}" for name in names.split())


_OOXML = "http://schemas.openxmlformats.org"
_STRICT = "http://purl.oclc.org/ooxml"
_CHART = _names("c", "v") | _names("cx", "v pt")
"""Names and categories as a chart shows them, and its numbers; formulas are other elements."""
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
_CHARTS = re.compile(r"(?:word|ppt)/charts/.*\.xml")
_CORE = {".docx": "word/document.xml", ".pptx": "ppt/presentation.xml", ".odt": "content.xml"}


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    suffix = next(each for each in SUFFIXES if asked.name.lower().endswith(each))
    pattern, grammar = _MEMBERS[suffix]
    members: dict[str, tuple[Text, Sequence[Part]]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check(archive, suffix, asked)
            for member in archive.infolist():
                if pattern.fullmatch(member.filename):
                    if member.file_size > MOST_XML_BYTES:
                        raise DataError(f"{asked.name}: {member.filename} has {member.file_size:,} bytes, too many")
                    text = check(archive.read(member), replace(asked, name=f"{asked.name}: {member.filename}"))
                    parts = paragraphs(text.text, grammar)
                    if any(isinstance(part, Unit) for part in parts):
                        members[member.filename] = text, parts
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise DataError(f"{asked.name}: not a {suffix} file, or a damaged one ({error})") from None
    everything = [part for _, parts in members.values() for part in parts]

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        made = {name: text.encode(render(parts)) for name, (text, parts) in members.items()}
        for name, content in made.items():
            check(content, replace(asked, name=f"{asked.name}: {name}, as translated"))
        return _repacked(data, made)

    return Document(everything, save, _data_sheets(data, members))


def _data_sheets(data: bytes, translated: Collection[str]) -> tuple[Left, ...]:
    """The workbooks that charts were made from, whose formulas and tables refer to cells by what they say."""
    if not any(_CHARTS.fullmatch(name) for name in translated):
        return ()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [name for name in archive.namelist() if re.fullmatch(r".*/embeddings/.*\.xls[xmb]", name)]
    return tuple(Left(name, "the data sheet of a chart keeps its labels") for name in sheets)


def _check(archive: zipfile.ZipFile, suffix: str, asked: Asked) -> None:
    """Refuse what is no office file, or would unpack to too much; nothing has been unpacked yet."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if _CORE[suffix] not in names:
        raise DataError(f"{asked.name}: has no {_CORE[suffix]}, so it is no {suffix} file")
    if len(set(names)) != len(names):
        raise DataError(f"{asked.name}: has two members of the same name")
    n_bytes = sum(member.file_size for member in members)
    if n_bytes > MOST_BYTES or len(members) > MOST_MEMBERS:
        raise DataError(f"{asked.name}: unpacks to {n_bytes:,} bytes in {len(members):,} members: too much")
    if any(member.flag_bits & 1 for member in members) or "EncryptedPackage" in names:
        raise DataError(f"{asked.name}: is encrypted: remove its password first")


def _repacked(data: bytes, changed: dict[str, bytes]) -> bytes:
    """The zip with some members changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as made:
        made.comment = archive.comment
        for member in archive.infolist():
            if member.filename in changed:
                made.writestr(member, changed[member.filename])
            elif member.is_dir():
                made.writestr(member, b"")
            else:
                with archive.open(member) as source, made.open(copy.copy(member), "w") as out_member:
                    shutil.copyfileobj(source, out_member, 1 << 20)
    return out.getvalue()
