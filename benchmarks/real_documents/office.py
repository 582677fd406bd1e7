"""A judge of Word, PowerPoint and OpenDocument files.

lxml reads every XML part; python-docx, python-pptx and odfpy open the whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import docx
import pptx
from lxml import etree
from odf.opendocument import load as load_odf

from benchmarks.real_documents.judging import (
    LATIN_WORD,
    UNSPACED,
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
    "shape": ("alt",), "textpath": ("string",), "content-control": ("alias",), "text-input": ("description",),
    "conditional-text": ("string-value-if-true", "string-value-if-false"), "hidden-text": ("string-value",),
    "toc-mark": ("string-value",), "alphabetical-index-mark": ("string-value",),
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
FIELD_WORDS = re.compile(r"\s*(?:XE|TC|QUOTE|FILLIN)\s+\"([^\"\\:]+)\"|\s*MACROBUTTON\s+\S+\s+(.+)", re.IGNORECASE)
"""Words in the code of a field."""
VISIBLE = names("b i u strike dstrike baseline vertAlign color highlight caps smallCaps rStyle vanish")
"""What people see of the properties of a run, and whether they see it."""
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
XML = etree.XMLParser(resolve_entities=False, huge_tree=True)
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
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
            tree = etree.fromstring(contents[name], XML)
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
    if name in NO_TEXT or etree.QName(element).namespace == MATH:
        return
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] in SHOWN.get(name, ()) and value.strip():
            blocks.append(Block(f"{part} {name}@{key}", [("", value)]))
    if name in PARAGRAPHS or (name in ("desc", "title") and "svg" in str(etree.QName(element).namespace)):
        block = Block(f"{part} {name}{INNER if block is not None else ''}")
        blocks.append(block)
        around = ""
    elif link := _link_of(element):
        last = block.pieces[-1][0] if block is not None and block.pieces else ""
        around = last if last.startswith(f"{around}/{link}\0") else inside(around, link, counts[name])
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


def _link_of(run: Any) -> str:
    """Return the links of a run of a slide, which are properties of it; runs side by side may share them."""
    links = run.findall("{*}rPr/{*}hlinkClick") + run.findall("{*}rPr/{*}hlinkMouseOver")
    targets = [[value for key, value in link.attrib.items() if key != "tooltip"] for link in links]
    return " ".join(f"{etree.QName(link).localname} {own}" for link, own in zip(links, targets, strict=True))


RANGE = re.compile(
    r"(bookmark|commentRange|moveToRange|perm)(Start|End)|"
    r"(bookmark|reference-mark|alphabetical-index-mark|toc-mark|user-index-mark|change)-(start|end)"
)
KEYS = {"bookmark": "name", "reference-mark": "name", "change": "change-id"}
"""Attributes by which OpenDocument names its ranges, where that is not ``id``."""


def _ranges(paragraph: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield the name and the text of each range of a paragraph, and whether it can be judged.

    It cannot if it crosses another one or a field, or an end of it is inside a word.
    """
    opened: dict[tuple[str, str], int] = {}
    pairs: list[tuple[int, int, str]] = []  # places in the text, and the name
    text = ""
    is_open = False
    for child in paragraph:
        if not isinstance(child.tag, str):
            continue
        tag = etree.QName(child)
        is_open |= child.find(".//{*}fldChar") is not None
        if match := RANGE.fullmatch(tag.localname):
            kind = match[1] or match[3]
            key = child.get(f"{{{tag.namespace}}}{'id' if match[1] else KEYS.get(kind, 'id')}", "")
            if (match[2] or match[4]).lower() == "start":
                opened[kind, key] = len(text)
            elif (kind, key) in opened:
                pairs.append((opened.pop((kind, key)), len(text), f"{kind} {key}"))
        text += "".join(character for character, _ in _styled_child(paragraph, child, ""))
    for first, last, name in pairs:
        crosses = any(a < first < b < last or first < a < last < b for a, b, _ in pairs)
        in_word = any(text[at - 1 : at].isalnum() and text[at : at + 1].isalnum() for at in (first, last))
        yield name, text[first:last], not crosses and not in_word and not is_open


OPENED = {
    ".docx": docx.Document, ".docm": docx.Document, ".pptx": pptx.Presentation, ".pptm": pptx.Presentation,
    ".ppsx": pptx.Presentation, ".odt": load_odf, ".odp": load_odf,
}  # fmt: skip


