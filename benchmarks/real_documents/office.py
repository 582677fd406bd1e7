"""A judge of Word, PowerPoint and OpenDocument files.

lxml reads every XML part; python-docx, python-pptx and odfpy open the whole.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
import pptx
from lxml import etree
from odf.opendocument import load as load_odf

from benchmarks.real_documents.judging import (
    LATIN_WORD,
    Block,
    Fault,
    UnreadableError,
    inside,
    names,
    plain,
    stayed,
    words_of,
)

PARAGRAPHS = frozenset({"p", "h"})
LINKS = frozenset({"hyperlink", "a"})
NO_TEXT = names(
    "instrText delInstrText delText tracked-changes del moveFrom deletion scripts posOffset align fldData "
    "binary-data pctWidth pctHeight rt"
)
"""Elements whose text nobody reads, or nobody any more."""
SHOWN = {
    "docPr": ("descr", "title"), "cNvPr": ("descr", "title"), "hyperlink": ("tooltip",), "hlinkClick": ("tooltip",),
    "tblCaption": ("val",), "tblDescription": ("val",), "alias": ("val",), "listItem": ("displayText",),
    "shape": ("alt",),
}  # fmt: skip
"""Attributes that people read."""
SUFFIXES = tuple(names(".docx .docm .dotx .dotm .pptx .pptm .ppsx .ppsm .potx .potm .odt .ott .odp .otp"))
ADDRESS = re.compile(r"\w+://\S+|\{\{[^{}]*\}\}|\{%[^{}]*%\}|\{#[^{}]*#\}|`[^`]+`")
"""Code as people write it in text, and addresses."""
TEXT_TYPES = re.compile(r"(?:wordprocessingml|presentationml|drawingml)[^\"]*\+xml")
PARTS = ("word/", "ppt/", "content.xml", "styles.xml", "Object")
NOT_READ = tuple(
    names(
        "word/styles word/settings word/fontTable word/webSettings word/theme word/numbering word/people "
        "word/commentsE word/commentsI word/glossary"
    )
)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OOXML = (
    W, "http://purl.oclc.org/ooxml/wordprocessingml/main", "http://schemas.openxmlformats.org/drawingml/2006/main",
    "http://purl.oclc.org/ooxml/drawingml/main",
)  # fmt: skip
"""Namespaces in which white space between runs is no text."""
COUNTED = names(
    "drawing pict tbl table pic image br line-break footnoteReference note tab sym fldChar instrText dataBinding"
)
TEXT = names("t p h span a desc title ruby-base bookmark-ref reference-ref meta")
INNER = " in a paragraph"
AROUND_TEXT = names("p h span a meta ruby-base")
"""Elements of OpenDocument after whose children text may stand."""


def office(data: bytes) -> list[Block]:
    """Read the paragraphs of all parts."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            contents = {name: archive.read(name) for name in names}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
        raise UnreadableError(str(error)) from None
    types = contents.get("[Content_Types].xml", b"").decode("utf-8", "replace")
    blocks = [Block("members", marks=sorted(names), is_text=False)]
    for name in sorted(names):
        listed = re.search(rf'PartName="/{re.escape(name)}"[^>]*ContentType="([^"]*)"', types)
        has_text = name.endswith(".xml") and (name.startswith(PARTS) or (listed and TEXT_TYPES.search(listed[1])))
        if not has_text or name.startswith(NOT_READ):
            if not name.startswith(("docProps", "customXml", *NOT_READ)) and not name.endswith("styles.xml"):
                sums = [hashlib.sha256(contents[name]).hexdigest()]
                blocks.append(Block(f"bytes of {name}", marks=sums, is_text=False))
            continue
        try:
            tree = etree.fromstring(contents[name], etree.XMLParser(resolve_entities=False, huge_tree=True))
        except (etree.XMLSyntaxError, ValueError) as error:
            raise UnreadableError(str(error)) from None
        counts: dict[str, int] = {}
        _read(tree, name, None, "", blocks, counts)
        counts = {key: n for key, n in counts.items() if key in COUNTED}
        blocks.append(Block(f"{name}: counts", marks=[f"{key} {n}" for key, n in counts.items()], is_text=False))
    # An element may change places with its words, so what is read in attributes and in text boxes has no order.
    attributes = [block for block in blocks if "@" in block.name or block.name.endswith(INNER)]
    blocks = [block for block in blocks if not ("@" in block.name or block.name.endswith(INNER))]
    blocks += sorted(attributes, key=lambda block: (block.name, words_of(block.text)))
    for block in blocks:
        block.is_text = block.is_text and any(map(str.isalpha, ADDRESS.sub("", block.text)))
    return [block for block in blocks if block.pieces or block.marks]


