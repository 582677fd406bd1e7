"""Judge of HTML, by html5lib."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import html5lib

from benchmarks.real_documents.judging import Block, UnreadableError, names

INLINE = names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em embed font i img ins kbd label map mark meter output "
    "picture progress q ruby rb rt rp rtc s samp small span strike strong sub sup time tt u var wbr"
)
"""Elements that a sentence may go through, by the HTML standard's phrasing content."""
RAW = frozenset(["script", "style"])
CODE = frozenset(["code", "kbd", "samp", "var", "pre", "tt"])
"""Elements whose text may stay as it is."""
VISIBLE = frozenset(["alt", "title", "placeholder", "label", "aria-label", "aria-description", "aria-roledescription"])
"""Attributes that people read."""
BUTTONS = frozenset(["button", "submit", "reset"])
META = names(
    "description keywords og:title og:description og:site_name og:image:alt twitter:title twitter:description "
    "twitter:image:alt application-name apple-mobile-web-app-title"
)
"""Names of ``meta`` elements whose content people read."""
TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>|<\?.*?\?>|<!\[[^\]>]*\]>|<!--\[.*?\]>", re.DOTALL)
"""Templates of Jinja, Liquid, Handlebars, ERB and PHP, and conditional comments."""


def html(data: bytes) -> list[Block]:
    """Read a page."""
    try:
        parser = html5lib.HTMLParser(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
        declares = re.search(rb"<meta[^>]*charset|<\?xml[^>]*encoding", data[:4096], re.IGNORECASE)
        tree = parser.parse(data) if declares or not _is_utf8(data) else parser.parse(data.decode("utf-8-sig"))
    except Exception as error:  # of codecs, and of names that ElementTree does not take
        raise UnreadableError(str(error)) from None
    blocks: list[Block] = []
    _Page(blocks).read(tree)
    source = data.decode("utf-8", "replace")
    blocks.append(Block("templates", marks=TEMPLATE.findall(source), is_text=False))
    return [block for block in blocks if block.pieces or block.marks or block.name == "templates"]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Page:
    """Cuts a tree into blocks, in document order."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.current: Block | None = None
        self.texts: list[Block] = []

    def read(self, element: Any, path: str = "", around: str = "", is_text: bool = True) -> None:
        """Read an element and what is in it."""
        if not isinstance(element.tag, str):  # a comment
            if element.tag is ElementTree.Comment:
                self._block(path, is_text).marks.append(f"<!--{element.text}-->")
            return
        name = element.tag.rpartition("}")[2]
        is_text = {"no": False, "yes": True}.get(element.get("translate", ""), is_text)
        self._attributes(element, name, f"{path}/{name}", is_text)
        if name in RAW:
            self._block(path, is_text).marks.append(f"{name}: {element.text}")
            return
        is_inline = name in INLINE
        if is_inline:
            around = f"{around}/{_mark(element, name)}"
        else:
            path, around, self.current = f"{path}/{name}", "", None
            self._block(path, is_text)
        inner_text = is_text and name not in CODE
        self._text(element.text, path, around, inner_text)
        for child in element:
            self.read(child, path, around, inner_text)
            self._text(child.tail, path, around, inner_text)
        if not is_inline:
            self.current = None

    def _text(self, text: str | None, path: str, around: str, is_text: bool) -> None:
        if text and text.strip():
            self._block(path, is_text).add(around, text)
        elif text and self.current is not None and self.current.pieces:
            self.current.add(self.current.pieces[-1][0], " ")

    def _block(self, path: str, is_text: bool) -> Block:
        if self.current is None:
            self.current = Block(path, is_text=is_text)
            self.blocks.append(self.current)
        return self.current

    def _attributes(self, element: Any, name: str, path: str, is_text: bool) -> None:
        self._block(path.rpartition("/")[0], is_text).marks.append(_mark(element, name))
        for key, value in element.attrib.items():
            if _is_visible(element, name, str(key)) and value.strip():
                self.texts.append(Block(f"{path}@{key}", [("", value)], is_text=is_text))
        self.blocks += self.texts
        self.texts.clear()


def _is_visible(element: Any, name: str, key: str) -> bool:
    if key == "value":
        return name == "input" and str(element.get("type", "")).lower() in BUTTONS
    if key == "content" and name == "meta":
        return str(element.get("name") or element.get("property")).lower() in META
    return key in VISIBLE


def _mark(element: Any, name: str) -> str:
    """Return a tag without the attributes that people read."""
    attributes = sorted((str(k), v) for k, v in element.attrib.items() if not _is_visible(element, name, str(k)))
    return name + "".join(f" {key}={value!r}" for key, value in attributes if key != "lang")
