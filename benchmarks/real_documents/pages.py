"""The judge of HTML, by html5lib."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from itertools import count
from typing import Any
from xml.etree import ElementTree

import chardet
import html5lib
import webencodings
from lxml import etree

from benchmarks.real_documents.judging import (
    CODE_SPAN,
    CYRILLIC,
    LATIN_WORD,
    Block,
    Fault,
    UnreadableError,
    inside,
    names,
    plain,
    words_of,
)

INLINE = names(
    "a abbr acronym b bdi bdo big cite code data del dfn em embed font i img ins kbd label map mark meter output "
    "picture progress q ruby rb rt rp rtc s samp small span strike strong sub sup time tt u var wbr"
)
"""Elements that a sentence may go through, by the HTML standard's phrasing content."""
BLOCKS = frozenset(name for _, name in html5lib.constants.specialElements) | names(
    "audio canvas datalist dialog label legend main menuitem optgroup option rp search svg math title video"
)
"""Elements that HTML knows and that are not inline; what it does not know is inline."""
RAW = names("script style xmp iframe noembed noframes plaintext")
CODE = names("code kbd samp var pre tt listing rp")
"""Elements whose text may stay as it is."""
LISTINGS = names(
    "blob-code blob-code-inner react-file-line CodeMirror-line cm-line ace_line view-line crayon-line "
    "syntaxhighlighter member-signature type-signature sig-object memname"
)
"""Classes of code; of Doxygen's listings see ``read``."""
VISIBLE = names(
    "alt title placeholder label summary aria-label aria-description aria-roledescription aria-placeholder "
    "aria-valuetext"
)
"""Attributes that people read."""
ADDRESS = re.compile(r"\w+://\S+")
BUTTONS = frozenset(["button", "submit", "reset"])
META = names(
    "description keywords og:title og:description og:site_name og:image:alt twitter:title twitter:description "
    "twitter:image:alt application-name apple-mobile-web-app-title dc.title dc.description"
)
"""Names of ``meta`` elements whose content people read."""
TEMPLATE = re.compile(
    r"""\{\{(?=[^{}`]{0,200}`)(?:[^{}`]|`[^`]*`){1,5000}\}\}|\{\{(?=[^{}"']{0,200}["'])(?:[^<{}"']|'[^'{}\n]*'|"[^"{}\n]*"){1,5000}\}\}"""
    r"|\{\{!--.*?--\}\}|\{\{(?:- )?/\*.*?\*/(?: -)?\}\}|\{\{\{[^{}<]{1,2000}\}\}\}"
    r"|\{\{(?!\{\{)(?:(?!\{\{)[^<]){1,20000}?\}\}"
    r"|\{%(?:(?!\{%).){1,5000}?%\}|\[%[-+=~#\s](?:(?!\[%).){1,5000}?%\]|<%(?:(?!<%).){1,5000}?%>|<\?(?:php|=)(?:(?!<\?).){1,5000}?\?>"
    r"|\{#(?:(?!\{#).){1,5000}?#\}|\{!!.{1,2000}?!!\}|\{\*.{1,5000}?\*\}|\{/[a-z]\w*\}|\{\$\w[^{}<]*\}"
    r"|\{(?:if|else|elseif|foreach|include|assign|literal)(?=[\s}])[^{}<]{0,2000}\}|</?%[a-z]\w*(?:\s[^<>%]*)?/?>"
    r"|(?m:^[ \t]*%[ \t]*(?:(?:if|for|elif|while)\b[^\n]*:|else:|end(?:if|for|while))[ \t]*$)"
    r"|@let\s+\w+\s*=[^;<>{}\n]*;|@(?:for|if|else if|switch|case)\s*\([^{}\n]*\)\s*\{|</?[#@][A-Za-z][^<>\n]*>"
    r"|\{(?:[a-z]\w*:[A-Za-z][\w.]*\(|[\w.]+\s*->\s*[a-z]\w*:)(?:[^{}<']|'[^'\n]*'|\{[^{}]*\}){0,2000}\}",
    re.DOTALL,
)
"""Templates of Jinja, Liquid, Handlebars, ERB, PHP, Fluid, Smarty, Mako, FreeMarker, Template Toolkit and Angular."""
CODE_BODY = re.compile(r"\{%-?\s*(comment|highlight|javascript|schema|style)\b.*?%\}.*?\{%-?\s*end\1.*?%\}", re.DOTALL)


def html(data: bytes) -> list[Block]:
    """Read a page."""
    return _blocks(*_parsed(data), _open_ended(data))


