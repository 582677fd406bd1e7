"""Judges of HTML, by html5lib, and of Markdown, by markdown-it with the plugins for what people write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from xml.etree import ElementTree

import html5lib
from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

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


# --- Markdown ---------------------------------------------------------------------------------------------------------

MARKS = {
    "directive": re.compile(r"^[ \t]*(:::+[ \t]*\w*|!!! ?\S+|\?\?\?\+? ?\S+|=== )", re.MULTILINE),
    "import": re.compile(r"^(?:import|export) .*$", re.MULTILINE),
    "shortcode": re.compile(r"\{\{[<%].*?[>%]\}\}|\{%.*?%\}|\{\{.*?\}\}|\{#[\w-]+\}|\{: .*?\}", re.DOTALL),
    "note": re.compile(r"\[\^[^\]\s]+\]:?"),
    "alert": re.compile(r"^[ \t]*> ?\[!\w+\]", re.MULTILINE),
    "task": re.compile(r"^[ \t]*[-*+] \[[ xX]\] ", re.MULTILINE),
    "wiki": re.compile(r"!?\[\[[^\]\n|]+"),
    "abbreviation": re.compile(r"^\*\[[^\]]+\]:", re.MULTILINE),
}
STYLE = re.compile(r"<(/?)(strong|em|s|del)>")
"""The same as the marks of Markdown, which cannot stand everywhere."""
FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?^\1?[ \t]*\2", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def markdown(data: bytes) -> list[Block]:
    """Read Markdown."""
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from None
    blocks = list(_markdown_blocks(source))
    prose = CODE_SPAN.sub("`", FENCE.sub("", source))
    for name, pattern in MARKS.items():
        blocks.append(Block(name, marks=[" ".join(match.split()) for match in _matches(pattern, prose)], is_text=False))
    return [block for block in blocks if block.pieces or block.marks or block.name in MARKS]


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match[0] for match in pattern.finditer(text)]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"linkify": False})
    for plugin in (front_matter_plugin, footnote_plugin, deflist_plugin, tasklists_plugin):
        parser.use(plugin)
    return parser.use(dollarmath_plugin, allow_space=False, allow_digits=False)


PARSER = _parser()


def _markdown_blocks(source: str) -> Iterator[Block]:
    path: list[str] = []
    for token in PARSER.parse(source):
        if token.nesting == 1:
            path.append(token.type.removesuffix("_open"))
        elif token.nesting == -1:
            path.pop()
        elif token.type == "inline":
            block = Block("/".join(path))
            _inline(token.children or [], block)
            yield block
        elif token.type == "front_matter":
            yield Block("front matter", marks=re.findall(r"^[ \t]*[\w-]+:", token.content, re.MULTILINE), is_text=False)
        elif token.type == "html_block":
            yield _of_html("/".join([*path, "html"]), token.content)
        else:
            yield Block("/".join([*path, token.type]), [("", token.content)], [token.info], is_text=False)


def _of_html(path: str, content: str) -> Block:
    """Return HTML in Markdown as a block: its tags without what people read, and its text."""
    block = Block(path)
    for part in re.split(r"(<!--.*?-->|<[^>]*>)", content, flags=re.DOTALL):
        if part.startswith("<"):
            block.marks.append(re.sub(r"\s(?:alt|title|placeholder|aria-label)=(?:\"[^\"]*\"|'[^']*')", "", part))
        else:
            block.add("", unescape(part))
    return block


def _inline(tokens: list[Any], block: Block) -> None:
    around: list[str] = []
    for token in tokens:
        place = "/".join(around)
        if token.nesting == 1:
            around.append(f"{token.tag} {token.attrs.get('href', '')}".strip())
            block.marks.append(around[-1])
        elif token.nesting == -1:
            around.pop()
        elif token.type == "text":
            block.add(place, token.content)
        elif token.type in ("softbreak", "hardbreak"):
            block.add(place, " ")
            if token.type == "hardbreak":
                block.marks.append("line break")
        elif token.type == "image":
            block.marks.append(f"image {token.attrs.get('src', '')}")
            block.add(f"{place}/image", token.content)
        elif token.type == "html_inline" and (tag := STYLE.fullmatch(token.content)):
            if tag[1]:
                around.pop()
            else:
                around.append(tag[2])
                block.marks.append(tag[2])
        else:  # code, HTML, math, footnotes
            block.marks.append(f"{token.type} {token.content or token.meta.get('label', '')}")