def office_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return whether the library of the format opens the result, if it opens the source; and what is not named."""
    faults = _unnamed(source, result, mode, [plain(text) for text in named])
    if mode in ("same", "reversed"):
        faults += _restyled(source, result)
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


def _restyled(source: bytes, result: bytes) -> list[Fault]:
    """Return parts in which a word has another style than it had, or a digit of a word that is partly in a style."""
    styles, translated = _words_by_style(source), _words_by_style(result)
    faults = []
    for name, own in styles.items():
        after = translated.get(name, Counter())
        lost, new = own - after, after - own
        if lost:
            faults.append(Fault("restyled", name, f"lost {list(lost)[:3]}, new {list(new)[:3]}"))
    ranges = {name: text for name, text, _ in _all_ranges(result)}
    for name, text, is_judged in _all_ranges(source):
        if is_judged and words_of(text) != words_of(ranges.get(name, "")):
            faults.append(Fault("range", name, f"{text[:60]!r} became {ranges.get(name, '')[:60]!r}"))
    return faults


def _all_ranges(data: bytes) -> Iterator[tuple[str, str, bool]]:
    for name, tree in _trees_with_text(data):
        for paragraph in tree.iter("{*}p", "{*}h"):
            yield from ((f"{name} {own}", text, is_judged) for own, text, is_judged in _ranges(paragraph))


def _trees_with_text(data: bytes) -> Iterator[tuple[str, Any]]:
    return ((name, tree) for name, tree in _trees(data) if name.startswith(PARTS) and not name.startswith(NOT_READ))


def _trees(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield name and tree of each part that is XML."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".xml"):
                with contextlib.suppress(etree.XMLSyntaxError, ValueError):
                    yield name, etree.fromstring(archive.read(name), XML)


def _words_by_style(data: bytes) -> dict[str, Counter[tuple[str, str]]]:
    """Return the words of each part with their style; of words in several styles, their digits."""
    result: dict[str, Counter[tuple[str, str]]] = {}
    for name, tree in _trees_with_text(data):
        found: Counter[tuple[str, str]] = Counter()
        for paragraph in tree.iter("{*}p", "{*}h"):
            characters = [*_styled(paragraph, "")]
            text = "".join(character for character, _ in characters)
            for run in re.finditer(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\S)+", text):
                own = [(c, style) for c, style in characters[run.start() : run.end()] if c.isalnum()]
                styles = {style for _, style in own}
                if len(styles) == 1:
                    found.update((next(iter(styles)), word) for word in words_of(run[0]))
                else:
                    found.update((style, c) for c, style in own if c.isdecimal())
        result[name] = found
    return result


def _styled(element: Any, style: str) -> Iterator[tuple[str, str]]:
    """Yield each character of a paragraph with its style; another paragraph inside it has its own."""
    name, is_direct = etree.QName(element).localname, etree.QName(element).namespace not in OOXML
    yield from (
        (character, style) for character in (element.text or "") * (name in TEXT and (is_direct or name == "t"))
    )
    for child in element:
        if isinstance(child.tag, str):
            yield from _styled_child(element, child, style)


def _styled_child(element: Any, child: Any, style: str) -> Iterator[tuple[str, str]]:
    """Yield the characters of a child of an element, and those behind it."""
    inner, space = etree.QName(child).localname, etree.QName(child).namespace
    if inner in ("tab", "ptab", "br", "cr", "line-break", "s", "noBreakHyphen", "title", "desc"):
        yield " ", style
    elif inner not in NO_TEXT and inner not in PARAGRAPHS and space != MATH:
        own = style
        if inner == "r":
            properties = child.find("{*}rPr")
            own = "" if properties is None else f"{_visible(properties)} {_link_of(child)}".strip()
        elif inner == "span":
            own = next((value for key, value in child.attrib.items() if str(key).endswith("}style-name")), "")
        yield from _styled(child, own)
    is_direct = etree.QName(element).namespace not in OOXML and etree.QName(element).localname in AROUND_TEXT
    yield from ((character, style) for character in (child.tail or "") * is_direct)


def _visible(properties: Any) -> str:
    """Return what people see of the properties of a run."""
    seen = [f"{key}={value}" for key, value in properties.attrib.items() if key in VISIBLE]
    for child in properties:
        if isinstance(child.tag, str) and (name := etree.QName(child).localname) in VISIBLE:
            seen.append(name + "".join(child.attrib.values()))
    return " ".join(sorted(seen))


def _other_texts(data: bytes) -> Iterator[tuple[str, str]]:
    for name, tree in _trees(data):
        for i, reading in enumerate(tree.iter(f"{{{W}}}rt")):
            yield f"{name} rt {i}", "".join(reading.itertext())
        for i, level in enumerate(tree.iter(f"{{{W}}}lvlText")):
            yield f"{name} lvlText {i}", level.get(f"{{{W}}}val", "").replace("%", " ")
        for i, code in enumerate(tree.iter(f"{{{W}}}instrText")):
            if words := FIELD_WORDS.match(code.text or ""):
                yield f"{name} instrText {i}", words[1] or words[2]
        if name in ("docProps/core.xml", "meta.xml"):
            for title in tree.iter("{http://purl.org/dc/elements/1.1/}title"):
                yield f"{name} title", title.text or ""