def xhtml(data: bytes) -> list[Block]:
    """Read a page that is XML; one that is not well-formed as HTML."""
    text = TEMPLATE.sub(_as_mark, data.decode("utf-8", "replace"))
    try:
        tree = etree.fromstring(text.encode("utf-8"), etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return html(data)
    return _blocks(tree, [])


def _open_ended(data: bytes) -> frozenset[str]:
    """Return the names of elements that a page opens and never ends: where they end is not to be judged."""
    names = (frozenset(re.findall(sign + rb"([A-Za-z][\w:.-]*)", data)) for sign in (b"<", b"</"))
    opened, ended = (frozenset(name.decode().lower() for name in some) for some in names)
    return opened - ended


def _blocks(tree: Any, templates: list[str], open_ended: frozenset[str] = frozenset()) -> list[Block]:
    blocks: list[Block] = []
    _Page(blocks, open_ended).read(tree)
    blocks.append(Block("templates", marks=templates, is_text=False))
    return [block for block in blocks if block.pieces or block.marks or block.name == "templates"]


def _parsed(data: bytes, errors: Counter[str] | None = None) -> tuple[Any, list[str]]:
    """Return the tree of a page, in which a character stands for code of a template, and that code.

    Raises:
        UnreadableError: html5lib does not read it.
    """
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise UnreadableError("no browser reads UTF-32")
    try:
        declared = re.search(
            rb"<meta[^>]*charset\s*=\s*[\"']?\s*([\w:.-]+)|<\?xml[^>]*encoding=[\"']([\w:.-]+)",
            data[:65536].partition(b"<body")[0],
            re.I,
        )
        encoding = webencodings.lookup((declared[1] or declared[2]).decode()) if declared else None
        name = (
            encoding.codec_info.name
            if encoding and not encoding.name.startswith("utf-16") and (data.isascii() or not _is_utf8(data))
            else "utf-8"
            if _is_utf8(data)
            else chardet.detect(data)["encoding"] or "cp1252"
        )
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else name, "replace").removeprefix(
            "\ufeff"
        )
        templates = [match[0] for match in TEMPLATE.finditer(text)]
        parser = html5lib.HTMLParser(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
        tree = parser.parse(TEMPLATE.sub(_as_mark, CODE_BODY.sub("", text)))
    except Exception as error:  # of codecs, and of names that ElementTree does not take
        raise UnreadableError(str(error)) from None
    if errors is not None:
        errors.update(_SAME_ERROR.get(code, code) for _, code, _ in parser.errors)
    return tree, templates


_SAME_ERROR = {"char-in-head-noscript": "unexpected-inhead-noscript-tag"}
"""Two names of an error: text in the ``noscript`` of a head, which a word or a tag may begin."""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_mark(match: re.Match[str]) -> str:
    """Return a character for code of a template."""
    return chr(0xE000 + zlib.crc32(match[0].encode()) % 0x1800)


NOTE = re.compile(r"\[?[ivxlc]+\]?|\[?[a-z]{1,2}\]", re.IGNORECASE)
"""A mark of a footnote."""


def html_faults(source: bytes, result: bytes, mode: str, named: list[str], suffix: str) -> list[Fault]:
    """Return new errors of parsing, and each piece of text that stayed untranslated without being named."""
    del suffix
    errors, new_errors = Counter[str](), Counter[str]()
    _parsed(source, errors)
    tree, _ = _parsed(result, new_errors)
    faults = [
        Fault("parse error", "page", f"{code}, {n} more")
        for code, n in (new_errors - errors).items()
        if "expected-doctype" not in code
    ]
    if mode != "letters":
        return faults
    blocks: list[Block] = []
    _Page(blocks, frozenset()).read(tree)
    told = [plain(text) for text in named]
    for block in blocks:
        whole, end = "".join(text for _, text in block.pieces), 0
        for around, text in block.pieces:
            own, start, end = plain(text), end, end + len(text)
            if (
                block.is_text
                and LATIN_WORD.search(CODE_SPAN.sub("", ADDRESS.sub("", own)))
                and any(match.start() < end for match in LATIN_WORD.finditer(whole, start))
                and not CYRILLIC.search(own)
                and not NOTE.fullmatch(own)
                and not any(own in x for x in told)
            ):
                faults.append(Fault("left", block.name, f"inside {around[-30:]!r}: {own[:80]!r}"))
    return faults


class _Page:
    """Cuts a tree into blocks, in document order."""

    def __init__(self, blocks: list[Block], open_ended: frozenset[str]) -> None:
        self.blocks, self.open_ended = blocks, open_ended
        self.current: Block | None = None
        self.texts: list[Block] = []  # attributes of elements that may change places, in the block that is read
        self.numbers = count()
        self.is_kept = False

    def read(self, element: Any, path: str = "", around: str = "", is_text: bool = True) -> None:
        """Read an element and what is in it."""
        if not isinstance(element.tag, str):  # a comment
            if element.tag in (ElementTree.Comment, etree.Comment):
                self._block(path).marks.append(f"<!--{element.text}-->")
            return
        namespace, _, name = element.tag.rpartition("}")
        name = name if not namespace or namespace.endswith(("xhtml", "svg", "MathML")) else f"other:{name}"
        classes = element.get("class", "").split()
        lines = [child.get("class") for child in element][:1] == ["line"]
        is_listing = ("fragment" in classes and lines) or not LISTINGS.isdisjoint(classes)
        inner_text = {"no": False, "yes": True}.get(element.get("translate", ""), is_text)
        inner_text = inner_text and name not in CODE and not is_listing
        inner_text = inner_text and "notranslate" not in element.get("class", "").split()
        inner_text = inner_text or element.get("translate") == "yes"
        is_kept = element.get("translate") == "no" or "notranslate" in element.get("class", "").split() or self.is_kept
        self._attributes(element, name, f"{path}/{name}", not is_kept)
        if name in RAW or (name == "math" and "mtext" not in "".join(str(child.tag) for child in element.iter())):
            self._block(path).marks.append(f"{name}: {''.join(element.itertext())}")
            return
        if name == "svg":  # a picture, inline by the standard; its text is no part of the sentence around it
            self._block(path).marks.append(f"svg: {[_mark(child, str(child.tag)) for child in element.iter()]}")
            sentence, self.current = self.current, None
            for child in element if "".join(element.itertext()).strip() else ():
                self.read(child, f"{path}/svg", "", inner_text)
            self.current = sentence
            return
        is_inline = name in INLINE or not (name in BLOCKS or "svg" in element.tag)
        if is_inline and name not in self.open_ended:
            around = inside(around, _mark(element, name), next(self.numbers))
        elif not is_inline:
            self._end()
            path, around = f"{path}/{name}", ""
            self._block(path)
        outer, self.is_kept = self.is_kept, is_kept and element.get("translate") != "yes"
        self._text(element.text, path, around, inner_text)
        for child in element:
            self.read(child, path, around, inner_text)
            self._text(child.tail, path, around, inner_text)
        self.is_kept = outer
        if not is_inline:
            self._end()

    def _end(self) -> None:
        """End the block, and add the attributes in it, in an order that elements that change places do not change."""
        self.blocks += sorted(self.texts, key=lambda block: (block.name, words_of(block.text)))
        self.texts.clear()
        self.current = None

    def _text(self, text: str | None, path: str, around: str, is_text: bool) -> None:
        text = text and text.replace("\u00ad", "")
        if text and text.strip() and (not is_text or ADDRESS.fullmatch(text.strip())):
            self._block(path).marks.append(f"kept: {plain(text)}")
        elif text and text.strip():
            self._block(path).add(around, text)
        elif text and self.current is not None and self.current.pieces:
            self.current.add(self.current.pieces[-1][0], " ")

    def _block(self, path: str) -> Block:
        if self.current is None:
            self.current = Block(path)
            self.blocks.append(self.current)
        return self.current

    def _attributes(self, element: Any, name: str, path: str, is_text: bool) -> None:
        self._block(path.rpartition("/")[0]).marks.append(_mark(element, name))
        for key, value in element.attrib.items():
            if _is_visible(element, name, str(key)) and value.strip():
                self.texts.append(Block(f"{path}@{key}", [("", value.replace("\u00ad", ""))], is_text=is_text))


def _is_visible(element: Any, name: str, key: str) -> bool:
    if key == "value":
        return name == "input" and str(element.get("type", "")).lower() in BUTTONS
    if key == "content" and name == "meta":
        return str(element.get("name") or element.get("property")).lower() in META
    if key == "title" and (name == "style" or "stylesheet" in element.get("rel", "").lower()):
        return False
    return key in VISIBLE or (key == "abbr" and name in ("td", "th"))


def _mark(element: Any, name: str) -> str:
    """Return a tag without the attributes that people read."""
    attributes = sorted((str(k), v) for k, v in element.attrib.items() if not _is_visible(element, name, str(k)))
    return name + "".join(f" {key}={value!r}" for key, value in attributes if not key.endswith("lang"))
