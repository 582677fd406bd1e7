"""A judge of Word, PowerPoint and OpenDocument files.

lxml reads every XML part; python-docx, python-pptx and odfpy open the whole.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import docx
import pptx
from lxml import etree
from odf.opendocument import load as load_odf

from benchmarks.real_documents.judging import Block, Fault, UnreadableError, inside, names

PARAGRAPHS = frozenset({"p", "h"})
LINKS = frozenset({"hyperlink", "a", "ruby", "rt", "rubyBase"})
NO_TEXT = names(
    "instrText delInstrText delText tracked-changes del moveFrom deletion Fallback scripts posOffset align fldData "
    "binary-data pctWidth pctHeight"
)
"""Elements whose text nobody reads, or nobody any more."""
DESCRIPTIONS = frozenset({"descr", "title"})
PARTS = ("word/", "ppt/slides/", "ppt/notesSlides/", "content.xml", "styles.xml")
NOT_READ = tuple(
    names(
        "word/styles word/settings word/fontTable word/webSettings word/theme word/numbering word/people "
        "word/commentsE word/commentsI word/glossary"
    )
)
COUNTED = names("drawing pict tbl table pic image br line-break footnoteReference note tab")
TEXT = names("t p h span a desc title ruby-base bookmark-ref reference-ref meta")
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
    blocks = [Block("members", marks=sorted(names), is_text=False)]
    for name in sorted(names):
        if not name.endswith(".xml") or not name.startswith(PARTS) or name.startswith(NOT_READ):
            continue
        try:
            tree = etree.fromstring(contents[name], etree.XMLParser(resolve_entities=False, huge_tree=True))
        except (etree.XMLSyntaxError, ValueError) as error:
            raise UnreadableError(str(error)) from None
        counts: dict[str, int] = {}
        _read(tree, name, None, "", blocks, counts)
        counts = {key: n for key, n in counts.items() if key in COUNTED}
        blocks.append(Block(f"{name}: counts", marks=[f"{key} {n}" for key, n in counts.items()], is_text=False))
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
    for key in DESCRIPTIONS:
        if name in ("docPr", "cNvPr") and element.get(key, "").strip():
            blocks.append(Block(f"{part} {name}@{key}", [("", element.get(key))]))
    if name in PARAGRAPHS or (name in ("desc", "title") and "svg" in str(etree.QName(element).namespace)):
        block = Block(f"{part} {name}")
        blocks.append(block)
        around = ""
    elif name in LINKS:
        around = inside(around, name, counts[name])
    if block is not None and name in TEXT and element.text:
        block.add(around, element.text)
    if block is not None and name in ("tab", "br", "line-break", "s"):
        block.add(around, " ")
    for child in element:
        _read(child, part, block, around, blocks, counts)
        if block is not None and child.tail and name in AROUND_TEXT:
            block.add(around, child.tail)


def office_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return whether the library of the format opens the result, if it opens the source."""
    del mode, named
    opened = {".docx": docx.Document, ".pptx": pptx.Presentation, ".odt": load_odf}[suffix]
    try:
        opened(io.BytesIO(source))
    except Exception:
        return []
    try:
        opened(io.BytesIO(result))
    except Exception as error:
        return [Fault("not opened", suffix, f"{type(error).__name__}: {error}")]
    return []