def _read(
    element: Any, part: str, block: Block | None, around: str, blocks: list[Block], counts: dict[str, int]
) -> None:
    """Read an element; each paragraph is a block, also one inside another, as in a text box."""
    if not isinstance(element.tag, str):
        return
    name = etree.QName(element).localname
    counts[name] = counts.get(name, 0) + 1
    if (
        name in NO_TEXT
        or etree.QName(element).namespace == "http://schemas.openxmlformats.org/officeDocument/2006/math"
    ):
        return
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] in SHOWN.get(name, ()) and value.strip():
            blocks.append(Block(f"{part} {name}@{key}", [("", value)]))
    if name in PARAGRAPHS or (name in ("desc", "title") and "svg" in str(etree.QName(element).namespace)):
        block = Block(f"{part} {name}{INNER if block is not None else ''}")
        blocks.append(block)
        around = ""
    elif name in LINKS:
        around = inside(around, name, counts[name])
    is_direct = etree.QName(element).namespace not in OOXML or name == "t"
    if block is not None and name in TEXT and element.text and (is_direct or element.text.strip()):
        block.add(around, element.text)
    if block is not None and name == "noBreakHyphen":
        block.add(around, "\u2011")
    if block is not None and name in ("tab", "ptab", "br", "cr", "line-break", "s"):
        block.add(around, " ")
    for child in element:
        _read(child, part, block, around, blocks, counts)
        if block is not None and child.tail and name in AROUND_TEXT and (is_direct or child.tail.strip()):
            block.add(around, child.tail)


OPENED = {
    ".docx": docx.Document, ".docm": docx.Document, ".pptx": pptx.Presentation, ".pptm": pptx.Presentation,
    ".ppsx": pptx.Presentation, ".odt": load_odf, ".odp": load_odf,
}  # fmt: skip


def office_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return whether the library of the format opens the result, if it opens the source; and what is not named."""
    faults = _unnamed(source, result, mode, [plain(text) for text in named])
    opened = OPENED.get(suffix)
    try:
        assert opened is not None
        opened(io.BytesIO(source))
    except Exception:
        return faults
    try:
        opened(io.BytesIO(result))
    except Exception as error:
        faults.append(Fault("not opened", suffix, f"{type(error).__name__}: {error}"))
    return faults


def _unnamed(source: bytes, result: bytes, mode: str, told: list[str]) -> list[Fault]:
    """Return readings of ruby, titles, and data that controls show which are neither translated nor named."""
    faults = []
    after = dict(_other_texts(result))
    for kind, text in _other_texts(source):
        words = plain(ADDRESS.sub(" ", text))
        if (
            LATIN_WORD.search(words)
            and stayed(words, after.get(kind, ""), mode)
            and not any(words in other for other in told)
        ):
            faults.append(Fault("untranslated", kind, words[:80]))
    return faults


def _other_texts(data: bytes) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if not name.endswith(".xml"):
                continue
            try:
                tree = etree.fromstring(archive.read(name), etree.XMLParser(resolve_entities=False, huge_tree=True))
            except (etree.XMLSyntaxError, ValueError):
                continue
            for i, reading in enumerate(tree.iter(f"{{{W}}}rt")):
                yield f"{name} rt {i}", "".join(reading.itertext())
            if name in ("docProps/core.xml", "meta.xml"):
                for title in tree.iter("{http://purl.org/dc/elements/1.1/}title"):
                    yield f"{name} title", title.text or ""
